"""The LSTM (Hochreiter and Schmidhuber, 1997): one bias a gate, and rows that may begin late or end early.

Gates stand in torch's order: input, forget, cell, output. torch runs the recurrence (oneDNN on CPUs, cuDNN on GPUs).
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from auxrnn.structs import RNNState, Run

# Large enough that a sigmoid of it is exactly 0 or 1 in single and double precision; small enough for half precision.
SATURATING = 1e4


class InputMap(NamedTuple):
    """How an input step enters the gates: `weight @ x + bias`."""

    weight_GI: Float[Tensor, "G I"]
    bias_G: Float[Tensor, " G"]


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
        for bias_G in self.bias:
            nn.init.zeros_(bias_G)
            nn.init.ones_(bias_G.detach()[hidden_size : 2 * hidden_size])

    def start_chrono(self, longest: int) -> None:
        """Let units remember over all spans up to `longest` steps (chrono: Tallec and Ollivier, 2018)."""
        size = self.hidden_size
        for bias_G in self.bias:
            forget_H = torch.log(torch.empty(size).uniform_(1, max(longest - 1, 1)))
            bias_G.detach()[:size] = -forget_H
            bias_G.detach()[size : 2 * size] = forget_H

    def initial_state(self, num_rows: int) -> RNNState:
        """Give zeros for each row, where the weights live."""
        zeros_LBH = self.bias[0].new_zeros(self.num_layers, num_rows, self.hidden_size)
        return RNNState(zeros_LBH, zeros_LBH)

    def input_map(self) -> InputMap:
        """Give how an input step enters the bottom layer."""
        return InputMap(self.weight_ih[0], self.bias[0])

    def run(
        self,
        x_BTI: Float[Tensor, "B T I"],
        state: RNNState,
        *,
        input_map: InputMap | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Read the steps `begin_B <= t < end_B` of each row, and give all outputs and the state after the last of them.

        Other columns leave no trace in values or gradients, but outputs there mean nothing. A row that begins late must
        begin from zeros. An `input_map` stands in for the bottom layer's own input weights.
        """
        if x_BTI.shape[1] == 0:
            return Run(x_BTI.new_zeros(x_BTI.shape[0], 0, self.hidden_size), state)
        idle_BT = _find_idle(x_BTI, begin_B, end_B)
        maps = [input_map or self.input_map()]
        maps += [InputMap(weight, bias) for weight, bias in zip(self.weight_ih[1:], self.bias[1:], strict=True)]
        h_BTH, h_LBH, c_LBH = x_BTI, [], []
        for layer, (input_weights, weight_GH) in enumerate(zip(maps, self.weight_hh, strict=True)):
            start = (state.h_LBH[layer], state.c_LBH[layer])
            h_BTH, h_BH, c_BH = _run_layer(h_BTH, start, input_weights, weight_GH, idle_BT)
            h_LBH.append(h_BH if end_B is None else _last_output(h_BTH, start[0], end_B))
            c_LBH.append(c_BH)
        return Run(h_BTH, RNNState(torch.stack(h_LBH), torch.stack(c_LBH)))


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
        x_BTI = torch.cat([x_BTI, idle_BT[:, :, None].to(x_BTI)], dim=2)
        weight_GI = torch.cat([weight_GI, _idle_weight(weight_GH)], dim=1)
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


def _find_idle(
    x_BTI: Float[Tensor, "B T I"], begin_B: Int[Tensor, " B"] | None, end_B: Int[Tensor, " B"] | None
) -> Bool[Tensor, "B T"] | None:
    if begin_B is None and end_B is None:
        return None
    step_1T = torch.arange(x_BTI.shape[1], device=x_BTI.device)[None]
    idle_BT = torch.zeros(x_BTI.shape[:2], dtype=torch.bool, device=x_BTI.device)
    if begin_B is not None:
        idle_BT = idle_BT | (step_1T < begin_B[:, None])
    if end_B is not None:
        idle_BT = idle_BT | (step_1T >= end_B[:, None])
    return idle_BT


def _idle_weight(weight_GH: Float[Tensor, "G H"]) -> Float[Tensor, "G 1"]:
    weight_4H = weight_GH.new_zeros(4, weight_GH.shape[1])
    weight_4H[0] = -SATURATING
    weight_4H[1] = SATURATING
    return weight_4H.reshape(-1, 1)


def _last_output(
    h_BTH: Float[Tensor, "B T H"], start_BH: Float[Tensor, "B H"], end_B: Int[Tensor, " B"]
) -> Float[Tensor, "B H"]:
    row_B = torch.arange(len(end_B), device=end_B.device)
    return torch.where(end_B[:, None] > 0, h_BTH[row_B, (end_B - 1).clamp(min=0)], start_BH)
