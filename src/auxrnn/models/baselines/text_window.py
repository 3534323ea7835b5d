"""Texts of any length as rows of one fixed length: what models with dense layers over time need."""

import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from auxrnn.models.baselines.alignment import Aligned, align_left, find_real


def fix_length(x_BT: Int[Tensor, "B T"], first_B: Int[Tensor, " B"] | None, *, num_steps: int, padding: int) -> Aligned:
    """Give the first `num_steps` tokens of each row, from column 0 on; behind a shorter row stands `padding`."""
    aligned = align_left(x_BT, first_B)
    length_B = aligned.length_B.clamp(max=num_steps)
    # A negative amount of padding cuts.
    cut_BT = F.pad(aligned.x_BT, (0, num_steps - x_BT.shape[1]))
    return Aligned(cut_BT.masked_fill(~find_real(length_B, num_steps), padding), length_B)
