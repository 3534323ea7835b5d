"""Where anchors and segments are drawn (sections 3.1, 3.2 and 5.4).

A segment is the l' + 1 steps from `start` on, l' inputs and l' targets, with l' = min(l, T - 1). Positions are 0-based.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from auxrnn.config import Order, Placement
from auxrnn.structs import Segments


class Geometry(NamedTuple):
    """How many segments each sequence has, how long they are, and whether a batch shares one draw."""

    num_segments: int
    segment_length: int
    is_shared_by_batch: bool = False


def sample_past_segments(
    seq_len_B: Int[Tensor, " B"], *, geometry: Geometry, placement: Placement, rng: torch.Generator
) -> Segments:
    """Draw segments to reconstruct: right before their anchor, anywhere before it, or also across it.

    `immediate`: a uniform on [l', T-1], s = a - l'. `past`: the same a, s uniform on [0, a - l'].
    `past_future`: a uniform on [1, T-1], s uniform on [0, min(a, T-1-l')], so that it may spill over the anchor.
    """
    row_M, seq_len_M, length_M = _lay_out(seq_len_B, geometry)
    last_M = seq_len_M - 1
    anchor_draw_M, start_draw_M = _draw_uniform(len(seq_len_B), geometry, rng)
    first_anchor_M = last_M.clamp(max=1) if placement == "past_future" else length_M
    anchor_M = _between(first_anchor_M, last_M, anchor_draw_M)
    last_start_M = {
        "immediate": anchor_M - length_M,
        "past": anchor_M - length_M,
        "past_future": torch.minimum(anchor_M, last_M - length_M),
    }[placement]
    first_start_M = last_start_M if placement == "immediate" else torch.zeros_like(last_start_M)
    return Segments(row_M, anchor_M, _between(first_start_M, last_start_M, start_draw_M), length_M)


def sample_future_segments(seq_len_B: Int[Tensor, " B"], *, geometry: Geometry, rng: torch.Generator) -> Segments:
    """Draw segments to predict, which start at their anchor: a uniform on [0, T-1-l']."""
    row_M, seq_len_M, length_M = _lay_out(seq_len_B, geometry)
    anchor_draw_M, _ = _draw_uniform(len(seq_len_B), geometry, rng)
    anchor_M = _between(torch.zeros_like(length_M), seq_len_M - 1 - length_M, anchor_draw_M)
    return Segments(row_M, anchor_M, anchor_M, length_M)


def segment_positions(segments: Segments, *, order: Order) -> Int[Tensor, "M S1"]:
    """Return the positions of each segment's tokens in the order in which they are decoded: one more than targets.

    Rows of shorter segments go on beyond their end; their last entries are undefined.
    """
    longest = int(segments.length_M.max())
    step_1S = torch.arange(longest + 1, device=segments.start_M.device)[None]
    if order == "forward":
        return segments.start_M[:, None] + step_1S
    return (segments.start_M + segments.length_M)[:, None] - step_1S


def _lay_out(
    seq_len_B: Int[Tensor, " B"], geometry: Geometry
) -> tuple[Int[Tensor, " M"], Int[Tensor, " M"], Int[Tensor, " M"]]:
    row_B = torch.arange(len(seq_len_B), device=seq_len_B.device)
    row_M = row_B.repeat_interleave(geometry.num_segments)
    seq_len_M = seq_len_B[row_M]
    return row_M, seq_len_M, (seq_len_M - 1).clamp(max=geometry.segment_length)


def _draw_uniform(num_rows: int, geometry: Geometry, rng: torch.Generator) -> Float[Tensor, "2 M"]:
    num_drawn = 1 if geometry.is_shared_by_batch else num_rows
    uniform_2BN = torch.rand(2, num_drawn, geometry.num_segments, generator=rng, dtype=torch.float64)
    return uniform_2BN.expand(2, num_rows, geometry.num_segments).reshape(2, -1)


def _between(
    first_M: Int[Tensor, " M"], last_M: Int[Tensor, " M"], uniform_M: Float[Tensor, " M"]
) -> Int[Tensor, " M"]:
    """Turn uniform draws of [0, 1) into whole numbers from `first_M` to `last_M`, both included.

    The draws are doubles on the CPU, whatever the device: not every device has doubles.
    """
    return first_M + ((last_M - first_M + 1).cpu() * uniform_M).long().to(first_M.device)
