"""What the benchmark of data found, as plain values, and the limits that were set for it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from auxrnn.bench.data_sizes import DataSizes

GIGABYTE = 10**9


class Start(NamedTuple):
    """One start of a training, from the start of its process to its first batch."""

    seconds: float
    import_seconds: float
    """The part of it until all modules are imported: the same for any data."""
    processor_seconds: float
    """What it takes of a processor: where others use the machine, less than the seconds that pass."""
    peak_bytes: int
    """Most anonymous memory at any time."""


class PhaseCost(NamedTuple):
    """What batches and training steps of a phase cost."""

    phase: str
    batch_seconds: float
    shuffle_seconds: float
    """The shuffling of an epoch, shared out among its batches."""
    step_seconds: float
    padded_share: float
    """How much of the steps of an epoch is padding."""

    @property
    def batch_share(self) -> float:
        """Give what making a batch costs of a training step."""
        return (self.batch_seconds + self.shuffle_seconds) / self.step_seconds


class KindResults(NamedTuple):
    """All measurements on one kind of data."""

    first: Start
    second_starts: list[Start]
    phases: list[PhaseCost]
    source_bytes: int
    cached_bytes: int

    @property
    def second(self) -> Start:
        """Give the fastest of the second starts: whatever disturbs a measurement only ever adds to it."""
        return min(self.second_starts)


class DataResults(NamedTuple):
    """All measurements of one run of the benchmark of data, by kind."""

    sizes: DataSizes
    kinds: Mapping[str, KindResults]


class Figure(NamedTuple):
    """One thing that was measured, and the limit it should stay below; None where none was set."""

    title: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def is_held(self) -> bool | None:
        """Tell whether the limit is held."""
        return None if self.limit is None else self.value < self.limit


def make_figures(results: DataResults) -> dict[str, Figure]:
    """Give all figures by name, units in the names."""
    figures: dict[str, Figure] = {}
    for kind, found in results.kinds.items():
        figures |= {f"{kind}_{name}": figure for name, figure in _describe_kind(kind, found).items()}
    return figures


def _describe_kind(kind: str, found: KindResults) -> dict[str, Figure]:
    first, second = found.first, found.second
    second_bytes = max(start.peak_bytes for start in found.second_starts)
    cost = max(found.phases, key=lambda phase: phase.batch_share)
    return {
        "source_gigabytes": Figure(f"{kind}: files", found.source_bytes / GIGABYTE, "GB"),
        "cached_gigabytes": Figure(f"{kind}: cached", found.cached_bytes / GIGABYTE, "GB"),
        "first_start_seconds": Figure(f"{kind}: first start", first.seconds, "s"),
        "first_start_gigabytes": Figure(f"{kind}: first start, memory", first.peak_bytes / GIGABYTE, "GB", 1.0),
        "second_start_seconds": Figure(f"{kind}: second start", second.seconds, "s", 5.0),
        "second_start_import_seconds": Figure(f"{kind}: second start, imports", second.import_seconds, "s"),
        "second_start_processor_seconds": Figure(f"{kind}: second start, processor", second.processor_seconds, "s"),
        "second_start_gigabytes": Figure(f"{kind}: second start, memory", second_bytes / GIGABYTE, "GB", 1.0),
        "batch_milliseconds": Figure(f"{kind}: a batch", 1e3 * (cost.batch_seconds + cost.shuffle_seconds), "ms"),
        "step_seconds": Figure(f"{kind}: a training step ({cost.phase})", cost.step_seconds, "s"),
        "batch_percent": Figure(f"{kind}: a batch, of a training step", 100 * cost.batch_share, "%", 3.0),
        "padded_percent": Figure(
            f"{kind}: padding", 100 * max(phase.padded_share for phase in found.phases), "%", 10.0
        ),
    }


def to_json(results: DataResults) -> dict[str, Any]:
    """Give everything as plain values, the figures first and under their own names."""
    figures = make_figures(results)
    kinds = {
        kind: found._asdict()
        | {
            "first": found.first._asdict(),
            "second_starts": [start._asdict() for start in found.second_starts],
            "phases": [cost._asdict() | {"batch_share": cost.batch_share} for cost in found.phases],
        }
        for kind, found in results.kinds.items()
    }
    limits = {name: figure.limit for name, figure in figures.items() if figure.limit is not None}
    return {name: figure.value for name, figure in figures.items()} | {"limits": limits, "kinds": kinds}
