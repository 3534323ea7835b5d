"""Tasks: trainings and measurements that are done by an `auxrnn` command in a process of its own, wherever that is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from auxrnn import runs, saved
from auxrnn.config import RunConfig, flatten, to_data_flags, to_flags
from auxrnn.environment import describe_environment
from auxrnn.executors.tethered import run_command
from auxrnn.report.records import RunRecord, record_training

Kind = Literal["train", "cost", "data"]
"""Train a network; measure one update of it, alone on the machine; count a dataset."""


class Task(NamedTuple):
    """One process to start: a job, or a pretraining that several jobs share."""

    name: str
    """Of its run folder, and of the files beside it."""
    config: RunConfig
    kind: Kind = "train"
    after: str | None = None
    """The pretraining that this one continues."""
    is_job: bool = False
    """Whether it gets a record."""
    minutes: float | None = None
    """What a training is planned for, where its config leaves the length open."""


class Ending(NamedTuple):
    """How a task ended."""

    failure: str | None = None
    """The last thing that its process said, if it failed or was stopped."""
    record: RunRecord | None = None
    """Of a job that is done."""


def perform(
    task: Task,
    folder: Path,
    *,
    command: Callable[..., int] = run_command,
    should_stop: Callable[[], bool] = lambda: False,
) -> Ending:
    """Do a task in a folder of runs, from its newest checkpoint on if it has one, and return how it ended.

    `command` runs the words of `auxrnn` as `run_command` does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{task.name}.log"
    if command(_find_words(task, folder), log=log, out=_out(task, folder), should_stop=should_stop) == 0:
        return Ending(record=make_record(task, folder) if task.is_job else None)
    last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
    return Ending(last[0].removeprefix("auxrnn: "))


def _find_words(task: Task, folder: Path) -> list[str]:
    if task.kind == "data":
        return ["data", "check", *to_data_flags(task.config), "--json"]
    if task.kind == "cost":
        return ["cost", *to_flags(task.config), "--json"]
    run_folder = folder / task.name
    if (run_folder / saved.CONFIG).exists():
        return ["resume", str(run_folder)]
    runs.remove_half_made(run_folder)
    adopted = [] if task.after is None else ["--pretrained", str(folder / task.after)]
    planned = [] if task.minutes is None else ["--minutes", f"{task.minutes:.6g}"]
    # How long it takes was announced for all tasks together.
    return ["train", *to_flags(task.config), *planned, "--endless", "--out", str(run_folder), *adopted]


def make_record(task: Task, folder: Path) -> RunRecord:
    """Return the record of a job that is done in a folder of runs."""
    out = _out(task, folder)
    if out is None:
        return record_training(task.name, folder / task.name)
    scores, environment = json.loads(out.read_text()), describe_environment(runs.settle(task.config))
    return RunRecord(task.name, flatten(task.config), scores, 0.0, curve=[], facts={}, environment=environment)


def _out(task: Task, folder: Path) -> Path | None:
    return None if task.kind == "train" else folder / f"{task.name}.result.json"
