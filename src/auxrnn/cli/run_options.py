"""What `train` and `cost` share: the options of a run, over a config file, over the model's own settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from auxrnn import runs
from auxrnn.arguments import last_value
from auxrnn.cli.output import error_console, say
from auxrnn.config import Objective, RunConfig
from auxrnn.data.datasets import Dataset
from auxrnn.errors import UsageError
from auxrnn.plain_config import read_toml, unflatten
from auxrnn.presets import MODEL_OPTIONS, PRESETS, find_settings
from auxrnn.progress import ReadingProgress


def find_defaults(argv: Sequence[str]) -> RunConfig | None:
    """Give the defaults of a run where a config file or a model is named; DATA is empty if no file names it.

    A model's own settings take the place of the file's: the file may be for another one.
    """
    path, own = last_value(argv, "--config"), find_settings(last_value(argv, "--model"))
    if path is None and not own:
        return None
    of_file = {} if path is None else read_toml(Path(path))
    values = of_file | own
    asked = last_value(argv, "--objective")
    if asked in get_args(Objective):
        values["objective"] = asked
    if values.get("objective") == "none":
        # A file's pretraining is for its own objective.
        if of_file.get("objective", "none") != "none":
            say(f"without the objective {of_file['objective']} and the pretraining of {path}")
        values = {name: value for name, value in values.items() if not name.startswith("pretrain_")}
    for phase in ("pretrain", "train"):
        # A length given as a flag takes the place of the file's, in whichever unit that stands.
        lengths = {f"{phase}_steps": f"--{phase}-steps", f"{phase}_epochs": f"--{phase}-epochs"}
        if any(last_value(argv, flag) is not None for flag in lengths.values()):
            values = {name: value for name, value in values.items() if name not in lengths}
    return unflatten({"data": ""} | values)


def check_run(argv: Sequence[str], config: RunConfig) -> None:
    """Refuse a run without data, and an option that means nothing to its model rather than pass over it.

    A file for another model may have such options, a file that names the model itself may not.
    """
    if not config.data.data:
        raise UsageError("DATA is missing, here and in the config file; name a dataset, such as digits")
    model, path = config.model.model, last_value(argv, "--config")
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
