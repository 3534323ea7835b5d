"""The records of an experiment by place (row, column) of its table, and what they decide."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from auxrnn.experiments.jobs import Folders, Job
from auxrnn.experiments.scales import Scale
from auxrnn.report.records import RunRecord, read_record
from auxrnn.report.results import BarChart, Cell, Claim, Grid, Line, LineChart, Point, Score, Verdict, make_point

ACCURACY = "test accuracy, %"
FEWEST_SEEDS = 3
"""With fewer seeds an ordering is neither claimed nor denied."""

Place = tuple[str, str]
"""Row and column of a table."""
Value = Callable[[RunRecord], float]


def test_accuracy(record: RunRecord) -> float:
    """Return the test accuracy after the last update, in percent."""
    return float(record.scores["test_accuracy"])


def test_error(record: RunRecord) -> float:
    """Return the test error after the last update, in percent."""
    return 100.0 - test_accuracy(record)


class Shown(NamedTuple):
    """What an experiment shows of its records."""

    grids: Sequence[Grid]
    charts: Sequence[LineChart | BarChart] = ()
    claims: Sequence[Claim] = ()
    finding: str = ""
    """Our numbers in a sentence; empty while they are missing."""


class Results(NamedTuple):
    """All that is known of an experiment at one scale."""

    scale: Scale
    jobs: Sequence[Job]
    records: Mapping[str, RunRecord]
    """By name of job; those not done are missing."""

    def find(self, row: str, column: str) -> list[RunRecord]:
        """Return the records of a place by seed."""
        names = [job.name for job in self.jobs if (job.row, job.column) == (row, column)]
        return [self.records[name] for name in names if name in self.records]

    def score(self, row: str, column: str, value: Value = test_accuracy) -> Score | None:
        """Return our numbers for a place; None if there are none yet."""
        found = self.find(row, column)
        return Score(tuple(map(value, found)), tuple(found)) if found else None

    def cell(self, row: str, column: str, paper: float | None, value: Value = test_accuracy) -> Cell:
        """Return a place of a table; a note says why a number is missing."""
        score = self.score(row, column, value)
        is_planned = any((job.row, job.column) == (row, column) for job in self.jobs)
        if score is not None or not (is_planned or paper):
            return Cell(score, paper)
        return Cell(None, paper, "not run yet" if is_planned else "not part of this scale")

    def grid(
        self,
        caption: str,
        paper: Mapping[str, Sequence[float | None]],
        columns: Sequence[str],
        *,
        title: Callable[[str], str] = str,
        value: Value = test_accuracy,
    ) -> Grid:
        """Return our numbers beside the paper's; `title` gives what a row is called here."""
        rows = {
            title(row): [self.cell(row, *place, value) for place in zip(columns, numbers, strict=True)]
            for row, numbers in paper.items()
        }
        return Grid(caption, ACCURACY, columns, rows)

    def line(
        self, row: str, xs: Mapping[str, int], paper: Sequence[tuple[int, float]] = (), *, value: Value = test_accuracy
    ) -> Line:
        """Return the scores of a row by the x of each column, and the paper's."""
        scores = [(x, score) for column, x in xs.items() if (score := self.score(row, column, value)) is not None]
        return Line(row, tuple(sorted(make_point(x, score.values) for x, score in scores)), tuple(sorted(paper)))

    def curves(self, title: str, rows: Mapping[str, str], column: str, *, split: str = "test") -> LineChart:
        """Return how accuracy changes while some rows are trained; `rows` are their titles by name."""
        lines = tuple(Line(shown, self._find_curve(row, column, f"{split}_accuracy")) for row, shown in rows.items())
        return LineChart(title, "updates, pretraining counted", ACCURACY, lines, chance=10.0)

    def _find_curve(self, row: str, column: str, name: str) -> tuple[Point, ...]:
        """Return mean and range over the seeds of one score, at every update at which all seeds have it."""
        records = self.find(row, column)
        found: dict[int, list[float]] = defaultdict(list)
        for record in records:
            for point in record.curve:
                if name in point:
                    found[int(point["total_step"])].append(float(point[name]))
        complete = {step: values for step, values in sorted(found.items()) if len(values) == len(records)}
        return tuple(make_point(step, values) for step, values in complete.items())

    def claim(
        self,
        text: str,
        better: Place,
        worse: Place,
        *,
        by: float = 0.0,
        value: Value = test_accuracy,
        is_ours: bool = False,
    ) -> Claim:
        """Judge whether one place scores above another by so many points."""
        ours, theirs = self.score(*better, value), self.score(*worse, value)
        if ours is None or theirs is None:
            return Claim(text, "open", "not all of its runs are done", is_ours)
        verdict = _judge(ours, theirs, by=by)
        gap = f"{ours.mean - theirs.mean:+.1f} points on average" if verdict != "open" else "too few seeds to compare"
        return Claim(text, verdict, f"{better[0]} {ours.describe()}, {worse[0]} {theirs.describe()}: {gap}", is_ours)

    def tell(self, text: str, *places: Place, value: Value = test_accuracy) -> str:
        """Fill our numbers into a sentence, one for each pair of braces; return nothing while one is missing."""
        scores = [score for place in places if (score := self.score(*place, value)) is not None]
        return text.format(*(score.describe() for score in scores)) if len(scores) == len(places) else ""


def _judge(ours: Score, theirs: Score, *, by: float) -> Verdict:
    """Return whether ours is above theirs by `by` or more: for all seeds (the ranges do not touch), or in the mean."""
    if min(len(ours.values), len(theirs.values)) < FEWEST_SEEDS:
        return "open"
    gaps = (min(ours.values) - max(theirs.values), ours.mean - theirs.mean)
    is_above, is_above_in_mean = (gap >= by if by else gap > 0 for gap in gaps)
    return "holds" if is_above else "within the spread" if is_above_in_mean else "does not hold"


def collect(scale: Scale, jobs: Sequence[Job], folders: Folders) -> Results:
    """Read the records of all jobs that are done, also of seeds that the scale does not plan."""
    found = {(job.row, job.column, job.config.seed): job for job in jobs}
    for job in jobs:
        for seed in folders.find_seeds(job):
            found.setdefault((job.row, job.column, seed), job._replace(config=replace(job.config, seed=seed)))
    everything = sorted(found.values(), key=lambda job: job.config.seed)
    records = {job.name: read_record(folders.record(job.name)) for job in everything}
    return Results(scale, everything, {name: record for name, record in records.items() if record is not None})
