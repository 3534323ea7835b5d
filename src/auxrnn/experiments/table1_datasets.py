"""Table 1: lengths, classes and sizes of the datasets."""

from collections.abc import Iterator
from typing import NamedTuple

from auxrnn.experiments.collected import Results
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.scales import CIFAR10, DBPEDIA, DOGS, MNIST, PMNIST, Scale
from auxrnn.report.results import Cell, Claim, Grid, LineChart, Row, Score
from auxrnn.report.run_records import RunRecord

TITLE = "Table 1: the datasets"
SUMMARY = "How long the sequences are, how many classes they have, and how many there are to train on, counted here."


class Counts(NamedTuple):
    """One line of the table."""

    length: float
    num_classes: int
    train_size: int


PAPER = {
    MNIST: Counts(784, 10, 60_000),
    PMNIST: Counts(784, 10, 60_000),
    CIFAR10: Counts(1024, 10, 50_000),
    DOGS: Counts(1600, 120, 150_000),
    DBPEDIA: Counts(300, 14, 560_000),
}
"""The paper gives Stanford Dogs at 1,600 to 16,384 steps: eight sizes of which this is the smallest."""
COLUMNS = ("length", "classes", "training sequences")


def runs(scale: Scale) -> Iterator[Job]:
    """Yield one count of each dataset, as the scale reads it."""
    for dataset in PAPER:
        yield Job(dataset, "", scale.config(dataset, seed=0, pretrain=False, objective="none"), "data")


def claims(_results: Results) -> list[Claim]:
    """Claim nothing: the table shows by itself where our data is shorter or less than the paper's."""
    return []


def conclude(results: Results) -> str:
    """Say how long the sequences are beside the paper's."""
    found = {dataset: results.find(dataset, "") for dataset in PAPER}
    if not all(found.values()):
        return ""
    lengths = (
        f"{dataset} {_count(records[0]).length:,.0f} ({PAPER[dataset].length:,.0f})"
        for dataset, records in found.items()
    )
    return f"Median lengths here, and in brackets the paper's mean ones: {', '.join(lengths)} steps."


def _count(record: RunRecord) -> Counts:
    classes, median = record.scores["classes"]["train"], record.scores["lengths"]["median"]
    # What is counted is the files; training cuts longer sequences, and the median with them.
    longest = record.settings["max_length"] or median
    return Counts(min(median, longest), len(classes), sum(classes.values()))


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Give the table with our counts beside the paper's."""
    rows = []
    for dataset, paper in PAPER.items():
        found = results.find(dataset, "")
        scores: list[Score | None] = [_single(record, value) for record in found[:1] for value in _count(record)]
        note = "" if found else "not counted yet"
        cells = tuple(
            Cell(score, number, note) for score, number in zip(scores or [None] * len(paper), paper, strict=True)
        )
        rows.append(Row(dataset, cells))
    return [
        Grid(
            "Length of the sequences as this scale reads them (ours the median, the paper's the mean), and how many"
            " there are to train on",
            "",
            COLUMNS,
            tuple(rows),
            decimals=0,
            is_drawn=False,
        )
    ], []


def _single(record: RunRecord, value: float) -> Score:
    return Score((value,), (0,), (record.seconds,), (record.name,))
