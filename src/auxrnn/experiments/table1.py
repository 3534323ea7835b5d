"""Table 1: lengths, classes and sizes of the datasets."""

from collections.abc import Iterator
from typing import NamedTuple

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results
from auxrnn.experiments.scales import CIFAR10, DBPEDIA, DOGS, MNIST, PMNIST, Scale
from auxrnn.report.results import Cell, Claim, Grid, LineChart, Row, Score
from auxrnn.report.run_records import RunRecord

TITLE = "Table 1: the datasets"
SUMMARY = "Length of the sequences, number of classes and number of training sequences, as counted here."


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
"""The paper has Stanford Dogs at eight sizes from 1,600 to 16,384 steps; this is the smallest."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield one count of each dataset, as the scale reads it."""
    for dataset in PAPER:
        yield Job(dataset, "", scale.lstm(dataset, seed=0), "data")


def claims(_results: Results) -> list[Claim]:
    """Return nothing: the table shows where our data is shorter or less than the paper's."""
    return []


def conclude(results: Results) -> str:
    """Return our lengths beside the paper's."""
    found = {dataset: results.find(dataset, "") for dataset in PAPER}
    if not all(found.values()):
        return ""
    lengths = (
        f"{dataset} {_count(records[0]).length:,.0f} ({PAPER[dataset].length:,.0f})"
        for dataset, records in found.items()
    )
    return f"Median length in steps, and the paper's mean length in brackets: {', '.join(lengths)}."


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Return the table with our counts beside the paper's."""
    rows = tuple(Row(dataset, _make_cells(results.find(dataset, ""), PAPER[dataset])) for dataset in PAPER)
    caption = "Length of the sequences at this scale (ours: median, paper: mean), classes and training sequences"
    return [Grid(caption, "", ("length", "classes", "training sequences"), rows, decimals=0, is_drawn=False)], []


def _make_cells(found: list[RunRecord], paper: Counts) -> tuple[Cell, ...]:
    if not found:
        return tuple(Cell(None, number, "not counted yet") for number in paper)
    record = found[0]
    scores = (Score((value,), (0,), (record.seconds,), (record.name,)) for value in _count(record))
    return tuple(Cell(score, number) for score, number in zip(scores, paper, strict=True))


def _count(record: RunRecord) -> Counts:
    classes, median = record.scores["classes"]["train"], record.scores["lengths"]["median"]
    # Files are counted whole; training cuts longer sequences, and the median with them.
    longest = record.settings["max_length"] or median
    return Counts(min(median, longest), len(classes), sum(classes.values()))
