"""The GRU (Cho et al., 2014) as torch and cuDNN run it: the reset gate acts after the recurrent matrix.

Gates stand in torch's order: reset, update, new. An update gate of 1 keeps the state, one of 0 replaces it.
"""

import torch
from torch import nn

from auxrnn.config import GateInit
from auxrnn.models.cells.recurrence import LayerInput, LayerRun, Recurrence, draw_gate_bias, run_torch


class GRU(Recurrence):
    """A stack of GRU layers with Glorot-uniform weights and zero biases.

    `bias` is added on the side of the input, `bias_hh` on the side of the state. They differ for the new gate only,
    where the reset gate scales the second; both are complete, so that parameters are those of `nn.GRU`.
    """

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__(hidden_size=hidden_size, num_layers=num_layers)
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.weight_ih = nn.ParameterList(torch.empty(3 * hidden_size, size) for size in sizes)
        self.weight_hh = nn.ParameterList(torch.empty(3 * hidden_size, hidden_size) for _ in sizes)
        self.bias = nn.ParameterList(torch.zeros(3 * hidden_size) for _ in sizes)
        self.bias_hh = nn.ParameterList(torch.zeros(3 * hidden_size) for _ in sizes)
        for weight in [*self.weight_ih, *self.weight_hh]:
            nn.init.xavier_uniform_(weight)

    def initialize_gates(self, gate_init: GateInit, *, longest: int) -> None:
        """Set the biases of the update gates."""
        size = self.hidden_size
        for bias_G in self.bias:
            bias_G.detach()[size : 2 * size] = draw_gate_bias(gate_init, size, longest=longest)

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run torch's GRU."""
        # With the update gate wide open a state h becomes (h - new) * 1 + new, and zeros stay exactly zeros.
        return run_torch(torch.gru, inputs, self.weight_hh[layer], self.bias_hh[layer], idle_gates=(0, 1, 0))
