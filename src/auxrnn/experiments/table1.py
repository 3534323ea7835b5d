"""Table 1: the datasets.

Length of the sequences, number of classes and number of training sequences, as counted here.
"""

import functools
from collections.abc import Iterator

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Shown
from auxrnn.experiments.scales import CIFAR10, DBPEDIA, DOGS, MNIST, PMNIST, Scale
from auxrnn.report.records import RunRecord
from auxrnn.report.results import Grid

PAPER = {
    MNIST: (784, 10, 60_000),
    PMNIST: (784, 10, 60_000),
    CIFAR10: (1024, 10, 50_000),
    DOGS: (1600, 120, 150_000),
    DBPEDIA: (300, 14, 560_000),
}
"""The paper has Stanford Dogs at eight sizes from 1,600 to 16,384 steps; this is the smallest."""
COLUMNS = ("length", "classes", "training sequences")
CAPTION = "Length of the sequences at this scale (ours: median, paper: mean), classes and training sequences"


def runs(scale: Scale) -> Iterator[Job]:
    """Yield one count of each dataset, as the scale reads it."""
    for dataset in PAPER:
        yield Job(dataset, "", scale.config("LSTM", dataset, seed=0), "data")


def show(results: Results) -> Shown:
    """Return the table with our counts beside the paper's, and all lengths in a sentence."""
    values = [functools.partial(_count, column) for column in COLUMNS]
    rows = {
        dataset: [results.cell(dataset, "", *pair) for pair in zip(paper, values, strict=True)]
        for dataset, paper in PAPER.items()
    }
    scores = {dataset: score for dataset in PAPER if (score := results.score(dataset, "", values[0])) is not None}
    lengths = (f"{dataset} {score.mean:,.0f} ({PAPER[dataset][0]:,.0f})" for dataset, score in scores.items())
    finding = f"Median length in steps, and the paper's mean length in brackets: {', '.join(lengths)}."
    grid = Grid(CAPTION, "", COLUMNS, rows, decimals=0, is_drawn=False)
    return Shown([grid], finding=finding if len(scores) == len(PAPER) else "")


def _count(column: str, record: RunRecord) -> float:
    classes, median = record.scores["classes"]["train"], record.scores["lengths"]["median"]
    if column == "length":
        # Files are counted whole; training cuts longer sequences, and the median with them.
        return float(min(median, record.settings["max_length"] or median))
    return float(len(classes) if column == "classes" else sum(classes.values()))
