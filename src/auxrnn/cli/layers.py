"""Defaults below the flags: of the recipe, over them those of the model's preset, over them those of a config file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, ArgumentCollection, Group, Parameter, Token

from auxrnn.cli.commands import Help, say
from auxrnn.config import (
    DEFAULT_MODEL,
    BaselineConfig,
    DataConfig,
    ModelConfig,
    ObjectiveConfig,
    RunConfig,
    ScheduleConfig,
    SegmentConfig,
    read_toml,
)
from auxrnn.errors import UsageError
from auxrnn.presets import AUXILIARY, DEFAULT_RECIPE, MODEL_OPTIONS, PRESETS, ModelName, RecipeName, find_recipe

PANELS = {
    DataConfig: "Data",
    ModelConfig: "Network",
    BaselineConfig: "Networks that read whole sequences",
    ObjectiveConfig: "Auxiliary loss",
    SegmentConfig: "Segments of the auxiliary loss",
    ScheduleConfig: "Training",
    RunConfig: "Machine, evaluation and checkpoints",
}
for number, (kind, title) in enumerate(PANELS.items(), start=1):
    Parameter(name="*", group=Group(title, sort_key=number))(kind)

RecipeOption = Annotated[
    RecipeName,
    Parameter(
        help="Where the defaults of all options come from: fast (converges within minutes to an hour on one core) or"
        " paper (the published settings)."
    ),
]
ConfigOption = Annotated[
    Path | None,
    Parameter(
        help="TOML file with defaults for these options, keys named like the flags, or a shipped one: paper, mnist14."
    ),
]


def add_layers(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Set every option that no flag sets; cyclopts calls this between reading the flags and building the options."""
    leaves = {
        argument.name.removeprefix("--").replace("-", "_"): argument for argument in arguments if not argument.children
    }
    flags = {name: argument.convert() for name, argument in leaves.items() if argument.tokens}
    file = _read_file(flags)
    values = _find_values(flags, file)
    if not (flags | values).get("data"):
        raise UsageError("DATA is missing; name a dataset, such as digits or mnist, or give the path of your own files")
    _check_effects(flags, file)
    for name in values.keys() - flags.keys():
        leaves[name].append(Token(implicit_value=values[name], source="layers"))


def make_help(words: Sequence[str]) -> Help:
    """Return the help for a command line: with the defaults of the recipe, model and config file that it names."""
    if words[0] not in ("train", "cost"):
        return Help()
    _, bound, *_ = _beside_help.parse_known_args(words[1:])
    flags = bound.arguments
    hidden = MODEL_OPTIONS - set(PRESETS[flags["model"]].options) if "model" in flags else frozenset()
    return Help(_find_values(flags, _read_file(flags)) | flags, hidden=hidden)


_beside_help = App(help_flags=(), version_flags=())


@_beside_help.default
def _take(*, recipe: RecipeName | None = None, model: ModelName | None = None, config: Path | None = None) -> None:
    """Take what changes the defaults of all other options."""


def _read_file(flags: dict[str, Any]) -> dict[str, Any]:
    return read_toml(flags["config"]) if flags.get("config") else {}


def _find_values(flags: dict[str, Any], file: dict[str, Any]) -> dict[str, Any]:
    """Return the values of recipe, model and config file, where these flags leave them open.

    The settings of a model named as a flag take the place of the file's: the file may be for another one.
    """
    recipe = flags.get("recipe", file.get("recipe", DEFAULT_RECIPE))
    model_of_file = file.get("model", DEFAULT_MODEL)
    model = flags.get("model", model_of_file)
    preset = find_recipe(recipe, model)
    values = preset | file if model == model_of_file else file | preset
    values |= {"recipe": recipe, "model": model}
    dropped = set()
    for phase in ("pretrain", "train"):
        # A length given as a flag takes the place of the file's, in whichever unit that is.
        lengths = {f"{phase}_steps", f"{phase}_epochs"}
        dropped |= lengths if lengths & flags.keys() else set()
    if values.get("objective") == "auto" and flags.keys() & set(AUXILIARY):
        # An option of the auxiliary loss asks for the auxiliary loss.
        values["objective"] = "reconstruct"
    if (values | flags).get("objective") == "none":
        # A file's pretraining is for its own objective.
        dropped |= {"pretrain_steps", "pretrain_epochs"}
        if file.get("objective", "none") != "none":
            say(f"ignoring the objective and the pretraining of {flags['config']}")
    return {name: value for name, value in values.items() if name not in dropped}


def _check_effects(flags: dict[str, Any], file: dict[str, Any]) -> None:
    """Refuse an option that has no effect on the model, rather than ignore it.

    A file for another model may have such options, a file that names the model itself may not.
    """
    model = flags.get("model", file.get("model", DEFAULT_MODEL))
    named = {*flags, *(file if file.get("model") == model else ())}
    for name in sorted(named & (MODEL_OPTIONS - set(PRESETS[model].options))):
        models = ", ".join(other for other, preset in PRESETS.items() if name in preset.options)
        raise UsageError(f"--{name.replace('_', '-')} has no effect with --model {model}; it is for {models}")
