"""Token losses, summed over all predicted tokens (section 3.4)."""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from auxrnn.structs import LossSum, Segments

TokenLoss = Callable[[Float[Tensor, "M S O"], Shaped[Tensor, "M S *D"], Bool[Tensor, "M S"]], LossSum]
"""Compares predictions with targets where the mask says that there is a target."""


def sum_squared_error(
    output_MSD: Float[Tensor, "M S D"], target_MSD: Float[Tensor, "M S D"], is_target_MS: Bool[Tensor, "M S"]
) -> LossSum:
    """Sum the squared distances of vectors: over their features, then over tokens."""
    error_MS = (output_MSD - target_MSD).square().sum(dim=2)
    return LossSum(torch.where(is_target_MS, error_MS, 0.0).sum(), is_target_MS.sum())


def sum_cross_entropy(
    output_MSV: Float[Tensor, "M S V"], target_MS: Int[Tensor, "M S"], is_target_MS: Bool[Tensor, "M S"]
) -> LossSum:
    """Sum the cross-entropies of characters, from logits."""
    error_MS = F.cross_entropy(output_MSV.transpose(1, 2), target_MS, reduction="none")
    return LossSum(torch.where(is_target_MS, error_MS, 0.0).sum(), is_target_MS.sum())


def divide_loss(token_loss: TokenLoss, divisor: float) -> TokenLoss:
    """Return a loss in units of `divisor`, so that one weight suits data of any scale."""
    return functools.partial(_divided, token_loss=token_loss, divisor=divisor)


def _divided(
    output_MSO: Float[Tensor, "M S O"],
    target_MS: Shaped[Tensor, "M S *D"],
    is_target_MS: Bool[Tensor, "M S"],
    *,
    token_loss: TokenLoss,
    divisor: float,
) -> LossSum:
    total, num_tokens = token_loss(output_MSO, target_MS, is_target_MS)
    return LossSum(total / divisor, num_tokens)


def find_targets(segments: Segments) -> Bool[Tensor, "M S"]:
    """Mark the steps at which each segment has a target; shorter segments have fewer."""
    step_1S = torch.arange(int(segments.length_M.max()), device=segments.length_M.device)[None]
    return step_1S < segments.length_M[:, None]
