"""Defaults below the flags: of the recipe, over them those of the model's preset, over them those of a config file."""

from pathlib import Path
from typing import Any

from cyclopts import App, ArgumentCollection, Token

from auxrnn.cli.output import say
from auxrnn.config import DEFAULT_MODEL, read_toml
from auxrnn.errors import UsageError
from auxrnn.presets import AUXILIARY, DEFAULT_RECIPE, MODEL_OPTIONS, PRESETS, find_recipe


def add_layers(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Set every option that no flag sets; cyclopts calls this between reading the flags and building the options."""
    leaves = {argument.keys[-1]: argument for argument in arguments if not argument.children}
    flags = {name: argument.convert() for name, argument in leaves.items() if argument.tokens}
    file = _read_file(flags)
    values = find_values(flags, file)
    _check_data(flags | values, has_file=bool(file))
    _check_effects(flags, file)
    for name, value in values.items():
        if name not in flags:
            leaves[name].append(Token(implicit_value=value, source="layers"))


def find_values(flags: dict[str, Any], file: dict[str, Any]) -> dict[str, Any]:
    """Return the values of recipe, model and config file, where these flags leave them open.

    The settings of a model named as a flag take the place of the file's: the file may be for another one.
    """
    recipe = flags.get("recipe", file.get("recipe", DEFAULT_RECIPE))
    model_of_file = file.get("model", DEFAULT_MODEL)
    model = flags.get("model", model_of_file)
    preset = find_recipe(recipe, model)
    values = preset | file if model == model_of_file else file | preset
    values |= {"recipe": recipe, "model": model}
    for phase in ("pretrain", "train"):
        # A length given as a flag takes the place of the file's, in whichever unit that is.
        lengths = {f"{phase}_steps", f"{phase}_epochs"}
        if lengths & flags.keys():
            values = {name: value for name, value in values.items() if name not in lengths}
    return _choose_objective(flags, values, file)


def find_shown_defaults(
    *, recipe: str | None = None, model: str | None = None, config: Path | None = None
) -> dict[str, Any]:
    """Return the values that the help shows as defaults, for what may stand beside --help."""
    given = {"recipe": recipe, "model": model, "config": config}
    flags = {name: value for name, value in given.items() if value is not None}
    return find_values(flags, _read_file(flags)) | flags


def _read_file(flags: dict[str, Any]) -> dict[str, Any]:
    return read_toml(flags["config"]) if flags.get("config") else {}


def _choose_objective(flags: dict[str, Any], values: dict[str, Any], file: dict[str, Any]) -> dict[str, Any]:
    """Let an option of the auxiliary loss ask for the auxiliary loss, and no objective for no pretraining."""
    if values.get("objective") == "auto" and flags.keys() & set(AUXILIARY):
        values = values | {"objective": "reconstruct"}
    if (values | flags).get("objective") == "none":
        # A file's pretraining is for its own objective.
        if file.get("objective", "none") != "none":
            say(f"ignoring the objective and the pretraining of {flags['config']}")
        values = {name: value for name, value in values.items() if not name.startswith("pretrain_")}
    return values


def _check_data(values: dict[str, Any], *, has_file: bool) -> None:
    if not values.get("data"):
        where = ", here and in the config file" if has_file else ""
        raise UsageError(
            f"DATA is missing{where}; name a dataset, such as digits or mnist, or give the path of your own files"
        )


def _check_effects(flags: dict[str, Any], file: dict[str, Any]) -> None:
    """Refuse an option that has no effect on the model, rather than ignore it.

    A file for another model may have such options, a file that names the model itself may not.
    """
    model = flags.get("model", file.get("model", DEFAULT_MODEL))
    named = {*flags, *(file if file.get("model") == model else ())}
    for name in sorted(named & (MODEL_OPTIONS - set(PRESETS[model].options))):
        models = ", ".join(other for other, preset in PRESETS.items() if name in preset.options)
        raise UsageError(f"--{name.replace('_', '-')} has no effect with --model {model}; it is for {models}")
