"""The r-LSTM objective: rebuild a segment that was read before the anchor (section 3.1)."""

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn

from auxrnn.auxiliary.losses import TokenLoss, find_targets
from auxrnn.auxiliary.segments import Geometry, sample_past_segments, segment_positions
from auxrnn.bptt import GradientWindow, gather_columns
from auxrnn.config import Order, Placement, Window
from auxrnn.models.decoder import Decoder, Sampling
from auxrnn.models.encoder import Encoder
from auxrnn.structs import Draws, LossSum, RNNState, Segments, SequenceBatch


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
        start = self.decoder.start(state)
        return self.decoder.generate(encoder.embedding, x_MS, start, sampling=sampling, dropconnect_mask_OF=None)[:, 1:]

    def _inputs_and_targets(
        self, batch: SequenceBatch, segments: Segments
    ) -> tuple[Shaped[Tensor, "M S *D"], Shaped[Tensor, "M S *D"]]:
        """Return the segments' tokens but the last, and but the first, in decoding order."""
        column_MS = batch.column_of(segments.row_M, segment_positions(segments, order=self.order))
        token_MS = gather_columns(batch.x_BT, segments.row_M, column_MS)
        return token_MS[:, :-1], token_MS[:, 1:]
