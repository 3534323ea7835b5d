"""What data holds, in numbers and words: counts, lengths, classes, and everything that is wrong with it.

Dimension letters: `N` examples, `C` classes.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from auxrnn.config import DataConfig
from auxrnn.data.collect import NO_PART, PARTS, Facts, Table, collect, open_sources
from auxrnn.data.datasets import Dataset
from auxrnn.data.examples import Problems
from auxrnn.data.formats import Format
from auxrnn.data.inputs import count_unknown
from auxrnn.data.sequences import NO_LABEL, Split
from auxrnn.data.sources import find_sources
from auxrnn.data.splits import Division, divide
from auxrnn.data.texts import TextFormat
from auxrnn.errors import RunError, UsageError

MOST_NAMED = 3


class Lengths(NamedTuple):
    """The shortest, the middle and the longest of some lengths."""

    shortest: int
    median: int
    longest: int

    def __str__(self) -> str:
        """Return them in words; one number if all are the same."""
        if self.shortest == self.longest:
            return f"{self.longest:,} steps"
        return f"{self.shortest:,} to {self.longest:,} steps, median {self.median:,}"


def measure_lengths(length_N: Int64[np.ndarray, " N"]) -> Lengths:
    """Return the shortest, the median and the longest."""
    return Lengths(int(length_N.min()), int(np.median(length_N)), int(length_N.max()))


def count_lengths(length_N: Int64[np.ndarray, " N"], num_bins: int) -> list[tuple[int, int, int]]:
    """Return bins of lengths: the first and last length of each, and its number of sequences.

    The last bin takes in the longest hundredth, so that a single long sequence does not flatten the others.
    """
    last = np.ceil(np.percentile(length_N, 99))
    edges = np.unique(np.linspace(length_N.min(), last + 1, num_bins + 1).astype(np.int64))
    edges[-1] = length_N.max() + 1
    counts, _ = np.histogram(length_N, edges)
    return list(zip(edges[:-1].tolist(), (edges[1:] - 1).tolist(), counts.tolist(), strict=True))


def count_parts(table: Table) -> dict[str, int]:
    """Count the examples of each split that the files define, and the others."""
    counts: dict[str, int] = {part: int((table.part_N == number).sum()) for number, part in enumerate(PARTS)}
    counts["undivided"] = int((table.part_N == NO_PART).sum())
    return {part: count for part, count in counts.items() if count}


def describe_division(dataset: Dataset, division: Division) -> str:
    """Return the sizes of the splits: "8,000 training (300 without a label) and 2,000 test sequences"."""
    num_unlabeled = len(division.train) - len(division.labeled)
    without = f" ({num_unlabeled:,} without a label)" if num_unlabeled else ""
    parts = [f"{len(division.train):,} training{without}"]
    for rows, name in ((division.validation, "validation"), (division.test, "test")):
        num_labeled = int((dataset.table.label_N[rows] != NO_LABEL).sum())
        parts += [f"{num_labeled:,} {name}"] if num_labeled else []
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) + " sequences"


def describe_skipped(dataset: Dataset) -> str:
    """Return how many examples were skipped, with the first of them; empty if none was."""
    num_skipped, more = dataset.facts.num_skipped, dataset.facts.num_skipped - MOST_NAMED
    if not num_skipped:
        return ""
    named = ", ".join(dataset.facts.skipped[:MOST_NAMED])
    return f"{num_skipped:,} skipped: {named}{f', and {more:,} more' if more > 0 else ''}"


def describe_alphabet(form: Format, train: Split) -> str:
    """Return the size of a text network's alphabet, and how much of the training data it does not cover."""
    if not isinstance(form, TextFormat) or form.tokens == "bytes":
        return ""
    unknown, total = count_unknown(train, form).total(), int(train.length_N.sum())
    return f"alphabet of {len(form.alphabet or '')} characters; {100 * unknown / total:.2f} % of the text is not in it"


class Findings(NamedTuple):
    """What was found in some data; without a table, nothing could be read at all."""

    table: Table | None
    facts: Facts | None
    problems: Problems

    @property
    def length_N(self) -> Int64[np.ndarray, " N"]:
        """Length of each sequence."""
        return np.zeros(0, dtype=np.int64) if self.table is None else np.diff(self.table.begin_N1)

    @property
    def has_examples(self) -> bool:
        """Whether anything could be read."""
        return len(self.length_N) > 0

    @property
    def would_train(self) -> bool:
        """Whether training on this data would start."""
        return self.has_examples and not self.problems.num_refused

    def count_classes(self) -> dict[str, dict[str, int]]:
        """Count the examples of each split and class; those in no split count as training."""
        if self.table is None or self.facts is None:
            return {}
        part_N = np.where(self.table.part_N == NO_PART, PARTS.index("train"), self.table.part_N)
        num_classes = len(self.facts.class_names)
        counts: dict[str, dict[str, int]] = {}
        for number, part in enumerate(PARTS):
            label_N = self.table.label_N[part_N == number]
            count_C = np.bincount(label_N[label_N != NO_LABEL], minlength=num_classes).tolist()
            if len(label_N):
                named = dict(zip(self.facts.class_names, count_C, strict=True))
                num_without = int((label_N == NO_LABEL).sum())
                counts[part] = named | ({"(no label)": num_without} if num_without else {})
        return counts


def check(data: DataConfig) -> Findings:
    """Read everything that a config names, keep nothing, and note all problems instead of stopping at the first."""
    problems = Problems(is_patient=True)
    sources = find_sources(data)
    table = facts = None
    with Path(os.devnull).open("wb") as nowhere:
        try:
            table, facts = collect(sources, open_sources(sources, problems), nowhere, problems=problems)
        except RunError as error:
            problems.note(str(error))
    if table is not None and len(table.label_N) and not problems.num_refused:
        fraction = 0.0 if data.validation_fraction == "auto" else data.validation_fraction
        try:
            divide(table, replace(data, validation_fraction=fraction), seed=0)
        except UsageError as error:
            problems.note(str(error))
    return Findings(table, facts, problems)
