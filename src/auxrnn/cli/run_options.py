"""What `train` and `cost` share: the options of a run, over a config file, over the model's own settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

from auxrnn import runs
from auxrnn.arguments import last_value
from auxrnn.cli.output import error_console, say
from auxrnn.config import DEFAULT_MODEL, Objective, RunConfig
from auxrnn.data.datasets import Dataset
from auxrnn.errors import UsageError
from auxrnn.plain_config import read_toml, unflatten
from auxrnn.presets import AUXILIARY, MODEL_OPTIONS, PRESETS
from auxrnn.progress import ReadingProgress
from auxrnn.recipes import DEFAULT_RECIPE, RecipeName, find_recipe


def find_defaults(argv: Sequence[str]) -> RunConfig:
    """Return the defaults of a run: of its recipe and model, and over them those of a config file.

    The settings of a model named as a flag take the place of the file's: the file may be for another one. DATA is empty
    if no file names it.
    """
    path, flag = last_value(argv, "--config"), last_value(argv, "--model")
    of_file = {} if path is None else read_toml(Path(path))
    of_file.pop("recipe", None)
    recipe = find_recipe_name(argv)
    model = flag if flag in PRESETS else of_file.get("model", DEFAULT_MODEL)
    values = find_recipe(recipe, model) | of_file
    if flag in PRESETS and flag != of_file.get("model", DEFAULT_MODEL):
        values |= find_recipe(recipe, model) | {"model": model}
    if model == DEFAULT_MODEL:
        # Naming the usual network asks for nothing else than not naming it.
        values.pop("model", None)
    values = _heed_objective(argv, values, of_file)
    for phase in ("pretrain", "train"):
        # A length given as a flag takes the place of the file's, in whichever unit that stands.
        lengths = {f"{phase}_steps": f"--{phase}-steps", f"{phase}_epochs": f"--{phase}-epochs"}
        if any(last_value(argv, flag) is not None for flag in lengths.values()):
            values = {name: value for name, value in values.items() if name not in lengths}
    return unflatten({"data": ""} | values)


def find_recipe_name(argv: Sequence[str]) -> RecipeName:
    """Return which recipe a command asks for, as a flag or in its config file."""
    path = last_value(argv, "--config")
    of_file = {} if path is None else read_toml(Path(path))
    name = last_value(argv, "--recipe") or of_file.get("recipe", DEFAULT_RECIPE)
    if name not in get_args(RecipeName):
        raise UsageError(f"--recipe is {name!r}; it takes one of {', '.join(get_args(RecipeName))}")
    return cast(RecipeName, name)


def _heed_objective(argv: Sequence[str], values: dict[str, Any], of_file: dict[str, Any]) -> dict[str, Any]:
    """Take the objective of a flag; without one, an option of the auxiliary loss asks for the auxiliary loss."""
    asked = last_value(argv, "--objective")
    named = {word.partition("=")[0].replace("_", "-").replace("--no-", "--") for word in argv}
    if asked in get_args(Objective):
        values = values | {"objective": asked}
    elif values.get("objective") == "auto" and named & {"--" + name.replace("_", "-") for name in AUXILIARY}:
        values = values | {"objective": "reconstruct"}
    if values.get("objective") == "none":
        # A file's pretraining is for its own objective.
        if of_file.get("objective", "none") != "none":
            say(f"the objective and the pretraining of {last_value(argv, '--config')} are left out")
        values = {name: value for name, value in values.items() if not name.startswith("pretrain_")}
    return values


def check_run(argv: Sequence[str], config: RunConfig) -> None:
    """Refuse a run without data, and an option that means nothing to its model rather than pass over it.

    A file for another model may have such options, a file that names the model itself may not.
    """
    model, path = config.model.model, last_value(argv, "--config")
    if not config.data.data:
        where = "" if path is None else ", here and in the config file"
        raise UsageError(
            f"DATA is missing{where}; name a dataset, such as digits, mnist, or the path of your own files"
        )
    of_file = {} if path is None else read_toml(Path(path))
    named = {word.partition("=")[0].replace("_", "-").replace("--no-", "--") for word in argv}
    if of_file.get("model") == model:
        named |= {"--" + name.replace("_", "-") for name in of_file}
    for name in sorted(MODEL_OPTIONS - set(PRESETS[model].options)):
        flag = "--" + name.replace("_", "-")
        if flag in named:
            takes = [other for other, preset in PRESETS.items() if name in preset.options]
            raise UsageError(f"{flag} means nothing to {model}, so leave it out; it is for {', '.join(takes)}")


def load_data(config: RunConfig) -> Dataset:
    """Load the data of a run, with progress on the error stream."""
    with ReadingProgress(Path(config.data.data).name, error_console()) as progress:
        return runs.load_dataset(config, observe=progress.observe)
