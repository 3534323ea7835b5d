"""The tuples that travel between modules, and the dimension letters. Read this first.

Tensor names end in their dimensions, one letter each: `B` batch, `T` input steps, `S` steps of a segment, `N` segments
per sequence, `M` segments of a whole batch (B * N), `D` features of an input step, `E` embedding, `H` hidden units,
`G` gates (4 * H), `L` recurrent layers, `C` classes, `V` vocabulary, `F` features of a head's hidden layer,
`P` states that are queried, `K` units of a cell (H, of an LRU 2 * H, or 0).

An input is either vectors, `x_BTD` (floats: pixels, sensor values), or tokens, `x_BT` (integers: characters).
Where both are meant, the name is `x_BT` and its type `Steps`.
"""

import hashlib
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

Steps = Shaped[Tensor, "B T *D"]
"""One sequence a row, one step a column: vectors `[B, T, D]` or tokens `[B, T]`."""
LARGEST_INPUT = 2.0**99
"""Beyond it a number is clipped or refused, so that sums of products stay finite; exact in single precision."""


class Turn(NamedTuple):
    """Which process this one is of those that train together, counted from 0."""

    rank: int = 0
    num_processes: int = 1


ONLY = Turn()
"""The turn of a process that trains alone."""


class Share(NamedTuple):
    """Which rows of a batch a process has, where several divide it: row b of its own is `row_B[b]` of `num_rows`.

    Its columns fit the longest row of all. What is random is drawn for the whole batch, so that it is the same however
    many processes there are.
    """

    row_B: Int[Tensor, " B"]
    num_rows: int
    is_counted: bool = True
    """False where there are fewer rows than processes: then this one computes a row of another one for nothing."""

    def take(self, drawn: Shaped[Tensor, "..."], *, dim: int = 0) -> Shaped[Tensor, "..."]:
        """Return what was drawn for these rows, which lie along a dimension."""
        return drawn.index_select(dim, self.row_B.to(drawn.device))


class SequenceBatch(NamedTuple):
    """Sequences and their classes. Rows end together; row b begins at column `first_B[b]`."""

    x_BT: Steps
    label_B: Int[Tensor, " B"]
    first_B: Int[Tensor, " B"] | None = None
    is_there_BTD: Bool[Tensor, "B T D"] | None = None
    """Which values the data has; the others (gaps, the fill of the last input) are never targets. None: all are there.
    Where inputs end in mask channels, it has none for these."""
    weight_B: Float[Tensor, " B"] | None = None
    """How much each row counts in the supervised loss; None: all alike."""
    share: Share | None = None
    """Which rows of a larger batch these are; None: they are the batch."""

    @property
    def length_B(self) -> Int[Tensor, " B"]:
        """How many steps each row really has."""
        num_rows, num_columns = self.x_BT.shape[:2]
        length_B = torch.full((num_rows,), num_columns, dtype=torch.long, device=self.x_BT.device)
        return length_B if self.first_B is None else length_B - self.first_B

    def to(self, device: torch.device) -> "SequenceBatch":
        """Return the same batch on a device."""
        return SequenceBatch._make(value.to(device) if isinstance(value, Tensor) else value for value in self)

    def head(self, num_rows: int) -> "SequenceBatch":
        """Return the first rows, as a batch of their own."""
        return SequenceBatch._make(value[:num_rows] if isinstance(value, Tensor) else None for value in self)

    def tail(self, num_steps: int) -> "SequenceBatch":
        """Return the last steps of all rows."""
        cut = max(self.x_BT.shape[1] - num_steps, 0)
        first_B = None if self.first_B is None else (self.first_B - cut).clamp(min=0)
        is_there_BTD = None if self.is_there_BTD is None else self.is_there_BTD[:, cut:]
        return self._replace(x_BT=self.x_BT[:, cut:], first_B=first_B, is_there_BTD=is_there_BTD)

    def column_of(self, row_M: Int[Tensor, " M"], position_M: Int[Tensor, "M *S"]) -> Int[Tensor, "M *S"]:
        """Return the columns of positions that are counted from the start of their own sequence."""
        if self.first_B is None:
            return position_M
        return position_M + self.first_B[row_M].reshape(-1, *[1] * (position_M.dim() - 1))


class RNNState(NamedTuple):
    """The state of a recurrent network after a step: outputs `h` and cells `c`, one row a sequence.

    A recurrence whose outputs are its whole state has cells of width 0.
    """

    h_LBH: Float[Tensor, "L B H"]
    c_LBH: Float[Tensor, "L B K"]

    def select(self, row_M: Int[Tensor, " M"]) -> "RNNState":
        """Return the states of the named rows, in their order; a row may be named more than once."""
        return RNNState(self.h_LBH[:, row_M], self.c_LBH[:, row_M])


class Run(NamedTuple):
    """The outputs of a recurrent network's top layer after each of some steps, and its state after the last."""

    h_BTH: Float[Tensor, "B T H"]
    state: RNNState


class StateQuery(NamedTuple):
    """Which states are wanted: of row `row_P` after `steps_P` of its columns; `P` counts them."""

    row_P: Int[Tensor, " P"]
    steps_P: Int[Tensor, " P"]


class Segments(NamedTuple):
    """The segments that carry an auxiliary loss, positions counted from the start of their own sequence (0-based).

    Segment m is the `length_M[m] + 1` steps from `start_M[m]` on of sequence `row_M[m]`: as many inputs as targets.
    """

    row_M: Int[Tensor, " M"]
    anchor_M: Int[Tensor, " M"]
    start_M: Int[Tensor, " M"]
    length_M: Int[Tensor, " M"]


class LossSum(NamedTuple):
    """The paper's L_i and l_i, each summed over i (section 3.4); divided once, where losses are combined."""

    total: Float[Tensor, ""]
    num_tokens: Int[Tensor, ""] | Float[Tensor, ""]
    """A step with gaps counts by the share of its values that are there."""

    def mean(self) -> Float[Tensor, ""]:
        """Return the loss per token; zero where nothing was predicted."""
        return self.total / torch.where(self.num_tokens > 0, self.num_tokens, 1)


class Draws(NamedTuple):
    """Randomness that is counted, not carried: what is drawn depends on these numbers and the purpose alone."""

    seed: int
    phase: str
    step: int

    def rng(self, purpose: str) -> torch.Generator:
        """Return a generator for one purpose at this step; it lives on the CPU, whatever the backend."""
        digest = hashlib.sha256(f"{self.seed}/{self.phase}/{self.step}/{purpose}".encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
