"""What a reproduced table or figure is, as plain values: ours beside the paper's, and what the paper says of it.

Experiments make these from run records; Markdown tables, plots and the results page are made from nothing else.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple

from auxrnn.report.records import RunRecord

NORMAL_QUANTILE = 1.959964
"""Of 95 % in the middle."""
Verdict = Literal["holds", "within the spread", "does not hold", "open"]
"""Of a claim: beyond the spread of the seeds, only in the mean, not at all, or not to be said yet."""


class Score(NamedTuple):
    """Our numbers for one cell: the value of each run, in the order of the seeds."""

    values: tuple[float, ...]
    runs: tuple[RunRecord, ...]

    @property
    def mean(self) -> float:
        """Return the mean over the seeds."""
        return fmean(self.values)

    def describe(self, decimals: int = 1) -> str:
        """Return the mean with the standard deviation over the seeds, or the single number marked as one seed."""
        spread = f"\u00b1 {stdev(self.values):.{decimals}f}" if len(self.values) > 1 else "(one seed)"
        return f"{self.mean:.{decimals}f} {spread}"


class Cell(NamedTuple):
    """One place of a table; either side may be missing, and a note says why ours is."""

    ours: Score | None
    paper: float | None
    note: str = ""


class Grid(NamedTuple):
    """A table as the paper prints it."""

    caption: str
    unit: str
    """Such as "test accuracy, %"."""
    columns: Sequence[str]
    rows: Mapping[str, Sequence[Cell]]
    decimals: int = 1
    is_drawn: bool = True
    """Whether chance has a part in the numbers, so that seeds and spreads mean something; counts have none."""

    @property
    def sides(self) -> tuple[str, ...]:
        """Return the sides that the table shows: the paper's only if it has any number in this table."""
        has_paper = any(cell.paper is not None for cells in self.rows.values() for cell in cells)
        return ("ours", "paper") if has_paper else ("ours",)

    def describe(self) -> str:
        """Return the caption with the unit, and over how many seeds the means are."""
        facts = [fact for fact in (self.unit, self._describe_seeds() if self.is_drawn else "") if fact]
        return f"{self.caption} ({'; '.join(facts)})" if facts else self.caption

    def transpose(self) -> "Grid":
        """Return the table with rows and columns exchanged."""
        rows = zip(self.columns, zip(*self.rows.values(), strict=True), strict=True)
        return self._replace(columns=tuple(self.rows), rows=dict(rows))

    def _describe_seeds(self) -> str:
        counts = {len(cell.ours.values) for cells in self.rows.values() for cell in cells if cell.ours}
        if not counts:
            return "not measured here yet"
        if counts == {1}:
            return "ours: one seed, so no spread is known"
        seeds = " to ".join(map(str, sorted({min(counts), max(counts)})))
        return f"ours: mean \u00b1 standard deviation of {seeds} seeds"

    def texts(self, cell: Cell) -> tuple[str, ...]:
        """Return the text of each side of a cell: its number, or the note or a dash if it has none."""
        ours, paper = cell.note or "-", "-"
        if cell.ours:
            ours = cell.ours.describe(self.decimals) if self.is_drawn else f"{cell.ours.mean:,.{self.decimals}f}"
        if cell.paper is not None:
            paper = f"{cell.paper:,.{self.decimals}f}"
        return (ours, paper)[: len(self.sides)]


class Point(NamedTuple):
    """A place on a line: the mean and the lowest and highest of the seeds."""

    x: float
    y: float
    low: float
    high: float


def make_point(x: int | float, values: Sequence[float]) -> Point:
    """Return the point of some seeds' values."""
    return Point(float(x), fmean(values), min(values), max(values))


class Line(NamedTuple):
    """One system on a chart: as measured here and as published; either may be empty."""

    title: str
    ours: tuple[Point, ...]
    paper: tuple[tuple[float, float], ...] = ()


class LineChart(NamedTuple):
    """Lines over one axis, or where the paper's x counts something else, over two."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    is_log: bool = False
    """Whether both axes are logarithmic; `is_log_x`: x alone."""
    is_log_x: bool = False
    is_reversed: bool = False
    """Whether x falls from left to right, as in the paper's Figure 4."""
    paper_x_label: str | None = None
    """What the paper's x counts where ours counts something else; the paper's lines then have axes of their own."""
    chance: float | None = None
    """Height of guessing in our numbers."""
    level: tuple[str, Cell] | None = None
    """A number that lines are compared with, under its title."""
    pretraining: int = 0
    """Where the shaded part of the updates ends that are made without labels."""


class Picture(NamedTuple):
    """Anything else that is drawn."""

    make: Callable[[float], Any]
    """Returns the figure in a width in pixels; what draws it is slow to import, so it is not named here."""


class BarChart(NamedTuple):
    """Bars of one kind of number, the first being what the others are compared with."""

    title: str
    x_label: str
    bars: Mapping[str, Cell]


class Claim(NamedTuple):
    """A sentence that our numbers can contradict: the paper's, or a question of our own."""

    text: str
    verdict: Verdict
    detail: str
    """The numbers that decided it."""
    is_ours: bool = False


class Outcome(NamedTuple):
    """A table or figure of the paper, reproduced."""

    name: str
    """What `auxrnn reproduce` calls it: table2."""
    title: str
    """What the paper calls it, and what it is about."""
    scale: str
    summary: str
    """What is compared, and how ours differs from the paper's."""
    finding: str
    """Our numbers in a sentence; empty while they are missing."""
    grids: Sequence[Grid]
    charts: Sequence[LineChart | BarChart]
    claims: Sequence[Claim]
    settings: Sequence[tuple[str, str]]
    """What all its runs share, as pairs of a name and a value."""
    num_done: int
    num_planned: int
    seconds: float
    """Training time of all finished runs together."""

    @property
    def claims_by_source(self) -> dict[str, list[Claim]]:
        """Return the paper's claims and then our own, each under its heading; a heading without claims is left out."""
        found = {
            "Claims of the paper, checked against our numbers": [claim for claim in self.claims if not claim.is_ours],
            "Questions of our own, beyond the paper": [claim for claim in self.claims if claim.is_ours],
        }
        return {heading: claims for heading, claims in found.items() if claims}

    @property
    def progress(self) -> str:
        """Return the scale, how many runs are done, and how long they trained, as a sentence."""
        if self.num_done == 0:
            return f"Scale {self.scale}: none of {self.num_planned} runs is done yet."
        all_done = "all" if self.num_done == self.num_planned else f"{self.num_done} of"
        # Counting a dataset or timing an update trains nothing.
        shared = "(shared pretraining is counted in each run)"
        time = f", {describe_duration(self.seconds)} of training in all {shared}" if self.seconds else ""
        return f"Scale {self.scale}: {all_done} {self.num_planned} runs are done{time}."


def find_interval(num_right: int | float, num_examples: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of an accuracy in percent (Wilson, 1927), for independent sequences."""
    share, squared = num_right / num_examples, NORMAL_QUANTILE**2 / num_examples
    middle = (share + squared / 2) / (1 + squared)
    reach = math.sqrt(squared * (share * (1 - share) + squared / 4)) / (1 + squared)
    return 100 * max(middle - reach, 0.0), 100 * min(middle + reach, 1.0)


def describe_duration(seconds: int | float) -> str:
    """Return a time in its two largest units: `31 s`, `1 min 15 s`, `3 h 05 min`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02} min"


def describe_number(value: int | float, digits: int = 3) -> str:
    """Return a number in three digits, or as many as a large one has before its point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
