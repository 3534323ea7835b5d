"""What an auxiliary objective offers to the network that trains with it."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from auxrnn.bptt import GradientWindow
from auxrnn.models.encoder import Encoder
from auxrnn.structs import Draws, LossSum, RNNState, Segments, SequenceBatch


@runtime_checkable
class Objective(Protocol):
    """A loss on segments of the input, computed from the main network's states at anchors."""

    def sample(self, seq_len_B: Int[Tensor, " B"], *, rng: torch.Generator) -> Segments:
        """Draw segments and their anchors."""

    def gradient_window(self, batch: SequenceBatch, segments: Segments) -> GradientWindow:
        """Return which main states the segments start from, and how far back their gradient reaches."""

    def loss(
        self,
        encoder: Encoder,
        batch: SequenceBatch,
        segments: Segments,
        state: RNNState,
        *,
        draws: Draws | None,
        true_probability: float,
    ) -> LossSum:
        """Return the loss summed over all tokens of all segments, given the states of `gradient_window`.

        With `draws` as in training (drop-connect, scheduled sampling); with None as in evaluation.
        """
