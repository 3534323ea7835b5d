"""Seeded shuffling, bucketing by length, and batches as tensors."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Int64

from auxrnn.data.sequences import Split
from auxrnn.structs import Draws, SequenceBatch

POOL_BATCHES = 50
"""Batches of shuffled examples that are sorted by length together: more waste less padding, but shuffle less."""


class Batches:
    """The batch of each update as a pure function of seed, phase and step; every epoch holds each example once.

    Batches are bucketed by length.
    """

    def __init__(self, split: Split, *, batch_size: int, seed: int) -> None:
        self.split = split
        self.batch_size = batch_size
        self.seed = seed
        self._length_N = split.length_N
        self._order: tuple[tuple[str, int], list[Int64[np.ndarray, " B"]]] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches that hold every example once; one may be smaller."""
        return math.ceil(self.split.num_examples / self.batch_size)

    def at(self, step: int, *, phase: str) -> SequenceBatch:
        """Return the batch of an update of a phase, counted from 0."""
        epoch, index = divmod(step, self.steps_per_epoch)
        return to_batch(self.split.select(self._shuffled(phase, epoch)[index]))

    def average_columns(self, phase: str) -> float:
        """Return the mean number of columns of the batches of an epoch, including padding."""
        return float(np.mean([self._length_N[index_B].max() for index_B in self._shuffled(phase, 0)]))

    def _shuffled(self, phase: str, epoch: int) -> list[Int64[np.ndarray, " B"]]:
        """Return the batches of an epoch; those of the last epoch are remembered."""
        if self._order is None or self._order[0] != (phase, epoch):
            draws = Draws(self.seed, phase, epoch)
            self._order = (phase, epoch), draw_batches(self._length_N, batch_size=self.batch_size, draws=draws)
        return self._order[1]


def draw_batches(length_N: Int64[np.ndarray, " N"], *, batch_size: int, draws: Draws) -> list[Int64[np.ndarray, " B"]]:
    """Draw the batches of an epoch: examples shuffled, sorted by length within pools, batches shuffled again."""
    order_N = torch.randperm(len(length_N), generator=draws.rng("shuffle")).numpy()
    if (length_N == length_N[0]).all():
        return [order_N[start : start + batch_size] for start in range(0, len(order_N), batch_size)]
    batches = []
    pool_size = POOL_BATCHES * batch_size
    for start in range(0, len(order_N), pool_size):
        pool = order_N[start : start + pool_size]
        pool = pool[np.argsort(length_N[pool], kind="stable")]
        batches += [pool[begin : begin + batch_size] for begin in range(0, len(pool), batch_size)]
    return [batches[index] for index in torch.randperm(len(batches), generator=draws.rng("shuffle batches")).tolist()]


def by_length(split: Split) -> Int64[np.ndarray, " N"]:
    """Return the order in which a split is read fastest; its own if all sequences have one length."""
    return np.argsort(split.length_N, kind="stable")


def in_order(split: Split, batch_size: int) -> Iterator[SequenceBatch]:
    """Yield all examples in their own order; the last batch may be smaller."""
    for start in range(0, split.num_examples, batch_size):
        yield to_batch(split.select(np.arange(start, min(start + batch_size, split.num_examples))))


def to_batch(split: Split) -> SequenceBatch:
    """Return examples as one batch, in rows that end together."""
    x_NT, first_N = split.align()
    first_B = torch.from_numpy(first_N) if first_N.any() else None
    return SequenceBatch(torch.from_numpy(x_NT), torch.from_numpy(split.label_N), first_B)
