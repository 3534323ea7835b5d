"""Dropout whose mask is cheap on a processor, where drawing one number per element took a third of an update."""

import torch
import torch.nn.functional as F
from jaxtyping import Shaped
from torch import Tensor, nn

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
            return F.dropout(x, self.rate)
        num_cleared = min(round(self.rate * LEVELS), LEVELS - 1)
        return x * draw_kept(x, num_cleared).to(x.dtype).mul_(LEVELS / (LEVELS - num_cleared))


def draw_kept(x: Shaped[Tensor, "..."], num_cleared: int) -> Shaped[Tensor, "..."]:
    """Draw for each element whether it is kept, which it is at all but `num_cleared` of the levels."""
    num_draws = -(-x.numel() // 4)
    bits = torch.empty(num_draws, dtype=torch.int64).random_(SMALLEST_64, None).view(torch.int16)
    return (bits[: x.numel()] >= SMALLEST_16 + num_cleared).view(x.shape)
