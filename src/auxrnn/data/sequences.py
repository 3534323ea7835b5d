"""Sequences one after the other in one flat array, in memory or mapped from a file; splits of them, and batches.

Only the examples of a batch are ever copied and turned into what a network reads.
Dimension letters: `N` examples, `M` chosen ones, `K` steps of all sequences together, `T` steps, `D` their features.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64, Shaped

from auxrnn.data.images import to_unit
from auxrnn.structs import ONLY, Draws, SequenceBatch, Share, Turn

NO_LABEL = -1
BLOCK_STEPS = 2**18
"""Steps that are processed together in a pass over a whole split: few enough for a processor's cache."""
POOL_BATCHES = 50
"""Batches of shuffled examples that are sorted by length together: more waste less padding, but shuffle less."""

Values = Shaped[np.ndarray, "K *D"]
Array = Shaped[np.ndarray, "..."]
Index = Int64[np.ndarray, " B"]


class Encoding(NamedTuple):
    """How kept values become what a network reads: vectors (float32) or tokens (int64)."""

    encode: Callable[[Array], Array]
    """Step by step; what is missing stays NaN."""
    max_length: int | None = None
    is_backward: bool = False
    steps_per_input: int = 1
    """Neighboring steps, counted from the beginning, that are one vector."""
    has_mask: bool = False
    """Whether each vector is followed by a mask: 1 where its value was there."""

    def fill(
        self, x_NTD: Float32[np.ndarray, "N T D"]
    ) -> tuple[Float32[np.ndarray, "N T M"], Bool[np.ndarray, "N T D"] | None]:
        """Return vectors with 0 for NaN, and with their mask if there is one; and what was there, None if all was."""
        is_there_NTD = ~np.isnan(x_NTD)
        filled_NTD = np.where(is_there_NTD, x_NTD, np.float32(0))
        if self.has_mask:
            filled_NTD = np.concatenate([filled_NTD, is_there_NTD.astype(np.float32)], axis=-1)
        return filled_NTD, None if is_there_NTD.all() else is_there_NTD


class Lengths(NamedTuple):
    """The shortest, the median and the longest of some lengths."""

    shortest: int
    median: int
    longest: int

    def __str__(self) -> str:
        if self.shortest == self.longest:
            return f"{self.longest:,} steps"
        return f"{self.shortest:,} to {self.longest:,} steps, median {self.median:,}"


def measure_lengths(length_N: Int64[np.ndarray, " N"]) -> Lengths:
    """Return the shortest, the median and the longest."""
    return Lengths(int(length_N.min()), int(np.median(length_N)), int(length_N.max()))


class Flat(NamedTuple):
    """Sequence i is `value_K[begin_N1[i] : begin_N1[i + 1]]`, as its file had it."""

    value_K: Values
    begin_N1: Int64[np.ndarray, " N1"]


class Split(NamedTuple):
    """Some of the sequences, with their classes (`NO_LABEL` for none)."""

    flat: Flat
    row_N: Int64[np.ndarray, " N"]
    label_N: Int64[np.ndarray, " N"]
    encoding: Encoding
    weight_N: Float32[np.ndarray, " N"] | None = None
    """How much each counts in the supervised loss of training; None: all alike."""

    @property
    def num_examples(self) -> int:
        """Number of sequences."""
        return len(self.row_N)

    @property
    def length_N(self) -> Int64[np.ndarray, " N"]:
        """Number of inputs of each sequence that are read: steps, or groups of steps."""
        return -(-self.num_steps_N // self.encoding.steps_per_input)

    @property
    def num_steps_N(self) -> Int64[np.ndarray, " N"]:
        """Number of steps of each sequence that are read."""
        begin_N1 = self.flat.begin_N1
        length_N: Int64[np.ndarray, " N"] = begin_N1[self.row_N + 1] - begin_N1[self.row_N]
        return length_N if self.encoding.max_length is None else np.minimum(length_N, self.encoding.max_length)

    def select(self, index_M: Int64[np.ndarray, " M"]) -> "Split":
        """Return some examples, in the order of their indices."""
        weight_M = None if self.weight_N is None else self.weight_N[index_M]
        return self._replace(row_N=self.row_N[index_M], label_N=self.label_N[index_M], weight_N=weight_M)

    def labeled(self) -> "Split":
        """Return the examples that have a label."""
        return self.select(np.flatnonzero(self.label_N != NO_LABEL))

    def weighted(self, *, is_balanced: bool) -> "Split":
        """Return labeled examples with weights of mean 1, so that losses keep their size.

        Balanced, an example counts in inverse proportion to the examples of its class.
        """
        if self.weight_N is None and not is_balanced:
            return self
        weight_N = np.ones(self.num_examples) if self.weight_N is None else self.weight_N.astype(np.float64)
        if is_balanced:
            weight_N /= np.bincount(self.label_N)[self.label_N]
        return self._replace(weight_N=(weight_N / weight_N.mean()).astype(np.float32))

    def values(self) -> Iterator[Values]:
        """Yield what is kept of all examples, in blocks, cut to what is read of them."""
        if not self.num_examples:
            return
        begin_N = self.flat.begin_N1[self.row_N]
        end_N = begin_N + self.num_steps_N
        # Adjacent examples are taken together.
        is_cut = begin_N[1:] != end_N[:-1]
        begins, ends = begin_N[np.r_[True, is_cut]].tolist(), end_N[np.r_[is_cut, True]].tolist()
        block: list[Values] = []
        num_steps = 0
        for begin, end in zip(begins, ends, strict=True):
            for start in range(begin, end, BLOCK_STEPS):
                block.append(self.flat.value_K[start : min(start + BLOCK_STEPS, end)])
                num_steps += len(block[-1])
                if num_steps >= BLOCK_STEPS:
                    yield np.concatenate(block)
                    block, num_steps = [], 0
        if block:
            yield np.concatenate(block)

    def align(self, num_columns: int | None = None) -> tuple[Shaped[np.ndarray, "N T *D"], Int64[np.ndarray, " N"]]:
        """Return all examples as a network reads them, in rows that end together, and the column each begins at.

        Gaps are NaN, and so is what fills the last input of a row. There are as many columns as the longest row needs,
        unless more are asked for.
        """
        length_N, size = self.length_N, self.encoding.steps_per_input
        num_columns = num_columns or int(length_N.max())
        shape = (self.num_examples, num_columns * size, *self.flat.value_K.shape[1:])
        value_NT = np.zeros(shape, self.flat.value_K.dtype)
        begin_N, num_steps_N = self.flat.begin_N1[self.row_N], self.num_steps_N
        first_N = (num_columns - length_N) * size
        direction = -1 if self.encoding.is_backward else 1
        places = zip(begin_N.tolist(), num_steps_N.tolist(), first_N.tolist(), strict=True)
        for row, (begin, num_steps, first) in enumerate(places):
            value_NT[row, first : first + num_steps] = self.flat.value_K[begin : begin + num_steps][::direction]
        x_NT = self.encoding.encode(value_NT)
        if size > 1:
            x_NT[np.arange(shape[1]) >= (first_N + num_steps_N)[:, None]] = np.nan
            x_NT = x_NT.reshape(shape[0], num_columns, -1)
        return x_NT, num_columns - length_N


class Splits(NamedTuple):
    """Training, validation and test split of a run; all but the first may be missing."""

    train: Split
    validation: Split | None
    test: Split | None


def from_array(x_NTD: Shaped[np.ndarray, "N T D"], label_N: Int64[np.ndarray, " N"]) -> Split:
    """Return a split of equally long sequences in memory: bytes from 0 to 255, or floats as they are."""
    num_examples, num_steps, num_features = x_NTD.shape
    flat = Flat(x_NTD.reshape(-1, num_features), np.arange(num_examples + 1, dtype=np.int64) * num_steps)
    return Split(flat, np.arange(num_examples, dtype=np.int64), label_N, Encoding(to_unit))


class Batches:
    """The batch of each update as a pure function of seed, phase and step, bucketed by length.

    Every epoch holds each example once. Where several processes train together, each takes its turn in every batch.
    """

    def __init__(self, split: Split, *, batch_size: int, seed: int, turn: Turn = ONLY) -> None:
        self.split, self.batch_size, self.seed, self.turn = split, batch_size, seed, turn
        self._length_N = split.length_N
        self._order: tuple[tuple[str, int], list[Index]] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches that hold every example once; one may be smaller."""
        return math.ceil(self.split.num_examples / self.batch_size)

    def at(self, step: int, *, phase: str) -> SequenceBatch:
        """Return the batch of an update of a phase, counted from 0, or this process's share of it."""
        epoch, index = divmod(step, self.steps_per_epoch)
        index_B = self._shuffled(phase, epoch)[index]
        if self.turn.num_processes == 1:
            return to_batch(self.split.select(index_B))
        length_B = self._length_N[index_B]
        row_B = deal(length_B, self.turn)
        share = Share(torch.from_numpy(row_B if len(row_B) else np.zeros(1, np.int64)), len(index_B), len(row_B) > 0)
        own = self.split.select(index_B[share.row_B.numpy()])
        return to_batch(own, num_columns=int(length_B.max()))._replace(share=share)

    def find_typical(self, phase: str) -> tuple[SequenceBatch, float]:
        """Return the batch whose size is nearest to the mean of an epoch, and that mean as a multiple of its size.

        The size is rows times columns, padding included: one batch may be small, and lengths may differ much.
        """
        size_M = [len(index_B) * int(self._length_N[index_B].max()) for index_B in self._shuffled(phase, 0)]
        mean = float(np.mean(size_M))
        nearest = int(np.argmin(np.abs(np.array(size_M) - mean)))
        return self.at(nearest, phase=phase), mean / size_M[nearest]

    def _shuffled(self, phase: str, epoch: int) -> list[Index]:
        """Return the batches of an epoch; those of the last epoch are remembered."""
        if self._order is None or self._order[0] != (phase, epoch):
            draws = Draws(self.seed, phase, epoch)
            self._order = (phase, epoch), draw_batches(self._length_N, batch_size=self.batch_size, draws=draws)
        return self._order[1]


def draw_batches(length_N: Int64[np.ndarray, " N"], *, batch_size: int, draws: Draws) -> list[Index]:
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


def deal(length_B: Int64[np.ndarray, " B"], turn: Turn) -> Int64[np.ndarray, " M"]:
    """Return the rows of a batch that a process takes, perhaps none; all processes get about as many steps.

    From the longest row to the shortest they go round all processes and back again.
    """
    lap_B, place_B = np.divmod(np.arange(len(length_B)), turn.num_processes)
    rank_B = np.where(lap_B % 2 == 0, place_B, turn.num_processes - 1 - place_B)
    return np.sort(np.argsort(-length_B, kind="stable")[rank_B == turn.rank])


def by_length(split: Split) -> Int64[np.ndarray, " N"]:
    """Return the order in which a split is read fastest; its own if all sequences have one length."""
    return np.argsort(split.length_N, kind="stable")


def in_order(split: Split, batch_size: int, turn: Turn = ONLY) -> Iterator[SequenceBatch]:
    """Yield all examples in their own order; the last batch may be smaller. Processes take the batches in turns."""
    for start in range(turn.rank * batch_size, split.num_examples, turn.num_processes * batch_size):
        yield to_batch(split.select(np.arange(start, min(start + batch_size, split.num_examples))))


def to_batch(split: Split, *, num_columns: int | None = None) -> SequenceBatch:
    """Return examples as one batch, in rows that end together; perhaps in more columns than the longest needs."""
    (x_NT, first_N), is_there_NTD = split.align(num_columns), None
    if split.encoding.has_mask or split.encoding.steps_per_input > 1:
        x_NT, is_there_NTD = split.encoding.fill(x_NT)
    first_B = torch.from_numpy(first_N) if first_N.any() else None
    is_there_BTD = None if is_there_NTD is None else torch.from_numpy(is_there_NTD)
    weight_B = None if split.weight_N is None else torch.from_numpy(split.weight_N)
    return SequenceBatch(torch.from_numpy(x_NT), torch.from_numpy(split.label_N), first_B, is_there_BTD, weight_B)
