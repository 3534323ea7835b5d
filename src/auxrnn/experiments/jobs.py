"""What an experiment asks for: trainings and measurements, each known by its settings.

Two experiments that ask for the same run share it: a job's name is made from its config alone.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from auxrnn.config import RunConfig
from auxrnn.plain_config import flatten, unflatten
from auxrnn.presets import name_system
from auxrnn.pretrained import WITHOUT_EFFECT

Kind = Literal["train", "cost", "data"]
"""Train a network; measure one update of it, alone on the machine; count a dataset."""

UNTOLD = ("seed", *WITHOUT_EFFECT)
RATES = ("auxiliary_weight", "lr", "lr_schedule", "warmup_steps", "lr_halving_epochs")
"""How fast a network learns: an update takes the same time with any."""
BEYOND_ONE_UPDATE = ("pretrain_steps", "pretrain_epochs", "train_steps", "train_epochs", "sampling_steps", *RATES)
"""How long it learns as well, which says nothing about the time of one update."""
NUM_DIGITS = 8
SEED_MARK = "-s"


class Job(NamedTuple):
    """One number of a table: where it stands, and the run that gives it."""

    row: str
    column: str
    config: RunConfig
    kind: Kind = "train"

    @property
    def name(self) -> str:
        """What its record and its run folder are called."""
        return name_job(self.config, self.kind)


@functools.cache
def name_job(config: RunConfig, kind: Kind = "train") -> str:
    """Name a job so that a person can tell what it is, and equal settings have equal names."""
    data = config.data
    size = data.image_size or data.length or data.max_length
    words = [Path(data.data).stem + (f"{size}" if size else "")]
    if kind == "data":
        return "-".join(["data", *words, _digest(RunConfig(data=data))])
    system = name_system(config.model.model, config.loss.objective)
    window = config.loss.supervised_window
    words += ["".join(letter for letter in system.lower() if letter.isalnum()), f"w{window}"]
    start = [] if kind == "train" else [kind]
    digest = _digest(config, BEYOND_ONE_UPDATE if kind == "cost" else ())
    return "-".join([*start, *words, digest]) + f"{SEED_MARK}{config.seed}"


def find_seeds(name: str, folder: Path) -> list[int]:
    """Give the seeds of all records of a job, whichever seed it has itself; a job without a seed has none."""
    stem, mark, seed = name.rpartition(SEED_MARK)
    if not (mark and seed.isdecimal()):
        return []
    found = (path.stem.removeprefix(stem + SEED_MARK) for path in folder.glob(f"{stem}{SEED_MARK}*.json"))
    return sorted(int(seed) for seed in found if seed.isdecimal())


def _digest(config: RunConfig, left_out: Sequence[str] = ()) -> str:
    """Digest what differs from the defaults: a field that is new tomorrow changes no name of today."""
    values, model = flatten(config), config.model.model
    defaults = flatten(unflatten({"data": "", "model": model}))
    untold = (*UNTOLD, *left_out)
    told = {name: str(value) for name, value in values.items() if name not in untold and value != defaults[name]}
    # Own files are the same wherever they lie.
    told |= {"data": Path(config.data.data).name, "model": model}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:NUM_DIGITS]


def drop_doubles(jobs: Iterable[Job]) -> list[Job]:
    """Keep the first of the jobs that have the same name, in order."""
    found: dict[str, Job] = {}
    for job in jobs:
        found.setdefault(job.name, job)
    return list(found.values())
