"""Reading data only to find out what it is and what is wrong with it: nothing is kept, and reading goes on.

Dimension letters: `N` examples, `C` classes.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from auxrnn.config import DataConfig
from auxrnn.data.collect import NO_PART, PARTS, Facts, Table, collect
from auxrnn.data.datasets import find_sources
from auxrnn.data.examples import Problems
from auxrnn.data.sequences import NO_LABEL
from auxrnn.data.splits import divide
from auxrnn.errors import RunError, UsageError


class Findings(NamedTuple):
    """What was found; without a table, nothing could be read at all."""

    table: Table | None
    facts: Facts | None
    problems: Problems

    @property
    def length_N(self) -> Int64[np.ndarray, " N"]:
        """How long each sequence is."""
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
        """Count the examples of each split and class; what files do not divide counts as training."""
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
    """Read everything that a config names, noting all that is wrong with it."""
    problems = Problems(is_patient=True)
    sources = find_sources(data)
    table = facts = None
    with Path(os.devnull).open("wb") as nowhere:
        try:
            table, facts = collect(sources, nowhere, problems=problems)
        except RunError as error:
            problems.note(str(error))
    if table is not None and len(table.label_N) and not problems.num_refused:
        fraction = 0.0 if data.validation_fraction == "auto" else data.validation_fraction
        try:
            divide(table, replace(data, validation_fraction=fraction), seed=0)
        except UsageError as error:
            problems.note(str(error))
    return Findings(table, facts, problems)
