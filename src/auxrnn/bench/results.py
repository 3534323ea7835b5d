"""What the benchmark found, as plain values: the only thing that ratios, tables and plots are made from."""

from typing import NamedTuple

from auxrnn.bench.sizes import Sizes

OURS = "auxrnn"


class Entry(NamedTuple):
    """One contender; without `seconds` it was not measured, and `note` says why. `flop` is the arithmetic counted."""

    contender: str
    seconds: float | None
    flop: float | None = None
    note: str = ""

    @property
    def gflops(self) -> float | None:
        """Give billions of the counted operations in a second."""
        return None if self.seconds is None or self.flop is None else self.flop / self.seconds / 1e9


class Case(NamedTuple):
    """Contenders that did the same work side by side, and the one that the others are compared with."""

    title: str
    baseline: str
    entries: list[Entry]
    limit: Entry | None = None

    def entry(self, contender: str) -> Entry:
        """Find one contender."""
        (found,) = [entry for entry in self.entries if entry.contender == contender]
        return found

    def speed_up(self, contender: str) -> float | None:
        """Tell how many times as fast as the baseline a contender is; None where one of them was not measured."""
        ours, theirs = self.entry(contender).seconds, self.entry(self.baseline).seconds
        return None if ours is None or theirs is None else theirs / ours


class MemoryPoint(NamedTuple):
    """Peak resident memory of the second training step, less what was resident before the first.

    So neither the input nor the weights are counted. Without `peak_bytes` it was not measured, and `note` says why.
    """

    system: str
    num_steps: int
    peak_bytes: int | None
    note: str = ""


class Results(NamedTuple):
    """All measurements of one run of the benchmark; `steps` by length of the sequences."""

    sizes: Sizes
    num_threads: int
    reading: Case
    reading_busy: Case
    window: Case
    streaming: Case
    steps: dict[int, Case]
    memory: list[MemoryPoint]

    def peak(self, system: str, num_steps: int) -> int | None:
        """Find the peak memory of a system at a length."""
        (found,) = [point for point in self.memory if (point.system, point.num_steps) == (system, num_steps)]
        return found.peak_bytes
