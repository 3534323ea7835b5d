"""The iRNN (Le, Jaitly and Hinton, 2015): a plain ReLU network that starts by copying its state.

Here `G` is `H`: an input step is mapped to the units themselves.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from auxrnn.models.cells.idle import SATURATING, mark_idle, run_layers
from auxrnn.models.cells.recurrence import Embeds, InputMap
from auxrnn.structs import RNNState, Run, Steps

# The paper's: inputs hardly disturb what is copied, until training says so.
INPUT_DEVIATION = 0.001


class IRNN(nn.Module):
    """A stack of ReLU layers with identity recurrent matrices, small Gaussian input weights and zero biases."""

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.weight_ih = nn.ParameterList(torch.empty(hidden_size, size) for size in sizes)
        self.weight_hh = nn.ParameterList(torch.eye(hidden_size) for _ in sizes)
        self.bias = nn.ParameterList(torch.zeros(hidden_size) for _ in sizes)
        for weight in self.weight_ih:
            nn.init.normal_(weight, std=INPUT_DEVIATION)

    @property
    def output_size(self) -> int:
        """Width of the outputs."""
        return self.hidden_size

    def initial_state(self, num_rows: int) -> RNNState:
        """Give zeros for each row, where the weights live."""
        h_LBH = self.bias[0].new_zeros(self.num_layers, num_rows, self.hidden_size)
        return RNNState(h_LBH, h_LBH[:, :, :0])

    def run(
        self,
        x_BT: Steps,
        state: RNNState,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Read the steps `begin_B <= t < end_B` of each row, as `Recurrence.run`; who begins late starts from zeros."""
        maps = [InputMap(weight, bias) for weight, bias in zip(self.weight_ih, self.bias, strict=True)]
        return run_layers(
            self._run_layer, x_BT, state, input_maps=maps, embedding=embedding, begin_B=begin_B, end_B=end_B
        )

    def _run_layer(
        self,
        layer: int,
        x_BTI: Float[Tensor, "B T I"],
        start_BH: Float[Tensor, "B H"],
        *,
        input_map: InputMap,
        idle_BT: Bool[Tensor, "B T"] | None,
    ) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
        weight_HI, bias_H = input_map
        if idle_BT is not None:
            # Far below zero the ReLU gives zeros: what a row that has not begun has, and one that has ended may have.
            x_BTI, weight_HI = mark_idle(x_BTI, weight_HI, idle_BT, torch.full_like(bias_H, -SATURATING))
        weights = [weight_HI, self.weight_hh[layer], bias_H, torch.zeros_like(bias_H)]
        has_biases, num_layers, dropout, is_bidirectional, is_batch_first = True, 1, 0.0, False, True
        h_BTH, h_1BH = torch.rnn_relu(
            x_BTI,
            start_BH[None].contiguous(),
            weights,
            has_biases,
            num_layers,
            dropout,
            torch.is_grad_enabled(),
            is_bidirectional,
            is_batch_first,
        )
        return h_BTH, h_1BH[0]
