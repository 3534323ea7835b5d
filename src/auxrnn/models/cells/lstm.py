"""The LSTM (Hochreiter and Schmidhuber, 1997): one bias a gate, and rows that may begin late or end early.

Gates stand in torch's order: input, forget, cell, output. In single precision on CPUs the fused kernel runs the
recurrence; anywhere else torch does (oneDNN, cuDNN). The torch path is the readable reference for the kernel.
"""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from auxrnn.config import GateInit
from auxrnn.kernels import lstm as kernel
from auxrnn.models.cells.recurrence import (
    SATURATING,
    Embeds,
    InputMap,
    LayerState,
    Recurrence,
    call_torch,
    draw_gate_bias,
    mark_idle,
)
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
        num_rows, num_columns = x_BT.shape[:2]
        row_B = torch.arange(num_rows, device=x_BT.device)
        query = StateQuery(row_B, torch.full_like(row_B, num_columns) if end_B is None else end_B.clamp(min=0))
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

    def forward_layer(
        self,
        layer: int,
        x_BTI: Float[Tensor, "B T I"],
        start: LayerState,
        *,
        input_map: InputMap,
        idle_BT: Bool[Tensor, "B T"] | None,
    ) -> tuple[Float[Tensor, "B T H"], LayerState]:
        """Run torch's LSTM."""
        weight_GI, bias_G = input_map
        if idle_BT is not None:
            # One more input shuts the input gate and opens the forget gate: the cell keeps its value exactly, and a
            # cell of zeros gives an output of zeros. Zeroing the input would not do: biases open the gates.
            x_BTI, weight_GI = mark_idle(x_BTI, weight_GI, idle_BT, _idle_weight(self.weight_hh[layer]))
        weights = [weight_GI, self.weight_hh[layer], bias_G, torch.zeros_like(bias_G)]
        h_BTH, h_1BH, c_1BH = call_torch(torch.lstm, x_BTI, [part[None].contiguous() for part in start], weights)
        return h_BTH, (h_1BH[0], c_1BH[0])

    def folded_weights(self, embedding: Embeds | None) -> list[Tensor]:
        """Return input weights, recurrent weights and bias of each layer, with the embedding folded in."""
        bottom = self.input_maps()[0]
        return self._list_weights(bottom if embedding is None else embedding.fold(bottom))

    def _fold(self, x_BT: Steps, embedding: Embeds | None) -> tuple[Shaped[Tensor, "B T *I"], list[Tensor]]:
        """Return the input and the weights of all layers as the kernel takes them."""
        if embedding is None or embedding.is_foldable:
            return x_BT, self.folded_weights(embedding)
        x_BTI, bottom = embedding.embed(x_BT, self.input_maps()[0])
        return x_BTI, self._list_weights(bottom)

    def _list_weights(self, bottom: InputMap) -> list[Tensor]:
        weights = [bottom.weight_GI, self.weight_hh[0], bottom.bias_G]
        for layer in range(1, self.num_layers):
            weights += [self.weight_ih[layer], self.weight_hh[layer], self.bias[layer]]
        # Under autocast, folding halves the precision of its result.
        return [weight.float() for weight in weights]


def _idle_weight(weight_GH: Float[Tensor, "G H"]) -> Float[Tensor, " G"]:
    weight_4H = weight_GH.new_zeros(4, weight_GH.shape[1])
    weight_4H[0] = -SATURATING
    weight_4H[1] = SATURATING
    return weight_4H.flatten()
