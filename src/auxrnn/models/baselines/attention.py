"""Multi-head attention through torch's fused kernel: no matrix of queries by keys is ever held.

Adds the dimension letters `U` steps that are looked at (keys), `A` heads, `X` features of a head.
"""

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Projections(nn.Module):
    """The four linear maps of attention, without biases as in tensor2tensor."""

    def __init__(self, hidden_size: int, *, num_heads: int) -> None:
        super().__init__()
        if hidden_size % num_heads:
            raise ValueError(f"hidden_size is {hidden_size}; it must be a multiple of num_heads, {num_heads}")
        self.num_heads = num_heads
        self.query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.key = nn.Linear(hidden_size, hidden_size, bias=False)
        self.value = nn.Linear(hidden_size, hidden_size, bias=False)
        self.output = nn.Linear(hidden_size, hidden_size, bias=False)


class SelfAttention(nn.Module):
    """Each step looks at all real steps of its row."""

    def __init__(self, hidden_size: int, *, num_heads: int) -> None:
        super().__init__()
        self.maps = Projections(hidden_size, num_heads=num_heads)

    def forward(self, x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """Give what each step found; None says that all steps are real, which saves the mask."""
        maps = self.maps
        found_BTH = attend(
            maps.query(x_BTH), maps.key(x_BTH), maps.value(x_BTH), num_heads=maps.num_heads, visible_BU=real_BT
        )
        output_BTH: Tensor = maps.output(found_BTH)
        return output_BTH


def attend(
    query_BTH: Float[Tensor, "B T H"],
    key_BUH: Float[Tensor, "B U H"],
    value_BUH: Float[Tensor, "B U H"],
    *,
    num_heads: int,
    visible_BU: Bool[Tensor, "B U"] | None,
) -> Float[Tensor, "B T H"]:
    """Give for each query the mean of the visible values, weighted by how well its key fits.

    At least one key of each row must be visible. There is no dropout on the weights: the fused kernel has none.
    """
    # One mask for all queries and heads: the kernel broadcasts it, so it costs B * U elements.
    mask_B11U = None if visible_BU is None else visible_BU[:, None, None]
    query_BATX, key_BAUX, value_BAUX = (split_heads(x, num_heads) for x in (query_BTH, key_BUH, value_BUH))
    found_BATX = F.scaled_dot_product_attention(query_BATX, key_BAUX, value_BAUX, attn_mask=mask_B11U)
    return found_BATX.transpose(1, 2).flatten(2)


def split_heads(x_BTH: Float[Tensor, "B T H"], num_heads: int) -> Float[Tensor, "B A T X"]:
    """View the features as `num_heads` groups that attend apart."""
    return x_BTH.reshape(*x_BTH.shape[:2], num_heads, -1).transpose(1, 2)
