"""The GRU (Cho et al., 2014) as torch and cuDNN run it: the reset gate acts after the recurrent matrix.

Gates stand in torch's order: reset, update, new. An update gate of 1 keeps the state, one of 0 replaces it.
"""

import torch
from torch import Tensor, nn

from auxrnn.config import GateInit
from auxrnn.models.cells.gated import Gated
from auxrnn.models.cells.recurrence import InputMap, LayerInput, LayerRun, draw_gate_bias, run_torch


class GRU(Gated):
    """A stack of GRU layers with Glorot-uniform weights and zero biases.

    `bias` is added on the side of the input, `bias_hh` on the side of the state. They differ for the new gate only,
    where the reset gate scales the second; both are complete, so that parameters are those of `nn.GRU`.
    """

    cell_name = "gru"
    gates = 3
    has_cells = False

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__(input_size, hidden_size=hidden_size, num_layers=num_layers)
        self.bias_hh = nn.ParameterList(torch.zeros(3 * hidden_size) for _ in range(num_layers))

    def initialize_gates(self, gate_init: GateInit, *, longest: int) -> None:
        """Set the biases of the update gates."""
        size = self.hidden_size
        for bias_G in self.bias:
            bias_G.detach()[size : 2 * size] = draw_gate_bias(gate_init, size, longest=longest)

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run torch's GRU."""
        # With the update gate wide open a state h becomes (h - new) * 1 + new, and zeros stay exactly zeros.
        return run_torch(torch.gru, inputs, self.weight_hh[layer], self.bias_hh[layer], idle_gates=(0, 1, 0))

    def kernel_layer(self, layer: int, input_map: InputMap) -> tuple[Tensor, Tensor, Tensor]:
        """Return weights for four sums: of the new gate, what comes from the state stands apart from the input's."""
        size, (weight_GI, bias_G), bias_hh_G = self.hidden_size, input_map, self.bias_hh[layer]
        gates_HH, new_HH = self.weight_hh[layer].split([2 * size, size])
        gates_2I, new_HI = torch.split(weight_GI, [2 * size, size])
        bias_4H = torch.cat([bias_G[: 2 * size] + bias_hh_G[: 2 * size], bias_hh_G[2 * size :], bias_G[2 * size :]])
        weight_4I = torch.cat([gates_2I, torch.zeros_like(new_HI), new_HI])
        return weight_4I, torch.cat([gates_HH, new_HH, torch.zeros_like(new_HH)]), bias_4H
