"""What runs will take, before they are started: time from finished records or one measured step, and memory.

Time is work divided by speed. Work counts updates, rows, steps and units; the speed of a system (work per second) is
that of its finished records at the same scale, and where there are none, that of one update measured here.
"""

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import median
from typing import NamedTuple

from auxrnn import runs
from auxrnn.config import Auto, RunConfig, Window, unflatten
from auxrnn.data import datasets
from auxrnn.errors import RunError, UsageError
from auxrnn.experiments import table1
from auxrnn.experiments.catalog import EXPERIMENTS
from auxrnn.experiments.jobs import Folders, Task, drop_doubles, plan
from auxrnn.experiments.scales import Scale
from auxrnn.report.run_records import read_record
from auxrnn.runs import first_phase
from auxrnn.training.cost import estimate_growth, find_longest, time_step

PROCESS_BYTES = 500_000_000
"""What a process holds beside its training step: torch itself, and the data."""
SECONDS_TO_MEASURE = 20.0
"""About what `auxrnn cost` or a count of a dataset takes."""
SIZES = {name.lower(): counts for name, counts in table1.PAPER.items()}
SMALL = table1.Counts(16, 4, 48)
"""Of the synthetic data of the smoke scale."""
MEASURED = {"data": "needle", "length": 128, "batch_size": 16, "pretrain_steps": 0, "train_steps": 1, "threads": 1}


class Summary(NamedTuple):
    """How much of an experiment there is at one scale; `seconds_left` is on one worker."""

    name: str
    title: str
    scale: str
    num_runs: int
    num_done: int
    seconds_left: float


class ListedRun(NamedTuple):
    """One run of an experiment."""

    name: str
    place: str
    is_done: bool
    seconds: float
    """Estimated, with its pretraining; of a finished run what it took."""


def summarize(name: str, scale: Scale, folders: Folders) -> Summary:
    """Count the runs of an experiment, and estimate the time of what is left; a shared pretraining counts once."""
    jobs = drop_doubles(EXPERIMENTS[name].runs(scale))
    tasks = [task for task in plan(jobs, folders) if task.is_job or not runs.is_finished(folders.runs / task.name)]
    num_done = sum(folders.is_done(job.name) for job in jobs)
    seconds_left = sum(estimate_seconds(tasks, folders).values())
    return Summary(name, EXPERIMENTS[name].TITLE, scale.name, len(jobs), num_done, seconds_left)


def list_runs(names: Iterable[str], scale: Scale, folders: Folders) -> list[ListedRun]:
    """Return every run of some experiments once, in the order in which they are done."""
    jobs = drop_doubles(job for name in names for job in EXPERIMENTS[name].runs(scale))
    seconds = estimate_seconds([Task(job.name, job.config, job.kind) for job in jobs], folders)
    records = {job.name: read_record(folders.record(job.name)) for job in jobs}
    return [
        ListedRun(
            name=job.name,
            place=f"{job.row}, {job.column}".rstrip(", "),
            is_done=(record := records[job.name]) is not None,
            seconds=seconds[job.name] if record is None else record.seconds,
        )
        for job in jobs
    ]


def estimate_seconds(tasks: Iterable[Task], folders: Folders) -> dict[str, float]:
    """Return the seconds of each task by name; what continues a pretraining is shorter by it."""
    find_speed = _read_speeds(folders)

    def estimate(task: Task) -> float:
        if task.kind != "train":
            return SECONDS_TO_MEASURE
        shared = None if task.after is None else first_phase(task.config)
        work = find_work(task.config) - (0.0 if shared is None else find_work(shared))
        return work / find_speed(task.config)

    return {task.name: estimate(task) for task in tasks}


@functools.cache
def _read_speeds(folders: Folders) -> Callable[[RunConfig], float]:
    """Return what finds the work per second of a config's system, from all records of a scale."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for path in folders.records.glob("*.json"):
        record = read_record(path)
        if record is not None and record.seconds > 0:
            config = unflatten(record.settings)
            found[config.model.model, config.loss.objective].append(find_work(config) / record.seconds)

    def find_speed(config: RunConfig) -> float:
        system = config.model.model, config.loss.objective
        return median(found[system]) if system in found else _measure_speed(*system)

    return find_speed


@functools.cache
def _measure_speed(model: str, objective: str) -> float:
    """Measure one update of a system with a few synthetic sequences."""
    config = runs.settle(unflatten(MEASURED | {"model": model, "objective": objective}))
    dataset = datasets.load(config.data)
    session = runs.open_session(config, dataset, runs.prepare(config, dataset), None)
    return find_work(config) / time_step(session, session.phases[-1], total_step=0)


def find_work(config: RunConfig) -> float:
    """Return the work of a run in multiplications, up to a factor that each system has for itself.

    An update reads every step once, and back-propagation through a window takes twice as long as reading it.
    """
    counts = SIZES.get(config.data.data.replace("_", ""), SMALL)
    length = int(config.data.length or (config.data.image_size or 0) ** 2 or counts.length)
    segments, loss, schedule, model = config.segments, config.loss, config.schedule, config.model

    def span(window: Window | Auto) -> int:
        return min(window, length) if isinstance(window, int) else length

    supervised = length + 2 * span(loss.supervised_window)
    auxiliary = segments.num_segments * (2 * span(loss.auxiliary_window) + 3 * span(segments.segment_length))
    rows = int(schedule.batch_size) if schedule.batch_size != "auto" else 1
    per_epoch = math.ceil(counts.train_size / rows)
    first = _count_updates(schedule.pretrain_steps, schedule.pretrain_epochs, per_epoch)
    train = _count_updates(schedule.train_steps, schedule.train_epochs, per_epoch)
    if loss.objective == "none":
        first = auxiliary = 0
    num_steps = first * (length + auxiliary) + train * (supervised + auxiliary * schedule.joint)
    reach = length if model.model == "transformer" else 0
    return float(rows * num_steps * model.num_layers * model.hidden_size * (model.hidden_size + reach))


def _count_updates(steps: int | None, epochs: float | None, per_epoch: int) -> int:
    return steps if steps is not None else round((epochs or 0.0) * per_epoch)


@functools.cache
def estimate_bytes(config: RunConfig) -> int:
    """Return what the process of a training will hold; where data cannot be read, the training itself will say so."""
    config = runs.settle(config)
    try:
        dataset = datasets.load(config.data)
    except (RunError, UsageError):
        return PROCESS_BYTES
    session = runs.open_session(config, dataset, runs.prepare(config, dataset), None)
    return PROCESS_BYTES + estimate_growth(session).bytes_for(session.batches.batch_size, find_longest(session))
