"""The LSTM (Hochreiter and Schmidhuber, 1997): one bias a gate, and rows that may begin late or end early.

Gates stand in torch's order: input, forget, cell, output. In single precision on CPUs the fused kernel runs the
recurrence; anywhere else torch does (oneDNN, cuDNN). The torch path is the readable reference for the kernel.
"""

import functools

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from auxrnn.kernels import lstm as kernel
from auxrnn.models.cells.idle import SATURATING, find_idle, last_output, mark_idle
from auxrnn.models.cells.recurrence import Embeds, InputMap
from auxrnn.models.cells.walking import walk
from auxrnn.structs import Places, RNNState, Run, Steps


class LSTM(nn.Module):
    """A stack of LSTM layers with Glorot-uniform weights, zero biases and a forget-gate bias of one."""

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.weight_ih = nn.ParameterList(torch.empty(4 * hidden_size, size) for size in sizes)
        self.weight_hh = nn.ParameterList(torch.empty(4 * hidden_size, hidden_size) for _ in sizes)
        self.bias = nn.ParameterList(torch.empty(4 * hidden_size) for _ in sizes)
        for weight in [*self.weight_ih, *self.weight_hh]:
            nn.init.xavier_uniform_(weight)
        self.start_gates(keep=1.0)

    @property
    def output_size(self) -> int:
        """Width of the outputs."""
        return self.hidden_size

    def start_gates(self, *, keep: float) -> None:
        """Set the biases of the gate that keeps the state; those of the others are zero."""
        for bias_G in self.bias:
            nn.init.zeros_(bias_G)
            nn.init.constant_(bias_G.detach()[self.hidden_size : 2 * self.hidden_size], keep)

    def start_chrono(self, longest: int) -> None:
        """Let units remember over all spans up to `longest` steps (chrono: Tallec and Ollivier, 2018)."""
        size = self.hidden_size
        for bias_G in self.bias:
            forget_H = torch.log(torch.empty(size).uniform_(1, max(longest - 1, 1)))
            bias_G.detach()[:size] = -forget_H
            bias_G.detach()[size : 2 * size] = forget_H

    def start_uniform(self) -> None:
        """Spread the forget gates evenly between 0 and 1 (uniform gate initialization: Gu et al., 2020)."""
        size = self.hidden_size
        for bias_G in self.bias:
            forget_H = torch.logit(torch.empty(size).uniform_(1 / size, 1 - 1 / size))
            bias_G.detach()[:size] = -forget_H
            bias_G.detach()[size : 2 * size] = forget_H

    def initial_state(self, num_rows: int) -> RNNState:
        """Give zeros for each row, where the weights live."""
        zeros_LBH = self.bias[0].new_zeros(self.num_layers, num_rows, self.hidden_size)
        return RNNState(zeros_LBH, zeros_LBH)

    def run(
        self,
        x_BT: Steps,
        state: RNNState,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Read the steps `begin_B <= t < end_B` of each row, and give all outputs and the state after the last of them.

        Other columns leave no trace in values or gradients, but outputs there mean nothing. A row that begins late must
        begin from zeros. Steps are read through an `embedding`, or as they are.
        """
        if not kernel.can_run(x_BT, self.bias[0]):
            return self.run_in_torch(x_BT, state, embedding=embedding, begin_B=begin_B, end_B=end_B)
        num_rows, num_columns = x_BT.shape[:2]
        row_B = torch.arange(num_rows, device=x_BT.device)
        places = Places(row_B, torch.full_like(row_B, num_columns) if end_B is None else end_B.clamp(min=0))
        read_BT, weights = self._fold(x_BT, embedding)
        outputs = kernel.run_stack(read_BT, weights, state, places, begin_B=begin_B, wants_outputs=True)
        return Run(outputs.h_BTH, outputs.at_places)

    def visit(
        self,
        x_BT: Steps,
        state: RNNState,
        places: Places,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
    ) -> RNNState:
        """Give the states at some places, in one pass that keeps nothing else unless gradients are recorded."""
        if not kernel.can_run(x_BT, self.bias[0]):
            run = functools.partial(self.run_in_torch, embedding=embedding)
            return walk(run, x_BT, state, places, begin_B=begin_B)
        read_BT, weights = self._fold(x_BT, embedding)
        return kernel.run_stack(read_BT, weights, state, places, begin_B=begin_B).at_places

    def can_run_fed(self, x_BT: Steps, embedding: Embeds) -> bool:
        """Tell whether the kernel can run, and the embedding be folded."""
        return embedding.is_foldable and kernel.can_run(x_BT, self.bias[0])

    def run_fed(
        self, x_BT: Steps, state: RNNState, feeding: kernel.Feeding, *, embedding: Embeds
    ) -> tuple[Float[Tensor, "B T H"], Steps]:
        """Read steps of which some are replaced by predictions on the way; give the outputs, and what was read.

        Only where `can_run_fed` says so.
        """
        read_BT, weights = self._fold(x_BT, embedding)
        nothing = torch.empty(0, dtype=torch.long, device=x_BT.device)
        nowhere = Places(nothing, nothing)
        outputs = kernel.run_stack(read_BT, weights, state, nowhere, wants_outputs=True, feeding=feeding)
        return outputs.h_BTH, outputs.x_BT

    def run_in_torch(
        self,
        x_BT: Steps,
        state: RNNState,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Do what `run` does, on torch's own LSTM."""
        if x_BT.shape[1] == 0:
            return Run(state.h_LBH.new_zeros(x_BT.shape[0], 0, self.hidden_size), state)
        h_BTH, bottom = x_BT, self._input_map()
        if embedding is not None:
            h_BTH, bottom = embedding.embed(x_BT, bottom)
        maps = [bottom]
        maps += [InputMap(weight, bias) for weight, bias in zip(self.weight_ih[1:], self.bias[1:], strict=True)]
        idle_BT = find_idle(h_BTH, begin_B, end_B)
        h_LBH, c_LBH = [], []
        for layer, (input_weights, weight_GH) in enumerate(zip(maps, self.weight_hh, strict=True)):
            start = (state.h_LBH[layer], state.c_LBH[layer])
            h_BTH, h_BH, c_BH = _run_layer(h_BTH, start, input_weights, weight_GH, idle_BT)
            h_LBH.append(h_BH if end_B is None else last_output(h_BTH, start[0], end_B))
            c_LBH.append(c_BH)
        return Run(h_BTH, RNNState(torch.stack(h_LBH), torch.stack(c_LBH)))

    def _input_map(self) -> InputMap:
        return InputMap(self.weight_ih[0], self.bias[0])

    def _fold(self, x_BT: Steps, embedding: Embeds | None) -> tuple[Shaped[Tensor, "B T *I"], list[Tensor]]:
        """Give the input and the weights of all layers as the kernel takes them."""
        if embedding is None or embedding.is_foldable:
            return x_BT, self.folded_weights(embedding)
        x_BTI, bottom = embedding.embed(x_BT, self._input_map())
        return x_BTI, self._list_weights(bottom)

    def folded_weights(self, embedding: Embeds | None) -> list[Tensor]:
        """Give input weights, recurrent weights and bias of each layer, the bottom ones with the embedding in them."""
        return self._list_weights(self._input_map() if embedding is None else embedding.fold(self._input_map()))

    def _list_weights(self, bottom: InputMap) -> list[Tensor]:
        weights = [bottom.weight_GI, self.weight_hh[0], bottom.bias_G]
        for layer in range(1, self.num_layers):
            weights += [self.weight_ih[layer], self.weight_hh[layer], self.bias[layer]]
        # Under autocast, folding halves the precision of what it gives.
        return [weight.float() for weight in weights]


def _run_layer(
    x_BTI: Float[Tensor, "B T I"],
    start: tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]],
    input_map: InputMap,
    weight_GH: Float[Tensor, "G H"],
    idle_BT: Bool[Tensor, "B T"] | None,
) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    weight_GI, bias_G = input_map
    if idle_BT is not None:
        # One more input shuts the input gate and opens the forget gate: the cell keeps its value exactly, and a cell
        # of zeros gives an output of zeros. Zeroing the input would not do: biases open the gates.
        x_BTI, weight_GI = mark_idle(x_BTI, weight_GI, idle_BT, _idle_weight(weight_GH))
    h_BH, c_BH = start
    weights = [weight_GI, weight_GH, bias_G, torch.zeros_like(bias_G)]
    has_biases, num_layers, dropout, is_bidirectional, is_batch_first = True, 1, 0.0, False, True
    h_BTH, h_1BH, c_1BH = torch.lstm(
        x_BTI,
        (h_BH[None].contiguous(), c_BH[None].contiguous()),
        weights,
        has_biases,
        num_layers,
        dropout,
        torch.is_grad_enabled(),
        is_bidirectional,
        is_batch_first,
    )
    return h_BTH, h_1BH[0], c_1BH[0]


def _idle_weight(weight_GH: Float[Tensor, "G H"]) -> Float[Tensor, " G"]:
    weight_4H = weight_GH.new_zeros(4, weight_GH.shape[1])
    weight_4H[0] = -SATURATING
    weight_4H[1] = SATURATING
    return weight_4H.flatten()
