"""Two-layer feed-forward heads with drop-connect on the second layer (section 4.1); plain linear ones for others."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Head(nn.Module):
    """Linear, ReLU, linear; in training, weights of the second layer are dropped at random (Wan et al., 2013).

    With a `head_size` of 0 there is no first layer.
    """

    def __init__(self, input_size: int, *, head_size: int, output_size: int, drop_connect: float) -> None:
        super().__init__()
        self.drop_connect = drop_connect
        self.hidden = nn.Linear(input_size, head_size) if head_size else None
        self.output = nn.Linear(head_size or input_size, output_size)
        for layer in (self.hidden, self.output):
            if layer is not None:
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def draw_dropconnect_mask(self, rng: torch.Generator) -> Float[Tensor, "C F"]:
        """Draw which weights one training step keeps, scaled so that the expected output stays the same.

        One draw serves all rows and time steps of the training step.
        """
        keep_probability = 1 - self.drop_connect
        is_kept_CF = torch.rand(self.output.weight.shape, generator=rng) < keep_probability
        return is_kept_CF.to(self.output.weight) / keep_probability

    def forward(
        self, x_BH: Float[Tensor, "*B H"], mask_CF: Float[Tensor, "C F"] | None = None
    ) -> Float[Tensor, "*B C"]:
        """Return the outputs; `mask_CF` from `draw_dropconnect_mask` in training, None at evaluation."""
        hidden_BF = x_BH if self.hidden is None else F.relu(self.hidden(x_BH))
        return F.linear(hidden_BF, self.output_weight(mask_CF), self.output.bias)

    def output_weight(self, mask_CF: Float[Tensor, "C F"] | None) -> Float[Tensor, "C F"]:
        """Return the second layer's weights with the mask applied."""
        return self.output.weight if mask_CF is None else mask_CF * self.output.weight
