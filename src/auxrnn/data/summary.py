"""What can be said of a dataset in a few lines: how many, how long, of which classes."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from auxrnn.data.collect import NO_PART, PARTS, Table
from auxrnn.data.datasets import Dataset
from auxrnn.data.formats import Format
from auxrnn.data.inputs import count_unknown
from auxrnn.data.sequences import NO_LABEL, Split
from auxrnn.data.splits import Division
from auxrnn.data.texts import TextFormat

MOST_NAMED = 3


class Lengths(NamedTuple):
    """The shortest, the middle and the longest of some lengths."""

    shortest: int
    median: int
    longest: int

    def __str__(self) -> str:
        """Say them; one number where all are the same."""
        if self.shortest == self.longest:
            return f"{self.longest:,} steps"
        return f"{self.shortest:,} to {self.longest:,} steps, median {self.median:,}"


def measure_lengths(length_N: Int64[np.ndarray, " N"]) -> Lengths:
    """Give the shortest, the median and the longest."""
    return Lengths(int(length_N.min()), int(np.median(length_N)), int(length_N.max()))


def count_lengths(length_N: Int64[np.ndarray, " N"], num_bins: int) -> list[tuple[int, int, int]]:
    """Give bins of lengths, each with its first and last length and how many sequences have one of these.

    The last bin takes in the longest hundredth, so that a single long sequence does not flatten the others.
    """
    last = np.ceil(np.percentile(length_N, 99))
    edges = np.unique(np.linspace(length_N.min(), last + 1, num_bins + 1).astype(np.int64))
    edges[-1] = length_N.max() + 1
    counts, _ = np.histogram(length_N, edges)
    return list(zip(edges[:-1].tolist(), (edges[1:] - 1).tolist(), counts.tolist(), strict=True))


def count_parts(table: Table) -> dict[str, int]:
    """Count the examples of each split that the files make, and of none."""
    counts: dict[str, int] = {part: int((table.part_N == number).sum()) for number, part in enumerate(PARTS)}
    counts["undivided"] = int((table.part_N == NO_PART).sum())
    return {part: count for part, count in counts.items() if count}


def describe_division(dataset: Dataset, division: Division) -> str:
    """Say how many examples each split has: "8,000 to train (300 without a label), 2,000 to test"."""
    num_unlabeled = len(division.train) - len(division.labeled)
    without = f" ({num_unlabeled:,} without a label)" if num_unlabeled else ""
    parts = [f"{len(division.train):,} sequences to train{without}"]
    for rows, what in ((division.validation, "to choose by"), (division.test, "to test")):
        num_labeled = int((dataset.table.label_N[rows] != NO_LABEL).sum())
        parts += [f"{num_labeled:,} {what}"] if num_labeled else []
    return ", ".join(parts)


def describe_skipped(dataset: Dataset) -> str:
    """Say how many examples were left out, and name the first; nothing where none was."""
    if not dataset.num_skipped:
        return ""
    named = ", ".join(dataset.skipped[:MOST_NAMED])
    more = dataset.num_skipped - MOST_NAMED
    return f"{dataset.num_skipped:,} left out: {named}{f', and {more:,} more' if more > 0 else ''}"


def describe_alphabet(form: Format, train: Split) -> str:
    """Say how many characters a network that reads texts tells apart, and how much of the training data they miss."""
    if not isinstance(form, TextFormat) or form.tokens == "bytes":
        return ""
    unknown, total = count_unknown(train, form).total(), int(train.length_N.sum())
    return f"alphabet of {len(form.alphabet or '')} characters; {100 * unknown / total:.2f} % of the text is others"
