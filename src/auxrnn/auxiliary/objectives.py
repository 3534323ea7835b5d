"""The two auxiliary losses: r-LSTM, rebuild a segment of the past (section 3.1); p-LSTM, predict one ahead (3.2).

Each is summed over all predicted tokens, and divided once, where losses are combined (section 3.4).
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from auxrnn.auxiliary.segments import Geometry, sample_future_segments, sample_past_segments, segment_positions
from auxrnn.bptt import GradientWindow, forward_truncated, gather_columns
from auxrnn.config import Order, Placement, Window
from auxrnn.models.cells.recurrence import Recurrence
from auxrnn.models.decoder import Decoder, Sampling
from auxrnn.models.encoder import Encoder
from auxrnn.models.heads import Head
from auxrnn.structs import Draws, LossSum, RNNState, Run, Segments, SequenceBatch


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


class TokenLoss(NamedTuple):
    """Compares predictions with targets: squared distances of vectors, cross-entropies of tokens (from logits).

    In units of `divisor`, so that one weight suits data of any scale.
    """

    is_token: bool
    divisor: float = 1.0

    def __call__(
        self,
        output_MSO: Float[Tensor, "M S O"],
        target_MS: Shaped[Tensor, "M S *D"],
        is_target_MS: Bool[Tensor, "M S"],
    ) -> LossSum:
        """Sum over features, then over the tokens that are targets."""
        if self.is_token:
            error_MS = F.cross_entropy(output_MSO.transpose(1, 2), target_MS, reduction="none")
        else:
            error_MS = (output_MSO - target_MS).square().sum(dim=2)
        return LossSum(torch.where(is_target_MS, error_MS, 0.0).sum() / self.divisor, is_target_MS.sum())


def find_targets(segments: Segments) -> Bool[Tensor, "M S"]:
    """Mark the steps at which each segment has a target; shorter segments have fewer."""
    step_1S = torch.arange(int(segments.length_M.max()), device=segments.length_M.device)[None]
    return step_1S < segments.length_M[:, None]


class Reconstruct(nn.Module):
    """A decoder that starts from the state after the anchor and rebuilds a segment, by default last token first.

    Gradients run through the whole decoder, through the anchor, and `window` main steps further back.
    """

    def __init__(
        self,
        decoder: Decoder,
        *,
        token_loss: TokenLoss,
        geometry: Geometry,
        placement: Placement,
        order: Order,
        window: Window,
    ) -> None:
        super().__init__()
        self.decoder = decoder
        self.token_loss = token_loss
        self.geometry = geometry
        self.placement = placement
        self.order = order
        self.window = window

    def sample(self, seq_len_B: Int[Tensor, " B"], *, rng: torch.Generator) -> Segments:
        """Draw the segments to rebuild, and their anchors."""
        return sample_past_segments(seq_len_B, geometry=self.geometry, placement=self.placement, rng=rng)

    def gradient_window(self, batch: SequenceBatch, segments: Segments) -> GradientWindow:
        """Return the main states after the anchors."""
        return GradientWindow(segments.row_M, batch.column_of(segments.row_M, segments.anchor_M), self.window)

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
        """Return the summed loss of all tokens, given the states of `gradient_window`.

        With `draws` as in training (drop-connect, scheduled sampling); with None all tokens are true, none is dropped.
        """
        x_MS, target_MS = self._inputs_and_targets(batch, segments)
        mask_OF = sampling = None
        if draws is not None:
            mask_OF = self.decoder.head.draw_dropconnect_mask(draws.rng("decoder drop-connect"))
            if true_probability < 1:
                uniform_2MS = torch.rand(2, *x_MS.shape[:2], generator=draws.rng("sampling")).to(x_MS.device)
                sampling = Sampling(uniform_2MS[0] < true_probability, uniform_2MS[1])
        start = self.decoder.start(state)
        output_MSO = self.decoder(encoder.embedding, x_MS, start, dropconnect_mask_OF=mask_OF, sampling=sampling)
        return self.token_loss(output_MSO, target_MS, find_targets(segments))

    def generate(
        self, encoder: Encoder, batch: SequenceBatch, segments: Segments, state: RNNState
    ) -> Shaped[Tensor, "M S *D"]:
        """Return the segments as the decoder remembers them, given only their first token; in decoding order."""
        x_MS, _ = self._inputs_and_targets(batch, segments)
        # One more input than usual, so that the last prediction is also fed back and thereby returned.
        x_MS = torch.cat([x_MS, x_MS[:, :1]], dim=1)
        half_MS = torch.full(x_MS.shape[:2], 0.5, device=x_MS.device)
        sampling = Sampling(torch.zeros_like(half_MS, dtype=torch.bool), half_MS)
        _, generated_MS = self.decoder.generate(encoder.embedding, x_MS, self.decoder.start(state), sampling)
        return generated_MS[:, 1:]

    def _inputs_and_targets(
        self, batch: SequenceBatch, segments: Segments
    ) -> tuple[Shaped[Tensor, "M S *D"], Shaped[Tensor, "M S *D"]]:
        """Return all tokens except the last (inputs), and all except the first (targets), in decoding order."""
        column_MS = batch.column_of(segments.row_M, segment_positions(segments, order=self.order))
        token_MS = gather_columns(batch.x_BT, segments.row_M, column_MS)
        return token_MS[:, :-1], token_MS[:, 1:]


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
