"""The iRNN (Le, Jaitly and Hinton, 2015): a plain ReLU network that starts by copying its state.

Here `G` is `H`: an input step is mapped to the units themselves.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from auxrnn.models.cells.recurrence import SATURATING, InputMap, LayerState, Recurrence, call_torch, mark_idle

# The paper's: inputs hardly disturb what is copied, until training says so.
INPUT_DEVIATION = 0.001


class IRNN(Recurrence):
    """A stack of ReLU layers with identity recurrent matrices, small Gaussian input weights and zero biases."""

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__(hidden_size=hidden_size, num_layers=num_layers)
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.weight_ih = nn.ParameterList(torch.empty(hidden_size, size) for size in sizes)
        self.weight_hh = nn.ParameterList(torch.eye(hidden_size) for _ in sizes)
        self.bias = nn.ParameterList(torch.zeros(hidden_size) for _ in sizes)
        for weight in self.weight_ih:
            nn.init.normal_(weight, std=INPUT_DEVIATION)

    def forward_layer(
        self,
        layer: int,
        x_BTI: Float[Tensor, "B T I"],
        start: LayerState,
        *,
        input_map: InputMap,
        idle_BT: Bool[Tensor, "B T"] | None,
    ) -> tuple[Float[Tensor, "B T H"], LayerState]:
        """Run torch's plain recurrence."""
        weight_HI, bias_H = input_map
        if idle_BT is not None:
            # Far below zero the ReLU gives zeros: what a row that has not begun has, and one that has ended may have.
            x_BTI, weight_HI = mark_idle(x_BTI, weight_HI, idle_BT, torch.full_like(bias_H, -SATURATING))
        weights = [weight_HI, self.weight_hh[layer], bias_H, torch.zeros_like(bias_H)]
        h_BTH, h_1BH = call_torch(torch.rnn_relu, x_BTI, start[0][None].contiguous(), weights)
        return h_BTH, (h_1BH[0], start[1])
