"""Subsets, seeded shuffling, and batches as tensors. Only the examples of a batch are ever turned into floats."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from auxrnn.data.datasets import Split
from auxrnn.data.images import Sequences, to_unit
from auxrnn.data.strata import draw_stratified
from auxrnn.errors import UsageError
from auxrnn.structs import Draws, SequenceBatch


def to_tensor(x_NTD: Sequences) -> Float[Tensor, "N T D"]:
    """Give sequences as a tensor of floats; bytes are divided by 255."""
    return torch.from_numpy(to_unit(x_NTD))


def hold_out(split: Split, fraction: float, *, seed: int) -> tuple[Split, Split]:
    """Divide a split into one to train on and one to choose by, with the same proportions of classes in both.

    A fraction of 0 holds out nothing; any other must leave at least one example on each side.
    """
    num_examples = len(split.label_N)
    num_held_out = round(fraction * num_examples)
    if fraction != 0 and not 0 < num_held_out < num_examples:
        raise UsageError(
            f"validation_fraction is {fraction}, which would hold out {num_held_out} of {num_examples} examples; "
            "choose one that leaves some on each side, or 0"
        )
    rng = Draws(seed, "data", 0).rng("hold_out")
    held_out = draw_stratified(split.label_N, num_examples=num_held_out, rng=rng)
    kept = np.setdiff1d(np.arange(num_examples), held_out)
    return split.select(kept), split.select(held_out)


def take_examples(split: Split, num_examples: int, *, seed: int) -> Split:
    """Draw a subset of exactly this many examples that keeps the proportions of the classes."""
    if not 1 <= num_examples <= len(split.label_N):
        raise UsageError(f"train_examples is {num_examples}; it must be from 1 to {len(split.label_N)}, all there are")
    rng = Draws(seed, "data", 0).rng("take_examples")
    return split.select(draw_stratified(split.label_N, num_examples=num_examples, rng=rng))


class Batches:
    """The batch of each update as a pure function of seed, phase and step; every epoch holds each example once."""

    def __init__(self, split: Split, *, batch_size: int, seed: int) -> None:
        self.split = split
        self.batch_size = batch_size
        self.seed = seed
        self._order: tuple[tuple[str, int], Int64[np.ndarray, " N"]] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """How many batches hold every example once; the last may be smaller."""
        return math.ceil(len(self.split.label_N) / self.batch_size)

    def at(self, step: int, *, phase: str) -> SequenceBatch:
        """Give the batch of an update of a phase, counted from 0."""
        epoch, index = divmod(step, self.steps_per_epoch)
        order_N = self._shuffled(phase, epoch)
        return _to_batch(self.split.select(order_N[index * self.batch_size : (index + 1) * self.batch_size]))

    def _shuffled(self, phase: str, epoch: int) -> Int64[np.ndarray, " N"]:
        """Give the order of an epoch; the last one asked for is remembered, which changes no result."""
        if self._order is None or self._order[0] != (phase, epoch):
            rng = Draws(self.seed, phase, epoch).rng("shuffle")
            self._order = (phase, epoch), torch.randperm(len(self.split.label_N), generator=rng).numpy()
        return self._order[1]


def in_order(split: Split, batch_size: int) -> Iterator[SequenceBatch]:
    """Yield all examples in their own order, for evaluation; the last batch may be smaller."""
    for start in range(0, len(split.label_N), batch_size):
        rows = slice(start, start + batch_size)
        yield _to_batch(Split(split.x_NTD[rows], split.label_N[rows]))


def _to_batch(split: Split) -> SequenceBatch:
    return SequenceBatch(to_tensor(split.x_NTD), torch.from_numpy(split.label_N))
