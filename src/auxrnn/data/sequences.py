"""Sequences one after the other in one flat array, in memory or mapped from a file, and splits of them.

Only the examples of a batch are ever copied and turned into what a network reads.
Dimension letters: `N` examples, `M` chosen ones, `K` steps of all sequences together, `T` steps, `D` their features.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, Shaped

from auxrnn.data.formats import Encoding
from auxrnn.data.images import to_unit

NO_LABEL = -1
BLOCK_STEPS = 2**18
"""Steps that are processed together in a pass over a whole split: few enough for a processor's cache."""

Values = Shaped[np.ndarray, "K *D"]


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

    @property
    def num_examples(self) -> int:
        """Number of sequences."""
        return len(self.row_N)

    @property
    def length_N(self) -> Int64[np.ndarray, " N"]:
        """Number of steps of each sequence that are read."""
        begin_N1 = self.flat.begin_N1
        length_N: Int64[np.ndarray, " N"] = begin_N1[self.row_N + 1] - begin_N1[self.row_N]
        return length_N if self.encoding.max_length is None else np.minimum(length_N, self.encoding.max_length)

    def select(self, index_M: Int64[np.ndarray, " M"]) -> "Split":
        """Return some examples, in the order of their indices."""
        return self._replace(row_N=self.row_N[index_M], label_N=self.label_N[index_M])

    def labeled(self) -> "Split":
        """Return the examples that have a label."""
        return self.select(np.flatnonzero(self.label_N != NO_LABEL))

    def values(self) -> Iterator[Values]:
        """Yield what is kept of all examples, in blocks, cut to what is read of them."""
        block: list[Values] = []
        num_steps = 0
        for begin, end in self._stretches():
            for start in range(begin, end, BLOCK_STEPS):
                block.append(self.flat.value_K[start : min(start + BLOCK_STEPS, end)])
                num_steps += len(block[-1])
                if num_steps >= BLOCK_STEPS:
                    yield np.concatenate(block)
                    block, num_steps = [], 0
        if block:
            yield np.concatenate(block)

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """Return begin and end of what is read; adjacent examples are taken together."""
        begin_N = self.flat.begin_N1[self.row_N]
        end_N = begin_N + self.length_N
        is_first_N, is_last_N = np.ones(self.num_examples, dtype=bool), np.ones(self.num_examples, dtype=bool)
        is_first_N[1:] = begin_N[1:] != end_N[:-1]
        is_last_N[:-1] = is_first_N[1:]
        return zip(begin_N[is_first_N].tolist(), end_N[is_last_N].tolist(), strict=True)

    def align(self) -> tuple[Shaped[np.ndarray, "N T *D"], Int64[np.ndarray, " N"]]:
        """Return all examples as a network reads them, in rows that end together, and the column each begins at."""
        length_N = self.length_N
        num_columns = int(length_N.max())
        first_N = num_columns - length_N
        value_NT = np.zeros((self.num_examples, num_columns, *self.flat.value_K.shape[1:]), self.flat.value_K.dtype)
        begin_N = self.flat.begin_N1[self.row_N]
        direction = -1 if self.encoding.is_backward else 1
        rows = zip(begin_N.tolist(), length_N.tolist(), first_N.tolist(), strict=True)
        for row, (begin, length, first) in enumerate(rows):
            value_NT[row, first:] = self.flat.value_K[begin : begin + length][::direction]
        return self.encoding.encode(value_NT), first_N


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
