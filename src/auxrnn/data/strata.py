"""Seeded draws of examples that keep the proportions of the classes."""

import numpy as np
import torch
from jaxtyping import Int64


def draw_stratified(
    label_N: Int64[np.ndarray, " N"], *, num_examples: int, rng: torch.Generator
) -> Int64[np.ndarray, " M"]:
    """Draw exactly `num_examples` rows, in ascending order, each class to within one example of its share."""
    if num_examples == 0:
        return np.zeros(0, dtype=np.int64)
    classes = np.unique(label_N)
    rows_by_class = [np.flatnonzero(label_N == label) for label in classes]
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
