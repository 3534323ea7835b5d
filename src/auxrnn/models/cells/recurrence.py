"""What every recurrence offers: read from a state, give the state. All else is written against this alone.

A new cell is one file beside this one. `G` counts what an input step is mapped to: the gates of an LSTM (4 * H), of a
GRU (3 * H), the units of a plain network.
"""

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from auxrnn.kernels.lstm import Feeding
from auxrnn.structs import Places, RNNState, Run, Steps


class InputMap(NamedTuple):
    """How an input step enters the gates: `weight @ x + bias`."""

    weight_GI: Float[Tensor, "G I"]
    bias_G: Float[Tensor, " G"]


@runtime_checkable
class Embeds(Protocol):
    """An input embedding, as a recurrence sees it."""

    @property
    def is_foldable(self) -> bool:
        """Whether `fold` is worth its cost."""

    def fold(self, weights: InputMap) -> InputMap:
        """Give the weights that read x itself (or one-hot tokens) and do what `weights` does on the embedded x."""

    def embed(self, x_BT: Steps, weights: InputMap) -> tuple[Float[Tensor, "B T I"], InputMap]:
        """Give vectors, and the weights that read them, to the same effect."""


@runtime_checkable
class Recurrence(Protocol):
    """One or more recurrent layers. State is never kept: it goes in and comes out."""

    @property
    def num_layers(self) -> int:
        """How many layers are stacked."""

    @property
    def output_size(self) -> int:
        """Width of `h`, what each layer gives out."""

    def initial_state(self, num_rows: int) -> RNNState:
        """Give the state before the first step of each row, where the weights live."""

    def run(
        self,
        x_BT: Steps,
        state: RNNState,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Read the steps `begin_B <= t < end_B` of each row (all of them by default), and give all top outputs.

        Other columns leave no trace in values or gradients, but outputs there mean nothing. A row that begins late must
        start from the initial state, which it keeps until then. Steps are read through an `embedding`, or as they are.
        """


@runtime_checkable
class PicksUp(Protocol):
    """A recurrence that gives the states at any places in one pass; others are walked to them (`walking`)."""

    def visit(
        self,
        x_BT: Steps,
        state: RNNState,
        places: Places,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
    ) -> RNNState:
        """Give the states at some places, in one pass."""


@runtime_checkable
class FeedsBack(Protocol):
    """A recurrence that may predict steps, and read what it predicted, in one pass."""

    def can_run_fed(self, x_BT: Steps, embedding: Embeds) -> bool:
        """Tell whether it can for such input."""

    def run_fed(
        self, x_BT: Steps, state: RNNState, feeding: Feeding, *, embedding: Embeds
    ) -> tuple[Float[Tensor, "B T H"], Steps]:
        """Read steps of which some are replaced by predictions on the way; give the outputs, and what was read."""
