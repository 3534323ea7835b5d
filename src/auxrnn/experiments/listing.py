"""What there is to do: runs of every experiment, which of them are done, and the time of the others on this machine."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from auxrnn import runs
from auxrnn.experiments.catalog import EXPERIMENTS
from auxrnn.experiments.estimates import RunEstimate
from auxrnn.experiments.jobs import Folders, Job, Task, drop_doubles, plan
from auxrnn.experiments.scales import Scale

Estimate = Callable[[Task], RunEstimate]
SECONDS_TO_MEASURE = 20.0
"""About what a measurement of one update takes, and a count of a dataset."""


class Summary(NamedTuple):
    """How much of an experiment there is at one scale; `seconds_left` is on one worker."""

    name: str
    title: str
    scale: str
    num_runs: int
    num_done: int
    seconds_left: float


class Entry(NamedTuple):
    """One run of an experiment."""

    name: str
    place: str
    is_done: bool
    seconds: float
    bytes: int


def summarize(name: str, scale: Scale, folders: Folders, estimate: Estimate) -> Summary:
    """Count the runs of an experiment, and the time of what is left; a shared first phase counts once."""
    jobs = drop_doubles(EXPERIMENTS[name].runs(scale))
    tasks = plan(jobs, folders)
    num_done = sum(folders.is_done(job) for job in jobs)
    seconds_left = find_seconds(tasks, folders, estimate)
    return Summary(name, EXPERIMENTS[name].TITLE, scale.name, len(jobs), num_done, seconds_left)


def find_seconds(tasks: Sequence[Task], folders: Folders, estimate: Estimate) -> float:
    """Give the time of some tasks one after the other: a run that takes over a first phase is shorter by it."""
    first = {task.name: estimate(task).seconds for task in tasks if not task.is_job}
    return sum(seconds for name, seconds in first.items() if not runs.is_finished(folders.runs / name)) + sum(
        _seconds(task, estimate) - first.get(task.after or "", 0.0) for task in tasks if task.is_job
    )


def find_known_seconds(tasks: Sequence[Task], known: Mapping[str, RunEstimate]) -> dict[str, float]:
    """Give the time of each task that was measured before; `known` and the result are by name of a task."""
    measured = {task.name: SECONDS_TO_MEASURE for task in tasks if task.kind != "train"}
    whole = {task.name: known[task.name].seconds for task in tasks if task.kind == "train" and task.name in known}
    return measured | {
        task.name: whole[task.name] - (0.0 if task.after is None else whole[task.after])
        for task in tasks
        if task.name in whole and (task.after is None or task.after in whole)
    }


def _seconds(task: Task, estimate: Estimate) -> float:
    return estimate(task).seconds if task.kind == "train" else SECONDS_TO_MEASURE


def list_runs(names: Iterable[str], scale: Scale, folders: Folders, estimate: Estimate) -> list[Entry]:
    """Give every run of some experiments, each once, in the order in which they are done."""
    jobs = drop_doubles(job for name in names for job in EXPERIMENTS[name].runs(scale))
    return [_entry(job, folders, estimate) for job in jobs]


def _entry(job: Job, folders: Folders, estimate: Estimate) -> Entry:
    task = Task(job.name, job.config, job.kind, None, is_job=True)
    is_done = folders.is_done(job)
    found = RunEstimate(SECONDS_TO_MEASURE, 0) if job.kind == "data" or is_done else estimate(task)
    seconds = found.seconds if job.kind == "train" else SECONDS_TO_MEASURE
    return Entry(job.name, f"{job.row}, {job.column}".rstrip(", "), is_done, seconds, found.bytes)
