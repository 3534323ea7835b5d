"""The records of an experiment by place (row, column) of its table, and the claims that they decide."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from auxrnn.experiments.jobs import Folders, Job, find_seeds
from auxrnn.experiments.scales import Scale
from auxrnn.report.results import Cell, Claim, Point, Row, Score, describe_score, judge
from auxrnn.report.run_records import RunRecord, read_record

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
        if not found:
            return None
        return Score(
            values=tuple(value(record) for record in found),
            seeds=tuple(record.seed for record in found),
            seconds=tuple(record.seconds for record in found),
            records=tuple(record.name for record in found),
        )

    def cell(self, row: str, column: str, paper: float | None, value: Value = test_accuracy) -> Cell:
        """Return a place of a table; a note says why a number is missing."""
        score = self.score(row, column, value)
        is_planned = any((job.row, job.column) == (row, column) for job in self.jobs)
        if score is not None or not (is_planned or paper):
            return Cell(score, paper)
        return Cell(None, paper, "not run yet" if is_planned else "not part of this scale")

    def rows(
        self,
        paper: Mapping[str, Sequence[float | None]],
        columns: Sequence[str],
        *,
        title: Callable[[str], str] = str,
        value: Value = test_accuracy,
    ) -> tuple[Row, ...]:
        """Return our numbers beside the paper's, row by row; `title` gives what a row is called here."""
        return tuple(
            Row(title(row), tuple(self.cell(row, *place, value) for place in zip(columns, numbers, strict=True)))
            for row, numbers in paper.items()
        )

    @property
    def seconds(self) -> float:
        """Training time of all finished runs, each counted once."""
        return sum(record.seconds for record in self.records.values())

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
        """Judge that one place scores above another, by so many points; the verdict counts every seed."""
        ours, theirs = self.score(*better, value), self.score(*worse, value)
        if ours is None or theirs is None:
            return Claim(text, "open", "not all of its runs are done", is_ours)
        numbers = f"{better[0]} {describe_score(ours, decimals=1)}, {worse[0]} {describe_score(theirs, decimals=1)}"
        if min(len(ours.values), len(theirs.values)) < FEWEST_SEEDS:
            return Claim(text, "open", f"{numbers}: too few seeds for an ordering", is_ours)
        detail = f"{numbers}: {ours.mean - theirs.mean:+.1f} points in the mean"
        return Claim(text, judge(ours, theirs, by=by, fewest=FEWEST_SEEDS), detail, is_ours)

    def claim_less_error(self, better: Place, worse: Place) -> Claim:
        """Judge that one place has less error than another."""
        text = f"{better[0]} has a lower error than {worse[0]}"
        return self.claim(text, worse, better, value=test_error)

    def tell(self, text: str, *places: Place, value: Value = test_accuracy) -> str:
        """Fill our numbers into a sentence, one for each pair of braces; return nothing while one is missing."""
        scores = [score for place in places if (score := self.score(*place, value)) is not None]
        if len(scores) < len(places):
            return ""
        return text.format(*(describe_score(score, decimals=1) for score in scores))

    def tell_errors(self, rows: Iterable[str], column: str) -> str:
        """Return the errors of some rows as a sentence; nothing while one is missing."""
        places = [(row, column) for row in rows]
        errors = ", ".join(f"{row} {{}}" for row, _ in places)
        return self.tell(f"Test error in %, all after the same number of updates: {errors}.", *places, value=test_error)

    def curve(self, row: str, column: str, name: str) -> tuple[Point, ...]:
        """Return mean and range over the seeds of one score, at every update at which all seeds have it."""
        records = self.find(row, column)
        found: dict[int, list[float]] = defaultdict(list)
        for record in records:
            for point in record.curve:
                if name in point:
                    found[int(point["total_step"])].append(float(point[name]))
        complete = {step: values for step, values in sorted(found.items()) if len(values) == len(records)}
        return tuple(Point(float(step), fmean(values), min(values), max(values)) for step, values in complete.items())


def collect(scale: Scale, jobs: Sequence[Job], folders: Folders) -> Results:
    """Read the records of all jobs that are done, also of seeds that the scale does not plan."""
    planned = {(job.row, job.column, job.config.seed) for job in jobs}
    others = {
        (job.row, job.column, seed): job._replace(config=replace(job.config, seed=seed))
        for job in jobs
        for seed in find_seeds(job.name, folders.records)
        if (job.row, job.column, seed) not in planned
    }
    everything = sorted([*jobs, *others.values()], key=lambda job: job.config.seed)
    found = {job.name: read_record(folders.record(job.name)) for job in everything}
    return Results(scale, everything, {name: record for name, record in found.items() if record is not None})
