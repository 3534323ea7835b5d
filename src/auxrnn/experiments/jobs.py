"""Jobs of experiments (trainings and measurements), and the tasks that are left to do for them.

A job's name is made from its config alone, so experiments that need the same run share it.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from auxrnn.config import RunConfig, flatten, unflatten
from auxrnn.executors.tasks import Kind, Task
from auxrnn.presets import ModelName, name_system
from auxrnn.pretraining import WITHOUT_EFFECT, first_phase

UNNAMED = ("seed", *WITHOUT_EFFECT)
"""Fields that are no part of the digest."""
BEYOND_ONE_UPDATE = (
    *("pretrain_steps", "pretrain_epochs", "train_steps", "train_epochs", "sampling_steps"),
    *("auxiliary_weight", "lr", "lr_schedule", "warmup_steps", "lr_halving_epochs"),
)
"""How long and how fast a network learns: no part of the digest of a measured update."""


class Job(NamedTuple):
    """One number of a table: its place, and the run that gives it."""

    row: str
    column: str
    config: RunConfig
    kind: Kind = "train"

    @property
    def name(self) -> str:
        """Name of its record and of its run folder."""
        return name_job(self.config, self.kind)


@functools.cache
def name_job(config: RunConfig, kind: Kind = "train") -> str:
    """Return a name that tells a person what the job is; equal settings have equal names."""
    data = config.data
    size = data.image_size or data.length or data.max_length
    dataset = Path(data.data).stem + (f"{size}" if size else "")
    if kind == "data":
        return f"data-{dataset}-{_digest(RunConfig(data=data))}"
    system = name_system(config.model.model, config.loss.objective).lower()
    letters = "".join(letter for letter in system if letter.isalnum())
    digest = _digest(config, BEYOND_ONE_UPDATE if kind == "cost" else ())
    start = "" if kind == "train" else f"{kind}-"
    return f"{start}{dataset}-{letters}-w{config.loss.supervised_window}-{digest}-s{config.seed}"


def _digest(config: RunConfig, left_out: Sequence[str] = ()) -> str:
    """Digest what differs from the defaults, so that a new field of the config changes no existing name."""
    values, model = flatten(config), config.model.model
    defaults = _find_defaults(model)
    unnamed = (*UNNAMED, *left_out)
    named = {name: str(value) for name, value in values.items() if name not in unnamed and value != defaults[name]}
    # A user's own files are the same in every folder.
    named |= {"data": Path(config.data.data).name, "model": model}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:8]


@functools.cache
def _find_defaults(model: ModelName) -> dict[str, Any]:
    return flatten(unflatten({"data": "", "model": model}))


class Folders(NamedTuple):
    """`runs` holds checkpoints and weights, `records` what is kept for good."""

    runs: Path
    records: Path

    def record(self, name: str) -> Path:
        """Return the path of a job's record."""
        return self.records / f"{name}.json"

    def is_done(self, name: str) -> bool:
        """Return whether a job has its record."""
        return self.record(name).exists()

    def find_seeds(self, job: Job) -> list[int]:
        """Return the seeds of all records of a job, whichever seed it has itself; none for a count of a dataset."""
        stem = job.name.removesuffix(f"-s{job.config.seed}")
        found = (path.stem.removeprefix(f"{stem}-s") for path in self.records.glob(f"{stem}-s*.json"))
        return sorted(int(seed) for seed in found if seed.isdecimal())


def plan(jobs: Iterable[Job], folders: Folders) -> list[Task]:
    """Return what is left to do in order: a shared pretraining right before the first job that needs it."""
    tasks: dict[str, Task] = {}
    for job in jobs:
        if folders.is_done(job.name):
            continue
        pretraining, after = first_phase(job.config) if job.kind == "train" else None, None
        if pretraining is not None:
            # Evaluated only at its end, since no table shows its curve.
            pretraining = replace(pretraining, evaluate_every=pretraining.schedule.pretrain_steps)
            after = f"first-{name_job(pretraining)}"
            tasks.setdefault(after, Task(after, pretraining))
        tasks.setdefault(job.name, Task(job.name, job.config, job.kind, after, is_job=True))
    return list(tasks.values())
