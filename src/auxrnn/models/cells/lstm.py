"""The LSTM (Hochreiter and Schmidhuber, 1997): one bias a gate, and rows that may begin late or end early.

Gates stand in torch's order: input, forget, cell, output. In single precision on CPUs the fused kernel runs the
recurrence; anywhere else torch does (oneDNN, cuDNN). The torch path is the readable reference for the kernel.
"""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from auxrnn.config import GateInit
from auxrnn.kernels import lstm as kernel
from auxrnn.models.cells.recurrence import Embeds, InputMap, LayerInput, LayerRun, Recurrence, draw_gate_bias, run_torch
from auxrnn.structs import RNNState, Run, StateQuery, Steps


class LSTM(Recurrence):
    """A stack of LSTM layers with Glorot-uniform weights, zero biases and a forget-gate bias of one."""

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__(hidden_size=hidden_size, num_layers=num_layers)
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.weight_ih = nn.ParameterList(torch.empty(4 * hidden_size, size) for size in sizes)
        self.weight_hh = nn.ParameterList(torch.empty(4 * hidden_size, hidden_size) for _ in sizes)
        self.bias = nn.ParameterList(torch.zeros(4 * hidden_size) for _ in sizes)
        for weight in [*self.weight_ih, *self.weight_hh]:
            nn.init.xavier_uniform_(weight)
        self.initialize_gates("forget-one", longest=1)

    def initialize_gates(self, gate_init: GateInit, *, longest: int) -> None:
        """Set the biases of the forget gates, and those of the input gates to the opposite where gates differ."""
        size = self.hidden_size
        for bias_G in self.bias:
            forget_H = draw_gate_bias(gate_init, size, longest=longest)
            bias_G.detach()[size : 2 * size] = forget_H
            if gate_init in ("chrono", "uniform"):
                bias_G.detach()[:size] = -forget_H

    def initial_state(self, num_rows: int) -> RNNState:
        """Return zeros for outputs and cells."""
        zeros_LBH = self.bias[0].new_zeros(self.num_layers, num_rows, self.hidden_size)
        return RNNState(zeros_LBH, zeros_LBH)

    def forward(
        self,
        x_BT: Steps,
        state: RNNState,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Run the steps `begin_B <= t < end_B` of each row, as `Recurrence.forward`, on the kernel if it can."""
        if not kernel.can_run(x_BT, self.bias[0]):
            return super().forward(x_BT, state, embedding=embedding, begin_B=begin_B, end_B=end_B)
        row_B = torch.arange(len(x_BT), device=x_BT.device)
        query = StateQuery(row_B, torch.full_like(row_B, x_BT.shape[1]) if end_B is None else end_B.clamp(min=0))
        input_BT, weights = self._fold(x_BT, embedding)
        outputs = kernel.forward(input_BT, weights, state, query, begin_B=begin_B, wants_outputs=True)
        return Run(outputs.h_BTH, outputs.states)

    def states_at(
        self,
        x_BT: Steps,
        state: RNNState,
        query: StateQuery,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
    ) -> RNNState:
        """Return the queried states, on the kernel if it can: one pass that keeps nothing else without gradients."""
        if not kernel.can_run(x_BT, self.bias[0]):
            return super().states_at(x_BT, state, query, embedding=embedding, begin_B=begin_B)
        input_BT, weights = self._fold(x_BT, embedding)
        return kernel.forward(input_BT, weights, state, query, begin_B=begin_B).states

    def can_generate(self, x_BT: Steps, embedding: Embeds) -> bool:
        """Return whether the kernel can run, and the embedding be folded."""
        return embedding.is_foldable and kernel.can_run(x_BT, self.bias[0])

    def generate(
        self, x_BT: Steps, state: RNNState, feedback: kernel.Feedback, *, embedding: Embeds
    ) -> tuple[Float[Tensor, "B T H"], Steps]:
        """Run steps of which some are replaced by predictions on the way, where `can_generate` says so."""
        input_BT, weights = self._fold(x_BT, embedding)
        nothing = torch.empty(0, dtype=torch.long, device=x_BT.device)
        query = StateQuery(nothing, nothing)
        outputs = kernel.forward(input_BT, weights, state, query, wants_outputs=True, feedback=feedback)
        return outputs.h_BTH, outputs.x_BT

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run torch's LSTM."""
        # With the input gate shut and the forget gate open the cell keeps its value exactly, and a cell of zeros gives
        # an output of zeros. Zeroing the input would not do: biases open the gates.
        return run_torch(torch.lstm, inputs, self.weight_hh[layer], idle_gates=(-1, 1, 0, 0))

    def kernel_weights(self, bottom: InputMap) -> list[Tensor]:
        """Return input weights, recurrent weights and bias of each layer, with `bottom` as the way into the lowest."""
        weights = []
        for input_map, weight_GH in zip([bottom, *self.input_maps()[1:]], self.weight_hh, strict=True):
            weights += [input_map.weight_GI, weight_GH, input_map.bias_G]
        # Under autocast, folding halves the precision of its result.
        return [weight.float() for weight in weights]

    def _fold(self, x_BT: Steps, embedding: Embeds | None) -> tuple[Shaped[Tensor, "B T *I"], list[Tensor]]:
        """Return the input and the weights of all layers as the kernel takes them."""
        bottom = self.input_maps()[0]
        if embedding is not None and embedding.is_foldable:
            bottom = embedding.fold(bottom)
        elif embedding is not None:
            x_BT, bottom = embedding.embed(x_BT, bottom)
        return x_BT, self.kernel_weights(bottom)
