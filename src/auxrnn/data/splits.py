"""Training, validation and test split: as the files define them, otherwise drawn with a seed.

Dimension letters: `N` examples; a bare `_` is any number of rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int64

from auxrnn.config import DataConfig, decided
from auxrnn.data.datasets import MOST_NAMED, NO_PART, PARTS, Dataset, Table
from auxrnn.data.examples import Part
from auxrnn.data.formats import Format, has_mask, make_encoding
from auxrnn.data.sequences import NO_LABEL, Split, Splits
from auxrnn.errors import UsageError
from auxrnn.structs import Draws

Rows = Int64[np.ndarray, " _"]


class Division(NamedTuple):
    """The rows of each split. Those of `train` that are not in `labeled` count as if they had no label."""

    train: Rows
    labeled: Rows
    validation: Rows
    test: Rows

    def describe_rare(self, table: Table, class_names: Sequence[str], num_labels: int | None) -> str:
        """Return which classes have fewer labels than were asked for; empty if none has."""
        count_C = np.bincount(table.label_N[self.labeled], minlength=len(class_names))
        rare = [
            f"{name} ({count})" for name, count in zip(class_names, count_C, strict=True) if count < (num_labels or 0)
        ]
        named = rare[:MOST_NAMED] + ([f"{len(rare) - MOST_NAMED:,} more"] if len(rare) > MOST_NAMED else [])
        return f"classes with fewer than {num_labels:,} labels keep all of theirs: {', '.join(named)}" if rare else ""

    def describe(self, table: Table) -> str:
        """Return the sizes of the splits: "8,000 training (300 without a label) and 2,000 test sequences"."""
        num_unlabeled = len(self.train) - len(self.labeled)
        without = f" ({num_unlabeled:,} without a label)" if num_unlabeled else ""
        parts = [f"{len(self.train):,} training{without}"]
        for rows, name in ((self.validation, "validation"), (self.test, "test")):
            num_labeled = int((table.label_N[rows] != NO_LABEL).sum())
            parts += [f"{num_labeled:,} {name}"] if num_labeled else []
        return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) + " sequences"


def make_splits(dataset: Dataset, division: Division, form: Format) -> Splits:
    """Return the splits as a network with this format reads them; only examples with a label can be tested on."""
    if dataset.facts.num_missing and not has_mask(form):
        raise UsageError(f"{dataset.name} has gaps, and the network was trained without any; fill them in")
    encoding = make_encoding(form)

    def make(rows: Rows, labeled: Rows) -> Split:
        label_N = np.where(np.isin(rows, labeled), dataset.table.label_N[rows], NO_LABEL)
        weight_N = None if dataset.weight_N is None else dataset.weight_N[rows]
        return Split(dataset.flat, rows, label_N, encoding, weight_N)

    held_out = (make(rows, rows).labeled() for rows in (division.validation, division.test))
    validation, test = (split if split.num_examples else None for split in held_out)
    return Splits(make(division.train, division.labeled), validation, test)


def divide(table: Table, data: DataConfig, *, seed: int) -> Division:
    """Divide examples as their files say, and draw what they leave open, stratified by class.

    A test split depends on the data only, not on the seed of a run. Crops of a picture stay in its split.
    """
    parts = {part: np.flatnonzero(table.part_N == number) for number, part in enumerate(PARTS)}
    undivided = np.flatnonzero(np.isin(table.part_N, [NO_PART, PARTS.index("train")]))
    train, test = (undivided, parts["test"]) if len(parts["test"]) else _draw_test(table, undivided, data.test_fraction)
    train = take_examples(table.label_N, train, data.train_examples, seed=seed)
    validation, fraction = parts["validation"], decided(data.validation_fraction)
    if len(validation) and fraction:
        raise UsageError("validation_fraction has no effect on data with a validation split of its own; remove it")
    if not len(validation):
        train, validation = hold_out(table, train, fraction, seed=seed)
    if data.labels_per_class is None:
        labeled = keep_labels(table.label_N, train, data.label_fraction, seed=seed)
    else:
        labeled = keep_some_of_each(table.label_N, train, data.labels_per_class, seed=seed)
    return Division(np.concatenate([train, parts["unlabeled"]]), labeled, validation, test)


def is_drawn(table: Table, data: DataConfig) -> bool:
    """Return whether anything about the splits is drawn."""
    has_fewer = (data.train_examples, data.labels_per_class) != (None, None) or data.label_fraction < 1
    return has_fewer or bool(drawn_parts(table, data))


def drawn_parts(table: Table, data: DataConfig) -> list[Part]:
    """Return the splits that are drawn because the files do not define them."""
    found = {PARTS[number] for number in np.unique(table.part_N).tolist() if number != NO_PART}
    drawn: list[Part] = [] if "test" in found or not data.test_fraction else ["test"]
    return [*drawn, "validation"] if decided(data.validation_fraction) and "validation" not in found else drawn


def take_examples(label_N: Int64[np.ndarray, " N"], rows: Rows, num_examples: int | None, *, seed: int) -> Rows:
    """Draw a subset of exactly `num_examples` rows (None: all) that keeps the proportions of the classes."""
    if num_examples is None:
        return rows
    if not 1 <= num_examples <= len(rows):
        raise UsageError(f"train_examples is {num_examples}; it must be from 1 to {len(rows)}, all training examples")
    return draw_rows(rows, label_N, num_examples, Draws(seed, "data", 0).rng("take_examples"))


def hold_out(table: Table, rows: Rows, fraction: float, *, seed: int) -> tuple[Rows, Rows]:
    """Divide rows into training and validation rows; a fraction of 0 holds out nothing."""
    candidates = _full_and_labeled(table, rows)
    num_held_out = round(fraction * len(candidates))
    if fraction != 0 and not 0 < num_held_out < len(candidates):
        found = f"would hold out {num_held_out} of {len(candidates)} examples"
        raise UsageError(f"validation_fraction is {fraction}, which {found}; leave some in both splits, or give 0")
    rng = Draws(seed, "data", 0).rng("hold_out")
    return _move(table, rows, draw_rows(candidates, table.label_N, num_held_out, rng))


def keep_labels(label_N: Int64[np.ndarray, " N"], rows: Rows, fraction: float, *, seed: int) -> Rows:
    """Draw the rows that keep their label: the given fraction, and at least one of each class."""
    labeled: Rows = rows[label_N[rows] != NO_LABEL]
    if fraction == 1:
        return labeled
    rng = Draws(seed, "data", 0).rng("keep_labels")
    spared = _one_of_each(labeled, label_N, rng)
    num_more = max(round(fraction * len(labeled)) - len(spared), 0)
    others: Rows = labeled[~np.isin(labeled, spared)]
    return labeled[np.isin(labeled, [*spared, *draw_rows(others, label_N, num_more, rng)])]


def keep_some_of_each(label_N: Int64[np.ndarray, " N"], rows: Rows, num_labels: int, *, seed: int) -> Rows:
    """Draw the rows that keep their label: so many of each class, or all where it has fewer.

    With the same seed a smaller number keeps some of what a larger one does.
    """
    labeled: Rows = rows[label_N[rows] != NO_LABEL]
    shuffled = labeled[torch.randperm(len(labeled), generator=Draws(seed, "data", 0).rng("keep_labels")).numpy()]
    kept = [shuffled[label_N[shuffled] == label][:num_labels] for label in np.unique(label_N[labeled])]
    return labeled[np.isin(labeled, np.concatenate([labeled[:0], *kept]))]


def _draw_test(table: Table, rows: Rows, fraction: float) -> tuple[Rows, Rows]:
    """Draw a test split, leaving at least one training example of each class."""
    if fraction == 0:
        return rows, rows[:0]
    rng = Draws(seed=0, phase="data", step=0).rng("test split")
    candidates = _full_and_labeled(table, rows)
    others = np.setdiff1d(candidates, _one_of_each(candidates, table.label_N, rng))
    num_test = min(round(fraction * len(candidates)), len(others))
    if num_test == 0:
        cure = "give more, or --test-data, or --test-fraction 0"
        raise UsageError(f"{len(candidates)} labeled examples leave none to test on; {cure}")
    return _move(table, rows, draw_rows(others, table.label_N, num_test, rng))


def _full_and_labeled(table: Table, rows: Rows) -> Rows:
    """Return the rows that may be drawn for another split: those with a label that are no crops."""
    found: Rows = rows[(table.label_N[rows] != NO_LABEL) & (table.origin_N[rows] == rows)]
    return found


def _one_of_each(rows: Rows, label_N: Int64[np.ndarray, " N"], rng: torch.Generator) -> Rows:
    """Draw one row of each class."""
    shuffled = rows[torch.randperm(len(rows), generator=rng).numpy()]
    _, first = np.unique(label_N[shuffled], return_index=True)
    drawn: Rows = shuffled[first]
    return drawn


def _move(table: Table, rows: Rows, moved: Rows) -> tuple[Rows, Rows]:
    """Return the rows that are left, without the crops of what is moved, and what is moved."""
    return rows[~np.isin(table.origin_N[rows], moved)], moved


def draw_rows(rows: Rows, label_N: Int64[np.ndarray, " N"], num_examples: int, rng: torch.Generator) -> Rows:
    """Draw some of the rows, stratified by class."""
    drawn: Rows = rows[draw_stratified(label_N[rows], num_examples=num_examples, rng=rng)]
    return drawn


def draw_stratified(label_N: Int64[np.ndarray, " N"], *, num_examples: int, rng: torch.Generator) -> Rows:
    """Draw exactly `num_examples` rows, in ascending order, each class to within one example of its share."""
    if num_examples == 0:
        return np.zeros(0, dtype=np.int64)
    rows_by_class = [np.flatnonzero(label_N == label) for label in np.unique(label_N)]
    counts = _shares(np.array([len(rows) for rows in rows_by_class]), num_examples)
    drawn = [
        rows[torch.randperm(len(rows), generator=rng).numpy()[:count]]
        for rows, count in zip(rows_by_class, counts, strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def _shares(sizes: Int64[np.ndarray, " C"], num_examples: int) -> Int64[np.ndarray, " C"]:
    """Split a total in proportion to sizes: whole parts first, the rest to the largest remainders."""
    whole, remainders = np.divmod(sizes * num_examples, sizes.sum())
    largest_first = np.argsort(-remainders, kind="stable")
    whole[largest_first[: num_examples - whole.sum()]] += 1
    return whole
