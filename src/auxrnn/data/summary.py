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
from auxrnn.data.formats import Format, TextFormat
from auxrnn.data.inputs import count_unknown
from auxrnn.data.sequences import NO_LABEL, Split
from auxrnn.data.sources import find_sources
from auxrnn.data.splits import Division, divide
from auxrnn.errors import RunError

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
    named, more = list(dataset.facts.skipped[:MOST_NAMED]), dataset.facts.num_skipped - MOST_NAMED
    named += [f"and {more:,} more"] if more > 0 else []
    return f"{dataset.facts.num_skipped:,} skipped: {', '.join(named)}" if named else ""


def describe_alphabet(form: Format, train: Split) -> str:
    """Return the size of a text network's alphabet, and how much of the training data it does not cover."""
    if not isinstance(form, TextFormat) or form.tokens == "bytes":
        return ""
    unknown, total = count_unknown(train, form).total(), int(train.length_N.sum())
    return f"alphabet of {len(form.alphabet or '')} characters; {100 * unknown / total:.2f} % of the text is not in it"


class Findings(NamedTuple):
    """What was found in some data; without facts, nothing could be read at all."""

    table: Table
    facts: Facts | None
    problems: Problems

    @property
    def length_N(self) -> Int64[np.ndarray, " N"]:
        """Length of each sequence."""
        return np.diff(self.table.begin_N1)

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
        # The number of no label is -1, which is the last name.
        names = [*(self.facts.class_names if self.facts else ()), "(no label)"]
        part_N = np.where(self.table.part_N == NO_PART, PARTS.index("train"), self.table.part_N)
        counts: dict[str, dict[str, int]] = {}
        for number, part in enumerate(PARTS):
            label_N = self.table.label_N[part_N == number]
            if len(label_N):
                counted = zip(names, np.bincount(label_N % len(names), minlength=len(names)).tolist(), strict=True)
                counts[part] = {name: count for name, count in counted if count or name != names[-1]}
        return counts


def check(data: DataConfig) -> Findings:
    """Read everything that a config names, keep nothing, and note all problems instead of stopping at the first."""
    problems, sources = Problems(is_patient=True), find_sources(data)
    none = np.zeros(0, dtype=np.int64)
    findings = Findings(Table(np.zeros(1, dtype=np.int64), none, none.astype(np.int8), none), None, problems)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            table, facts = collect(sources, open_sources(sources, problems), nowhere, problems=problems)
        findings = Findings(table, facts, problems)
    except RunError as error:
        problems.note(str(error))
    if findings.would_train:
        fraction = 0.0 if data.validation_fraction == "auto" else data.validation_fraction
        with problems.noting_errors():
            divide(findings.table, replace(data, validation_fraction=fraction), seed=0)
    return findings
