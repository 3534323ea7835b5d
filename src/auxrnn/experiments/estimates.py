"""What runs will take, before they are started: time from finished records or one measured step, and memory.

Time is work divided by speed. Work counts updates, rows, steps and units; the speed of a system (work per second) is
that of its finished records at the same scale, and where there are none, a known part of the speed of an LSTM, of which
one update is measured here: measuring every system would take minutes.
"""

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from auxrnn import pretraining, runs, saved
from auxrnn.config import Auto, RunConfig, SupervisedWindow, decided, unflatten
from auxrnn.data import datasets
from auxrnn.errors import RunError, UsageError
from auxrnn.executors.tasks import Task
from auxrnn.experiments import table1
from auxrnn.experiments.catalog import find_jobs
from auxrnn.experiments.jobs import Folders, plan
from auxrnn.experiments.scales import CELLS, Scale
from auxrnn.report.records import read_record
from auxrnn.training.cost import estimate_growth, find_longest, time_step
from auxrnn.training.loop import Session

PROCESS_BYTES = 500_000_000
"""What a process holds beside its training step: torch itself, and the data."""
SECONDS_TO_MEASURE = 20.0
"""About what `auxrnn cost` or a count of a dataset takes."""
SIZES = {name.lower(): counts for name, counts in table1.PAPER.items()}
SMALL = (16, 4, 48)
"""Of the synthetic data of the smoke scale."""
RELATIVE_SPEEDS = {
    **{(cell, "none"): 1.0 for cell in CELLS},
    **{(cell, objective): 0.5 for cell in CELLS for objective in ("reconstruct", "predict")},
    ("lru", "none"): 0.5, ("legendre", "none"): 10.0,
    ("irnn", "none"): 0.5, ("urnn", "none"): 0.75, ("transformer", "none"): 0.27, ("dmca", "none"): 0.17,
    ("lm_lstm", "predict"): 0.8, ("sa_lstm", "reconstruct"): 0.65, ("char_cnn", "none"): 0.06,
    ("conv_rnn", "none"): 0.35, ("vdcnn", "none"): 0.01,
}  # fmt: skip
"""Work per second beside that of an LSTM, on one core of the machine of docs/speed.md."""
SLOWEST = 0.01
MEASURED = {"data": "needle", "length": 128, "batch_size": 16, "pretrain_steps": 0, "train_steps": 1, "threads": 1}


class ListedRun(NamedTuple):
    """One run of an experiment."""

    name: str
    place: str
    is_done: bool
    seconds: float
    """Of a finished run what it took; of others an estimate, where the first that needs a pretraining includes it."""


def list_runs(names: Sequence[str], scale: Scale, folders: Folders) -> list[ListedRun]:
    """Return every run of some experiments once, in the order in which they are done."""
    jobs, listed = find_jobs(names, scale), []
    tasks = plan(jobs, folders)
    seconds, first = estimate_seconds(tasks, folders), {task.name: task.after or "" for task in tasks}
    for job in jobs:
        record, place = read_record(folders.record(job.name)), f"{job.row}, {job.column}".rstrip(", ")
        taken = record.seconds if record else seconds[job.name] + seconds.pop(first[job.name], 0.0)
        listed.append(ListedRun(job.name, place, record is not None, taken))
    return listed


def estimate_seconds(tasks: Iterable[Task], folders: Folders) -> dict[str, float]:
    """Return the seconds of each task by name; what continues a pretraining is shorter by it."""
    known = _read_speeds(folders)

    def estimate(task: Task) -> float:
        if task.kind != "train":
            return SECONDS_TO_MEASURE
        if saved.is_finished(folders.runs / task.name):
            return 0.0
        shared = pretraining.first_phase(task.config) if task.after else None
        work = find_work(task.config) - (find_work(shared) if shared else 0.0)
        system = task.config.model.model, task.config.loss.objective
        return work / (known.get(system) or RELATIVE_SPEEDS.get(system, SLOWEST) * _measure_speed())

    return {task.name: estimate(task) for task in tasks}


@functools.cache
def _read_speeds(folders: Folders) -> dict[tuple[str, str], float]:
    """Return the work per second of each model and objective, from all records of a scale."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for path in folders.records.glob("*.json"):
        record = read_record(path)
        if record is not None and record.seconds > 0:
            config = unflatten(record.settings)
            found[config.model.model, config.loss.objective].append(find_work(config) / record.seconds)
    return {system: median(speeds) for system, speeds in found.items()}


@functools.cache
def _measure_speed() -> float:
    """Measure one update of an LSTM with a few synthetic sequences."""
    config = unflatten(MEASURED | {"objective": "none"})
    session = _open(config)
    return find_work(config) / time_step(session, session.phases[-1], total_step=0)


def _open(config: RunConfig) -> Session:
    config = runs.settle(config)
    dataset = datasets.load(config.data)
    return runs.open_session(config, dataset, runs.prepare(config, dataset), None)


def find_work(config: RunConfig) -> float:
    """Return the work of a run in multiplications, up to a factor that each system has for itself.

    An update reads every step once, and back-propagation through a window takes twice as long as reading it.
    """
    usual_length, _, train_size = SIZES.get(config.data.data.replace("_", ""), SMALL)
    length = config.data.length or (config.data.image_size or 0) ** 2 or usual_length
    segments, loss, schedule, model = config.segments, config.loss, config.schedule, config.model

    def span(window: SupervisedWindow | Auto) -> int:
        return min(window, length) if isinstance(window, int) else length

    supervised = length + 2 * span(loss.supervised_window)
    auxiliary = segments.num_segments * (2 * span(loss.auxiliary_window) + 3 * span(segments.segment_length))
    rows = decided(schedule.batch_size)
    per_epoch = math.ceil(train_size / rows)
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
    try:
        session = _open(config)
    except (RunError, UsageError):
        return PROCESS_BYTES
    return PROCESS_BYTES + estimate_growth(session).bytes_for(session.batches.batch_size, find_longest(session))
