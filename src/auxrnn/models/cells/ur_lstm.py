"""The UR-LSTM (Gu et al., 2020): a refine gate for the forget gate, and biases that start it anywhere between 0 and 1.

    f = sigmoid(. + b), r = sigmoid(. - b), g = 2 r f + (1 - 2 r) f^2
    c = g c + (1 - g) tanh(.), h = sigmoid(.) tanh(c)

Where the forget gate saturates, the refine gate still moves the effective gate g between f^2 and 1 - (1 - f)^2. Gates
stand in the order refine, forget, cell, output.
"""

import torch
from torch import Tensor

from auxrnn.models.cells.gated import Gated
from auxrnn.models.cells.recurrence import LayerInput, LayerRun, draw_gate_bias, run_steps


class URLSTM(Gated):
    """A stack of UR-LSTM layers with Glorot-uniform weights, and biases b that spread the gates evenly."""

    cell_name = "ur_lstm"

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__(input_size, hidden_size=hidden_size, num_layers=num_layers)
        for bias_G in self.bias:
            # b is a part of the biases, which are learned.
            forget_H = draw_gate_bias("uniform", hidden_size, longest=1)
            bias_G.detach()[: 2 * hidden_size] = torch.cat([-forget_H, forget_H])

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run step by step."""

        def step(input_BG: Tensor, h_BH: Tensor, c_BH: Tensor) -> tuple[Tensor, Tensor]:
            refine_BH, forget_BH, cell_BH, output_BH = (input_BG + h_BH @ self.weight_hh[layer].T).chunk(4, dim=1)
            r_BH, f_BH = refine_BH.sigmoid(), forget_BH.sigmoid()
            keep_BH = 2 * r_BH * f_BH + (1 - 2 * r_BH) * f_BH.square()
            c_BH = keep_BH * c_BH + (1 - keep_BH) * cell_BH.tanh()
            return output_BH.sigmoid() * c_BH.tanh(), c_BH

        return run_steps(step, inputs)
