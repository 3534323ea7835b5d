"""What is wrong with some data: everything that `auxrnn data check` finds, without training on it.

Dimension letters: `N` examples.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from auxrnn.config import DataConfig
from auxrnn.data.datasets import NO_PART, PARTS, Facts, Table, collect, open_sources
from auxrnn.data.examples import Problems
from auxrnn.data.formats import settle
from auxrnn.data.sources import find_sources
from auxrnn.data.splits import divide


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
    with problems.noting_errors(), Path(os.devnull).open("wb") as nowhere:
        table, facts = collect(sources, open_sources(sources, problems), nowhere, problems=problems)
        findings = Findings(table, facts, problems)
    if findings.would_train:
        fraction = 0.0 if data.validation_fraction == "auto" else data.validation_fraction
        with problems.noting_errors():
            divide(findings.table, replace(data, validation_fraction=fraction), seed=0)
            settle(facts.format, data)
    return findings
