"""The LSTM (Hochreiter and Schmidhuber, 1997): one bias a gate, and rows that may begin late or end early.

Gates stand in torch's order: input, forget, cell, output.
"""

import torch

from auxrnn.config import GateInit
from auxrnn.models.cells.gated import Gated
from auxrnn.models.cells.recurrence import LayerInput, LayerRun, draw_gate_bias, run_torch


class LSTM(Gated):
    """A stack of LSTM layers with Glorot-uniform weights, zero biases and a forget-gate bias of one."""

    cell_name = "lstm"

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__(input_size, hidden_size=hidden_size, num_layers=num_layers)
        self.initialize_gates("forget-one", longest=1)

    def initialize_gates(self, gate_init: GateInit, *, longest: int) -> None:
        """Set the biases of the forget gates, and those of the input gates to the opposite where gates differ."""
        size = self.hidden_size
        for bias_G in self.bias:
            forget_H = draw_gate_bias(gate_init, size, longest=longest)
            bias_G.detach()[size : 2 * size] = forget_H
            if gate_init in ("chrono", "uniform"):
                bias_G.detach()[:size] = -forget_H

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run torch's LSTM."""
        # With the input gate shut and the forget gate open the cell keeps its value exactly, and a cell of zeros gives
        # an output of zeros. Zeroing the input would not do: biases open the gates.
        return run_torch(torch.lstm, inputs, self.weight_hh[layer], idle_gates=(-1, 1, 0, 0))
