"""The p-LSTM objective: continue after the anchor, one token at a time (section 3.2)."""

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor, nn

from auxrnn.auxiliary.losses import TokenLoss, find_targets
from auxrnn.auxiliary.segments import Geometry, sample_future_segments, segment_positions
from auxrnn.bptt import GradientWindow, forward_truncated, gather_columns
from auxrnn.config import Window
from auxrnn.models.cells.recurrence import Recurrence
from auxrnn.models.encoder import Encoder
from auxrnn.models.heads import Head
from auxrnn.structs import Draws, LossSum, RNNState, Run, Segments, SequenceBatch


class Predict(nn.Module):
    """The main network reads on from the anchor, and layers on top of it predict each next token.

    The gradient stops at the anchor and every `window` steps inside the segment; with `full` it never stops.
    """

    def __init__(
        self, upper: Recurrence | None, *, head: Head, token_loss: TokenLoss, geometry: Geometry, window: Window
    ) -> None:
        super().__init__()
        self.upper = upper
        self.head = head
        self.token_loss = token_loss
        self.geometry = geometry
        self.window = window

    def sample(self, seq_len_B: Int[Tensor, " B"], *, rng: torch.Generator) -> Segments:
        """Draw the segments to predict; each starts at its anchor."""
        return sample_future_segments(seq_len_B, geometry=self.geometry, rng=rng)

    def gradient_window(self, batch: SequenceBatch, segments: Segments) -> GradientWindow:
        """Return the main states before the anchors, beyond the gradient's reach unless the window is full."""
        column_M = batch.column_of(segments.row_M, segments.anchor_M) - 1
        return GradientWindow(segments.row_M, column_M, "full" if self.window == "full" else 0)

    def loss(
        self,
        encoder: Encoder,
        batch: SequenceBatch,
        segments: Segments,
        state: RNNState,
        *,
        draws: Draws | None,
        true_probability: float,  # noqa: ARG002 - the main network reads the true tokens; there is nothing to feed back
    ) -> LossSum:
        """Return the summed loss of all tokens, given the states of `gradient_window`; without `draws` none drops."""
        column_MS = batch.column_of(segments.row_M, segment_positions(segments, order="forward"))
        token_MS = gather_columns(batch.x_BT, segments.row_M, column_MS)
        layers: list[Callable[[Tensor, RNNState], Run]] = [encoder]
        starts = [state]
        if self.upper is not None:
            layers.append(self.upper)
            starts.append(self.upper.initial_state(len(segments.row_M)))
        h_MSH = forward_truncated(layers, token_MS[:, :-1], starts, window=self.window)
        mask_OF = None if draws is None else self.head.draw_dropconnect_mask(draws.rng("decoder drop-connect"))
        return self.token_loss(self.head(h_MSH, mask_OF), token_MS[:, 1:], find_targets(segments))
