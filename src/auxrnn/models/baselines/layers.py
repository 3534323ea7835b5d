"""What the baselines share: rows moved so that they begin together, masks of what is real, and a cheap dropout."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from auxrnn.models.dropout import drop, own_rows, whole_shape
from auxrnn.structs import Steps


class Aligned(NamedTuple):
    """Sequences that begin together at column 0; row b is the first `length_B[b]` columns."""

    x_BT: Steps
    length_B: Int[Tensor, " B"]


def align_left(x_BT: Steps, first_B: Int[Tensor, " B"] | None) -> Aligned:
    """Shift each row so that it begins at column 0; without `first_B` the steps come back as they are, uncopied.

    What stands behind a row has no meaning, but it is finite where the row is: the row's last step is repeated there.
    """
    num_rows, num_columns = x_BT.shape[:2]
    if first_B is None:
        return Aligned(x_BT, torch.full((num_rows,), num_columns, dtype=torch.long, device=x_BT.device))
    first_B1 = first_B.unsqueeze(1)
    column_BT = (first_B1 + torch.arange(num_columns, device=x_BT.device)).clamp(max=num_columns - 1)
    row_B1 = torch.arange(num_rows, device=x_BT.device).unsqueeze(1)
    return Aligned(x_BT[row_B1, column_BT], num_columns - first_B)


def fix_length(x_BT: Int[Tensor, "B T"], first_B: Int[Tensor, " B"] | None, *, num_steps: int, padding: int) -> Aligned:
    """Return the first `num_steps` tokens of each row, from column 0 on, with `padding` behind shorter rows."""
    aligned = align_left(x_BT, first_B)
    length_B = aligned.length_B.clamp(max=num_steps)
    # A negative amount of padding cuts.
    cut_BT = F.pad(aligned.x_BT, (0, num_steps - x_BT.shape[1]))
    return Aligned(cut_BT.masked_fill(~find_real(length_B, num_steps), padding), length_B)


def find_real(length_B: Int[Tensor, " B"], num_columns: int) -> Bool[Tensor, "B T"]:
    """Mark which columns of left-aligned rows hold a step of the row; the others are padding."""
    return torch.arange(num_columns, device=length_B.device) < length_B.unsqueeze(1)


def clear_padding(x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
    """Return zeros where no step is real; None means that all are."""
    return x_BTH if real_BT is None else x_BTH.masked_fill(~real_BT.unsqueeze(2), 0)


def average_real(x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B H"]:
    """Return the mean over the real steps of each row; None means that all are."""
    if real_BT is None:
        return x_BTH.mean(dim=1)
    return clear_padding(x_BTH, real_BT).sum(dim=1) / real_BT.sum(dim=1, keepdim=True)


LEVELS = 1 << 16
"""Of a mask's 16 random bits; four elements share one draw of 64."""
SMALLEST_64, SMALLEST_16 = -(1 << 63), -(1 << 15)


class Dropout(nn.Module):
    """Clear each element with probability `rate` and scale up the rest so that the mean stays; nothing in evaluation.

    On a processor the rate is rounded to a multiple of 1 / 65,536, and the scale with it.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"rate is {rate}; it must be from 0 to below 1")
        self.rate = rate

    def forward(self, x: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """Draw from torch's own generator."""
        if not self.training or not self.rate:
            return x
        if x.device.type != "cpu":
            return drop(x, self.rate)
        num_cleared = min(round(self.rate * LEVELS), LEVELS - 1)
        shape = whole_shape(x)
        size = math.prod(shape)
        bits = torch.empty(-(-size // 4), dtype=torch.int64).random_(SMALLEST_64, None).view(torch.int16)
        is_kept = own_rows((bits[:size] >= SMALLEST_16 + num_cleared).view(shape))
        return x * is_kept.to(x.dtype).mul_(LEVELS / (LEVELS - num_cleared))
