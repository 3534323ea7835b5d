"""How long a planned run takes on this machine and how much memory its updates need, before its data is there.

Measured on stand-ins for the data (`made_shapes`) and on less than a whole update (`trials`), then multiplied by what
the run will do. A book keeps what was measured, since a plan has many runs and is asked for often.
"""

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from auxrnn import runs
from auxrnn.config import RunConfig
from auxrnn.experiments.made_shapes import can_make, make_dataset
from auxrnn.experiments.trials import PhaseCost, time_phase
from auxrnn.files import write_aside
from auxrnn.kernels.library import describe as describe_kernel
from auxrnn.plain_config import flatten
from auxrnn.training.cost import count_evaluations
from auxrnn.training.loop import Session
from auxrnn.training.memory import estimate_growth, find_longest
from auxrnn.training.phases import Phase

WITHOUT_COST = (
    "seed",
    "data_dir",
    "init_from",
    "permutation",
    "read_backward",
    "gate_init",
    "order",
    "label_smoothing",
    "checkpoint_every",
    "log_every",
    *("auxiliary_weight", "lr", "lr_schedule", "warmup_steps", "lr_halving_epochs"),
)
"""Fields that change what a run learns, or where it lies, but not what it takes."""
PACKAGES = ("auxrnn", "torch")


class RunEstimate(NamedTuple):
    """What a run takes."""

    seconds: float
    """Of all updates and evaluations, one after the other."""
    bytes: int
    """Of the hungriest update on the longest sequences, as `auxrnn cost` estimates it."""


def estimate_run(config: RunConfig) -> RunEstimate:
    """Measure a few rows here, with the threads of the config, and extrapolate; a named dataset is not needed.

    Takes a second for a small network and some five for a large one, and never the memory of a whole update.
    """
    with _own_threads():
        session = open_stand_in(config)
        middle = sum(phase.num_steps for phase in session.phases) // 2
        costs = {phase.name: time_phase(session, phase, total_step=middle) for phase in session.phases}
        num_bytes = estimate_growth(session).bytes_for(session.batches.batch_size, find_longest(session))
    return RunEstimate(add_seconds(session.phases, costs, evaluate_every=config.evaluate_every), num_bytes)


def open_stand_in(config: RunConfig) -> Session:
    """Open a run as it will be, with a stand-in for its data if there is one, and fresh weights."""
    settled = replace(runs.settle(config), init_from=None)
    request = settled.data
    dataset = make_dataset(request) if can_make(request) else runs.load_dataset(settled)
    return runs.open_session(settled, dataset, runs.prepare(settled, dataset), None)


def add_seconds(phases: Sequence[Phase], costs: Mapping[str, PhaseCost], *, evaluate_every: int | None) -> float:
    """Add up all updates and evaluations of a run, given what one of each takes in each phase."""
    return sum(
        phase.num_steps * costs[phase.name].update
        + count_evaluations(phase, evaluate_every=evaluate_every) * costs[phase.name].evaluation
        for phase in phases
    )


class EstimateBook:
    """Estimates in a JSON file: a config is measured once on a machine, and again with another version or kernel."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, config: RunConfig) -> RunEstimate | None:
        """Give what was measured for a run that takes the same; None if nothing was."""
        return self.read().get(make_key(config))

    def get(self, config: RunConfig) -> RunEstimate:
        """Give what was measured, or measure it now and write it down."""
        found = self.find(config)
        if found is not None:
            return found
        estimate = estimate_run(config)
        # Read again: others may have written meanwhile.
        entries = self.read() | {make_key(config): estimate}
        plain = {key: entry._asdict() for key, entry in entries.items()}
        write_aside(self.path, json.dumps(plain, indent=2) + "\n")
        return estimate

    def read(self) -> dict[str, RunEstimate]:
        """Read all entries, by `make_key`; a file that is missing or damaged has none: all can be measured again."""
        try:
            plain = json.loads(self.path.read_text())
            return {key: RunEstimate(float(entry["seconds"]), int(entry["bytes"])) for key, entry in plain.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def make_key(config: RunConfig) -> str:
    """Give a digest of all that an estimate depends on: what the run is, what it runs on, and where."""
    values = {name: value for name, value in flatten(runs.settle(config)).items() if name not in WITHOUT_COST}
    versions = [importlib.metadata.version(name) for name in PACKAGES]
    text = json.dumps([values, versions, describe_kernel(), platform.node()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@contextmanager
def _own_threads() -> Iterator[None]:
    """Let what is measured choose its number of threads, and go back to the present one."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
