"""The iRNN (Le, Jaitly and Hinton, 2015): a plain ReLU network that starts by copying its state."""

import torch
from torch import nn

from auxrnn.models.cells.recurrence import LayerInput, LayerRun, Recurrence, run_torch

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

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run torch's plain recurrence."""
        # Far below zero the ReLU gives zeros: what a row that has not begun has, and one that has ended may have.
        return run_torch(torch.rnn_relu, inputs, self.weight_hh[layer], idle_gates=(-1,))
