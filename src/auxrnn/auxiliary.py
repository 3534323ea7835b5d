"""The auxiliary losses: r-LSTM, rebuild a segment of the past (section 3.1); p-LSTM, predict one ahead (3.2).

First where anchors and segments are drawn (3.1, 3.2 and 5.4), then the two objectives. A segment is the l' + 1 steps
from `start` on, l' inputs and l' targets, with l' = min(l, T - 1). Positions are 0-based. Losses are summed over all
predicted tokens, and divided once, where they are combined (3.4).
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from auxrnn.bptt import GradientWindow, forward_truncated, gather_columns
from auxrnn.config import Order, Placement, Window
from auxrnn.models.cells.recurrence import Recurrence
from auxrnn.models.decoder import Decoder, Sampling
from auxrnn.models.encoder import Encoder, Head
from auxrnn.structs import Draws, LossSum, RNNState, Run, Segments, SequenceBatch, Share


class Geometry(NamedTuple):
    """How many segments each sequence has, how long they are, and whether a batch shares one draw."""

    num_segments: int
    segment_length: int
    is_shared_by_batch: bool = False


def sample_past_segments(
    seq_len_B: Int[Tensor, " B"],
    *,
    geometry: Geometry,
    placement: Placement,
    rng: torch.Generator,
    share: Share | None = None,
) -> Segments:
    """Draw segments to reconstruct: right before their anchor, anywhere before it, or also across it.

    `immediate`: a uniform on [l', T-1], s = a - l'. `past`: the same a, s uniform on [0, a - l'].
    `past_future`: a uniform on [1, T-1], s uniform on [0, min(a, T-1-l')], so that it may spill over the anchor.
    """
    row_M, seq_len_M, length_M, (anchor_draw_M, start_draw_M) = _lay_out(seq_len_B, geometry, rng, share)
    last_M = seq_len_M - 1
    first_anchor_M = last_M.clamp(max=1) if placement == "past_future" else length_M
    anchor_M = _between(first_anchor_M, last_M, anchor_draw_M)
    last_start_M = torch.minimum(anchor_M, last_M - length_M) if placement == "past_future" else anchor_M - length_M
    first_start_M = last_start_M if placement == "immediate" else torch.zeros_like(last_start_M)
    return Segments(row_M, anchor_M, _between(first_start_M, last_start_M, start_draw_M), length_M)


def sample_future_segments(
    seq_len_B: Int[Tensor, " B"], *, geometry: Geometry, rng: torch.Generator, share: Share | None = None
) -> Segments:
    """Draw segments to predict, which start at their anchor: a uniform on [0, T-1-l']."""
    row_M, seq_len_M, length_M, (anchor_draw_M, _) = _lay_out(seq_len_B, geometry, rng, share)
    anchor_M = _between(torch.zeros_like(length_M), seq_len_M - 1 - length_M, anchor_draw_M)
    return Segments(row_M, anchor_M, anchor_M, length_M)


def _lay_out(
    seq_len_B: Int[Tensor, " B"], geometry: Geometry, rng: torch.Generator, share: Share | None
) -> tuple[Int[Tensor, " M"], Int[Tensor, " M"], Int[Tensor, " M"], Float[Tensor, "2 M"]]:
    """Return row, length of the sequence and length of each segment, and two uniform draws for its place."""
    num_rows, num_segments = len(seq_len_B), geometry.num_segments
    row_M = torch.arange(num_rows, device=seq_len_B.device).repeat_interleave(num_segments)
    seq_len_M = seq_len_B[row_M]
    length_M = (seq_len_M - 1).clamp(max=geometry.segment_length)
    num_drawn = 1 if geometry.is_shared_by_batch else num_rows if share is None else share.num_rows
    uniform_2BN = torch.rand(2, num_drawn, num_segments, generator=rng, dtype=torch.float64)
    if share is not None and num_drawn > 1:
        uniform_2BN = share.take(uniform_2BN, dim=1)
    return row_M, seq_len_M, length_M, uniform_2BN.expand(2, num_rows, num_segments).reshape(2, -1)


def _between(
    first_M: Int[Tensor, " M"], last_M: Int[Tensor, " M"], uniform_M: Float[Tensor, " M"]
) -> Int[Tensor, " M"]:
    """Turn uniform draws of [0, 1) into whole numbers from `first_M` to `last_M`, both included.

    The draws are doubles on the CPU, whatever the device: not every device has doubles.
    """
    return first_M + ((last_M - first_M + 1).cpu() * uniform_M).long().to(first_M.device)


@runtime_checkable
class Objective(Protocol):
    """A loss on segments of the input, computed from the main network's states at anchors."""

    def sample(self, seq_len_B: Int[Tensor, " B"], *, rng: torch.Generator, share: Share | None = None) -> Segments:
        """Draw segments and their anchors; with a share, as for the whole batch."""

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

        With `draws` as in training (drop-connect, scheduled sampling); with None, as in evaluation, no weight is
        dropped and all tokens are true.
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
        is_there_MSO: Bool[Tensor, "M S O"] | None = None,
    ) -> LossSum:
        """Sum over features, then over the tokens that are targets.

        Mask channels, with which vectors may end, are no targets, nor are values that are not there; a token then
        counts by the share of its values that are.
        """
        if not self.is_token:
            target_MS = target_MS[..., : output_MSO.shape[2]]
        if is_there_MSO is not None:
            is_counted_MSO = is_there_MSO & is_target_MS[:, :, None]
            total = torch.where(is_counted_MSO, (output_MSO - target_MS).square(), 0.0).sum()
            return LossSum(total / self.divisor, is_counted_MSO.sum().to(total.dtype) / output_MSO.shape[2])
        if self.is_token:
            error_MS = F.cross_entropy(output_MSO.transpose(1, 2), target_MS, reduction="none")
        else:
            error_MS = (output_MSO - target_MS).square().sum(dim=2)
        return LossSum(torch.where(is_target_MS, error_MS, 0.0).sum() / self.divisor, is_target_MS.sum())


def find_targets(segments: Segments) -> Bool[Tensor, "M S"]:
    """Mark the steps at which each segment has a target; shorter segments have fewer."""
    step_1S = torch.arange(int(segments.length_M.max()), device=segments.length_M.device)[None]
    return step_1S < segments.length_M[:, None]


def segment_positions(segments: Segments, *, order: Order) -> Int[Tensor, "M S1"]:
    """Return the positions of each segment's tokens in the order in which they are decoded: one more than targets.

    Rows of shorter segments go on beyond their end; `find_targets` masks these entries.
    """
    step_1S = torch.arange(int(segments.length_M.max()) + 1, device=segments.start_M.device)[None]
    if order == "forward":
        return segments.start_M[:, None] + step_1S
    return (segments.start_M + segments.length_M)[:, None] - step_1S


def gather_tokens(
    batch: SequenceBatch, segments: Segments, *, order: Order
) -> tuple[Shaped[Tensor, "M S *D"], Shaped[Tensor, "M S *D"], Bool[Tensor, "M S D"] | None]:
    """Return all tokens of the segments except the last (inputs), all except the first (targets), what of these is."""
    column_MS = batch.column_of(segments.row_M, segment_positions(segments, order=order))
    token_MS, there_BTD = gather_columns(batch.x_BT, segments.row_M, column_MS), batch.is_there_BTD
    is_there_MSD = None if there_BTD is None else gather_columns(there_BTD, segments.row_M, column_MS[:, 1:])
    return token_MS[:, :-1], token_MS[:, 1:], is_there_MSD


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

    def sample(self, seq_len_B: Int[Tensor, " B"], *, rng: torch.Generator, share: Share | None = None) -> Segments:
        """Draw the segments to rebuild, and their anchors."""
        return sample_past_segments(seq_len_B, geometry=self.geometry, placement=self.placement, rng=rng, share=share)

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
        """Return the summed loss of all tokens; `true_probability` is that of scheduled sampling."""
        x_MS, target_MS, is_there_MSD = gather_tokens(batch, segments, order=self.order)
        mask_OF = sampling = None
        if draws is not None:
            mask_OF = self.decoder.head.draw_dropconnect_mask(draws.rng("decoder drop-connect"))
            if true_probability < 1:
                uniform_2MS = self._draw_uniforms(batch, *x_MS.shape[:2], rng=draws.rng("sampling")).to(x_MS.device)
                sampling = Sampling(uniform_2MS[0] < true_probability, uniform_2MS[1])
        start = self.decoder.start(state)
        output_MSO = self.decoder(encoder.embedding, x_MS, start, dropconnect_mask_OF=mask_OF, sampling=sampling)
        return self.token_loss(output_MSO, target_MS, find_targets(segments), is_there_MSD)

    def _draw_uniforms(
        self, batch: SequenceBatch, num_segments: int, num_steps: int, *, rng: torch.Generator
    ) -> Float[Tensor, "2 M S"]:
        """Draw two numbers for each token of all segments; with a share, as for the whole batch."""
        if batch.share is None:
            return torch.rand(2, num_segments, num_steps, generator=rng)
        longest = min(batch.x_BT.shape[1] - 1, self.geometry.segment_length)
        shape = (2, batch.share.num_rows, self.geometry.num_segments, longest)
        return batch.share.take(torch.rand(shape, generator=rng), dim=1)[..., :num_steps].flatten(1, 2)

    def generate(
        self, encoder: Encoder, batch: SequenceBatch, segments: Segments, state: RNNState
    ) -> Shaped[Tensor, "M S *D"]:
        """Return the segments as the decoder remembers them, given only their first token; in decoding order."""
        x_MS, _, _ = gather_tokens(batch, segments, order=self.order)
        # One more input than usual, so that the last prediction is also fed back and thereby returned.
        x_MS = torch.cat([x_MS, x_MS[:, :1]], dim=1)
        half_MS = torch.full(x_MS.shape[:2], 0.5, device=x_MS.device)
        sampling = Sampling(torch.zeros_like(half_MS, dtype=torch.bool), half_MS)
        _, generated_MS = self.decoder.generate(encoder.embedding, x_MS, self.decoder.start(state), sampling)
        return generated_MS[:, 1:]


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

    def sample(self, seq_len_B: Int[Tensor, " B"], *, rng: torch.Generator, share: Share | None = None) -> Segments:
        """Draw the segments to predict; each starts at its anchor."""
        return sample_future_segments(seq_len_B, geometry=self.geometry, rng=rng, share=share)

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
        """Return the summed loss of all tokens."""
        x_MS, target_MS, is_there_MSD = gather_tokens(batch, segments, order="forward")
        layers: list[Callable[[Tensor, RNNState], Run]] = [encoder]
        starts = [state]
        if self.upper is not None:
            layers.append(self.upper)
            starts.append(self.upper.initial_state(len(segments.row_M)))
        h_MSH = forward_truncated(layers, x_MS, starts, window=self.window)
        mask_OF = None if draws is None else self.head.draw_dropconnect_mask(draws.rng("decoder drop-connect"))
        return self.token_loss(self.head(h_MSH, mask_OF), target_MS, find_targets(segments), is_there_MSD)
