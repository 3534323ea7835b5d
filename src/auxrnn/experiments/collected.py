"""The records of an experiment's jobs, gathered by the places of its table, and claims judged on them."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from auxrnn.experiments.jobs import Job, find_seeds
from auxrnn.experiments.scales import Scale
from auxrnn.experiments.workers import Folders
from auxrnn.report.results import Cell, Claim, Point, Score, describe_score, judge
from auxrnn.report.run_records import RunRecord, read_record

FEWEST_SEEDS = 3
"""Below this an ordering is neither claimed nor denied."""

Value = Callable[[RunRecord], float]


def test_accuracy(record: RunRecord) -> float:
    """Give the accuracy after the last update, in percent."""
    return float(record.scores["test_accuracy"])


def test_error(record: RunRecord) -> float:
    """Give the part of the test split that is wrong after the last update, in percent."""
    return 100.0 - test_accuracy(record)


class Results(NamedTuple):
    """All that is known of an experiment at one scale."""

    scale: Scale
    jobs: Sequence[Job]
    records: dict[str, RunRecord]
    """By the names of jobs; those not done are missing."""

    def find(self, row: str, column: str) -> list[RunRecord]:
        """Give the records of one place, by seed."""
        names = [job.name for job in self.jobs if (job.row, job.column) == (row, column)]
        return [self.records[name] for name in names if name in self.records]

    def score(self, row: str, column: str, value: Value = test_accuracy) -> Score | None:
        """Give our numbers for one place; None if there are none yet."""
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
        """Give one place of a table; where we have no number the note says why."""
        score = self.score(row, column, value)
        is_planned = any((job.row, job.column) == (row, column) for job in self.jobs)
        if score is not None or not (is_planned or paper):
            return Cell(score, paper)
        return Cell(None, paper, "not run yet" if is_planned else "not part of this scale")

    @property
    def seconds(self) -> float:
        """Give the training time of all finished runs, each counted once."""
        return sum(record.seconds for record in self.records.values())


def collect(scale: Scale, jobs: Sequence[Job], folders: Folders) -> Results:
    """Read the records of all jobs that are done, and of the same jobs with other seeds than are planned."""
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


class Place(NamedTuple):
    """A place of a table."""

    row: str
    column: str


def claim_above(
    results: Results, text: str, first: Place, second: Place, *, by: float = 0.0, value: Value = test_accuracy
) -> Claim:
    """Judge that one place of the table is above another, by so many points; the verdict counts every seed."""
    ours, theirs = results.score(*first, value), results.score(*second, value)
    if ours is None or theirs is None:
        return Claim(text, "open", "not all of its runs are done")
    numbers = f"{first.row} {describe_score(ours, decimals=1)}, {second.row} {describe_score(theirs, decimals=1)}"
    if min(len(ours.values), len(theirs.values)) < FEWEST_SEEDS:
        return Claim(text, "open", f"{numbers}: too few seeds for an ordering")
    gap = ours.mean - theirs.mean
    return Claim(text, judge(ours, theirs, by=by, fewest=FEWEST_SEEDS), f"{numbers}: {gap:+.1f} points in the mean")


def claim_below(results: Results, better: Place, worse: Place) -> Claim:
    """Judge that one place of a table has less error than another."""
    text = f"The error of {better.row} is below that of {worse.row}"
    return claim_above(results, text, worse, better, value=test_error)


def tell(results: Results, text: str, *places: Place, value: Value = test_accuracy) -> str:
    """Fill our numbers into a sentence, one for each pair of braces; give nothing while one of them is missing."""
    scores = [score for place in places if (score := results.score(*place, value)) is not None]
    if len(scores) < len(places):
        return ""
    return text.format(*(describe_score(score, decimals=1) for score in scores))


def tell_errors(results: Results, places: Sequence[Place]) -> str:
    """Say the errors of some rows; nothing while one of them is missing."""
    errors = ", ".join(f"{place.row} {{}}" for place in places)
    return tell(results, f"Wrong answers in %, after as many updates each: {errors}.", *places, value=test_error)


def trace(records: Sequence[RunRecord], name: str) -> tuple[Point, ...]:
    """Give the mean and the range over the seeds of one score, at every update at which all of them have it."""
    found: dict[int, list[float]] = defaultdict(list)
    for record in records:
        for point in record.curve:
            if name in point:
                found[int(point["total_step"])].append(float(point[name]))
    whole = {step: values for step, values in sorted(found.items()) if len(values) == len(records)}
    return tuple(Point(float(step), fmean(values), min(values), max(values)) for step, values in whole.items())
