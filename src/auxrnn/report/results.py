"""What a reproduced table or figure is, as plain values: ours beside the paper's, and what the paper says of it.

Experiments make these from run records; Markdown tables, plots and the results page are made from nothing else.
"""

import statistics
from collections.abc import Sequence
from typing import Literal, NamedTuple

Verdict = Literal["holds", "within the spread", "does not hold", "open"]
"""Of a claim: beyond the spread of the seeds, only in the mean, not at all, or not to be said yet."""


class Score(NamedTuple):
    """Our numbers for one cell, one for each seed; `seconds` and `records` go with them one to one."""

    values: tuple[float, ...]
    seeds: tuple[int, ...]
    seconds: tuple[float, ...]
    records: tuple[str, ...]
    """Names of the run records: files `records/NAME.json` beside the page."""

    @property
    def mean(self) -> float:
        """Return the mean over the seeds."""
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float | None:
        """Return the standard deviation over the seeds; None of a single one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


class Cell(NamedTuple):
    """One place of a table; either side may be missing, and a note says why ("infeasible", "not run")."""

    ours: Score | None
    paper: float | None
    note: str = ""


class Row(NamedTuple):
    """One line of a table."""

    title: str
    cells: tuple[Cell, ...]


class Grid(NamedTuple):
    """A table as the paper prints it."""

    caption: str
    unit: str
    """Such as "test accuracy, %"."""
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    decimals: int = 1
    is_drawn: bool = True
    """Whether chance has a part in the numbers, so that seeds and spreads mean something; counts have none."""

    @property
    def sides(self) -> tuple[str, ...]:
        """Return the sides that the table shows: the paper's only if it has any number in this table."""
        has_paper = any(cell.paper is not None for row in self.rows for cell in row.cells)
        return ("ours", "paper") if has_paper else ("ours",)

    def describe(self) -> str:
        """Return the caption with the unit, and over how many seeds the means are."""
        facts = [fact for fact in (self.unit, self._describe_seeds() if self.is_drawn else "") if fact]
        return f"{self.caption} ({'; '.join(facts)})" if facts else self.caption

    def _describe_seeds(self) -> str:
        counts = {len(cell.ours.values) for row in self.rows for cell in row.cells if cell.ours}
        if not counts:
            return "not measured here yet"
        if counts == {1}:
            return "ours: one seed, so no spread is known"
        seeds = " to ".join(map(str, sorted({min(counts), max(counts)})))
        return f"ours: mean \u00b1 standard deviation of {seeds} seeds"

    def texts(self, cell: Cell) -> tuple[str, ...]:
        """Return the text of each side of a cell; a missing side is the note, once, or a dash."""
        ours, paper = cell.note or "-", (cell.note if cell.ours else "") or "-"
        if cell.ours and self.is_drawn:
            ours = describe_score(cell.ours, decimals=self.decimals)
        elif cell.ours:
            ours = f"{cell.ours.mean:,.{self.decimals}f}"
        if cell.paper is not None:
            ours += f" ({cell.note})" if cell.ours and cell.note else ""
            paper = f"{cell.paper:,.{self.decimals}f}"
        return (ours, paper)[: len(self.sides)]


class Point(NamedTuple):
    """A place on a line: the mean and the lowest and highest of the seeds."""

    x: float
    y: float
    low: float
    high: float


class Line(NamedTuple):
    """One system on a chart: as measured here and as published; either may be empty."""

    title: str
    ours: tuple[Point, ...]
    paper: tuple[tuple[float, float], ...] = ()


class Level(NamedTuple):
    """A height that lines are compared with, the same at any x; either side may be missing."""

    title: str
    ours: float | None
    paper: float | None


class Band(NamedTuple):
    """A shaded part of a chart, from x = 0 on."""

    title: str
    end: float


class LineChart(NamedTuple):
    """Lines over one axis; `is_log` is for both axes. Where axes differ, the paper's are `paper_x_label` and so on."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    is_log: bool = False
    is_log_x: bool = False
    """Whether x alone grows by factors."""
    is_reversed: bool = False
    """Whether x falls from left to right, as the paper's Figure 4 has it."""
    paper_x_label: str | None = None
    """What the paper's x counts, where it is not what ours counts (another length, other updates)."""
    chance: float | None = None
    """Height of guessing in our numbers."""
    level: Level | None = None
    band: Band | None = None


class Bar(NamedTuple):
    """One bar: ours with its spread, and what the paper says, both as the same kind of number."""

    title: str
    ours: Score | None
    paper: float | None


class BarChart(NamedTuple):
    """Bars of one kind of number, the first being what the others are compared with."""

    title: str
    x_label: str
    bars: tuple[Bar, ...]


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
    """In plain words: what is compared, and how ours differs from the paper's."""
    finding: str
    """In plain words: what our numbers are; empty while they are missing."""
    grids: tuple[Grid, ...]
    charts: tuple[LineChart | BarChart, ...]
    claims: tuple[Claim, ...]
    settings: tuple[tuple[str, str], ...]
    """What all its runs share, as pairs of a name and a value."""
    command: str
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
        done = f"Scale {self.scale}: {all_done} {self.num_planned} runs are done"
        # Counting a dataset or timing an update trains nothing.
        if not self.seconds:
            return f"{done}."
        time = describe_duration(self.seconds)
        return f"{done}, {time} of training in all (shared pretraining is counted in each run)."


def describe_score(score: Score, *, decimals: int) -> str:
    """Return the mean with its spread, or the single number marked as one seed."""
    spread = score.spread
    if spread is None:
        return f"{score.mean:.{decimals}f} (one seed)"
    return f"{score.mean:.{decimals}f} ± {spread:.{decimals}f}"


def describe_duration(seconds: int | float) -> str:
    """Return a time in its two largest units: `31 s`, `1 min 15 s`, `3 h 05 min`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02} min"


def describe_number(value: int | float) -> str:
    """Return a number in three digits, or as many as a large one has before its point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def to_line(
    title: str, scores: Sequence[tuple[int | float, Score]], paper: Sequence[tuple[int | float, float]] = ()
) -> Line:
    """Make a line of scores by their x."""
    points = [Point(float(x), score.mean, min(score.values), max(score.values)) for x, score in scores]
    return Line(title, tuple(sorted(points)), tuple(sorted((float(x), y) for x, y in paper)))


def judge(first: Score | None, second: Score | None, *, by: float = 0.0, fewest: int = 3) -> Verdict:
    """Return whether the first scores above the second, by `by` or more.

    It holds if every seed of the first is above every seed of the second by that much: then the ranges of the seeds do
    not touch. Fewer seeds than `fewest` on either side decide nothing.
    """
    if first is None or second is None or min(len(first.values), len(second.values)) < fewest:
        return "open"
    least = min(first.values) - max(second.values)
    is_above, is_above_in_mean = (gap >= by if by else gap > 0 for gap in (least, first.mean - second.mean))
    return "holds" if is_above else "within the spread" if is_above_in_mean else "does not hold"
