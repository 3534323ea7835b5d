"""What every recurrence is: stacked layers that take steps and a state, and return outputs and the next state.

A new cell is one file beside this one: a subclass of `Recurrence` with its weights and `forward_layer`. `G` counts what
an input step is mapped to: the gates of an LSTM (4 * H), of a GRU (3 * H), the units of a plain network. Rows may begin
late or end early; all columns run for all rows, and those that a row does not read are idle.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from auxrnn.config import GateInit
from auxrnn.structs import RNNState, Run, StateQuery, Steps

# Large enough that a sigmoid of it is exactly 0 or 1 in single and double precision; small enough for half precision.
SATURATING = 1e4
# States at arbitrary columns are reached from the last multiple of GRID before them. Smaller means more calls, larger
# means more steps that are run twice.
GRID = 16
# Up to so many different columns get a stop of their own, without a second run: the end of the sequences is one.
FEW = 2
# Most steps of one call without a graph: bounds the memory for its outputs.
LONGEST_CALL = 64


class InputMap(NamedTuple):
    """How an input step enters the gates: `weight @ x + bias`."""

    weight_GI: Float[Tensor, "G I"]
    bias_G: Float[Tensor, " G"]


class LayerInput(NamedTuple):
    """The steps that enter a layer and how, the outputs and cells that it starts from, and which columns are idle."""

    x_BTI: Float[Tensor, "B T I"]
    input_map: InputMap
    h_BH: Float[Tensor, "B H"]
    c_BK: Float[Tensor, "B K"]
    idle_BT: Bool[Tensor, "B T"] | None


class LayerRun(NamedTuple):
    """All outputs of a layer, and its state after the last column."""

    h_BTH: Float[Tensor, "B T H"]
    h_BH: Float[Tensor, "B H"]
    c_BK: Float[Tensor, "B K"]


@runtime_checkable
class Embeds(Protocol):
    """An input embedding, as a recurrence sees it."""

    @property
    def is_foldable(self) -> bool:
        """Whether `fold` is worth its cost."""

    def fold(self, weights: InputMap) -> InputMap:
        """Return the weights that do on x itself (or one-hot tokens) what `weights` does on the embedded x."""

    def embed(self, x_BT: Steps, weights: InputMap) -> tuple[Float[Tensor, "B T I"], InputMap]:
        """Return vectors and the weights for them, to the same effect."""


class Recurrence(nn.Module):
    """One or more recurrent layers. State is never kept: it goes in and comes out."""

    weight_ih: nn.ParameterList
    bias: nn.ParameterList

    def __init__(self, *, hidden_size: int, num_layers: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers

    @property
    def output_size(self) -> int:
        """Width of `h`, the output of each layer."""
        return self.hidden_size

    def initialize_gates(self, gate_init: GateInit, *, longest: int) -> None:
        """Set the biases of the gates that keep the state; nothing for a recurrence without gates."""

    def slow_parameters(self) -> list[nn.Parameter]:
        """Return the weights that learn at a smaller rate than the others: none of most recurrences."""
        return []

    def initial_state(self, num_rows: int) -> RNNState:
        """Return the state before the first step of each row: zeros, on the device of the weights."""
        h_LBH = self.bias[0].new_zeros(self.num_layers, num_rows, self.output_size)
        return RNNState(h_LBH, h_LBH[:, :, :0])

    def forward(
        self,
        x_BT: Steps,
        state: RNNState,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Run the steps `begin_B <= t < end_B` of each row (all by default); return all top outputs and the end state.

        Idle columns change neither values nor gradients; outputs there are undefined. A row that begins late must start
        from the initial state, which it keeps until then. Steps go through an `embedding`, or in as they are.
        """
        if x_BT.shape[1] == 0:
            return Run(state.h_LBH.new_zeros(x_BT.shape[0], 0, self.output_size), state)
        bottom, *others = self.input_maps()
        h_BTH = x_BT
        if embedding is not None:
            h_BTH, bottom = embedding.embed(x_BT, bottom)
        idle_BT = find_idle(h_BTH, begin_B, end_B)
        h_LBH, c_LBH = [], []
        for layer, input_map in enumerate([bottom, *others]):
            start_BH, start_BK = state.h_LBH[layer], state.c_LBH[layer]
            h_BTH, h_BH, c_BK = self.forward_layer(layer, LayerInput(h_BTH, input_map, start_BH, start_BK, idle_BT))
            h_LBH.append(h_BH if end_B is None else last_output(h_BTH, start_BH, end_B))
            c_LBH.append(c_BK)
        return Run(h_BTH, RNNState(torch.stack(h_LBH), torch.stack(c_LBH)))

    def states_at(
        self,
        x_BT: Steps,
        state: RNNState,
        query: StateQuery,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
    ) -> RNNState:
        """Return the queried states: run to the grid points before them, then the rest of all of them as one batch."""

        def run(part_BT: Steps, state: RNNState, **limits: Tensor | None) -> RNNState:
            return self.forward(part_BT, state, embedding=embedding, **limits).state

        row_P, steps_P = query
        stop_P = steps_P if len(torch.unique(steps_P)) <= FEW else steps_P // GRID * GRID
        state = _states_at_stops(run, x_BT, state, StateQuery(row_P, stop_P), begin_B)
        rest_P = steps_P - stop_P
        longest_rest = int(rest_P.max()) if len(rest_P) else 0
        if longest_rest == 0:
            return state
        column_PS = stop_P[:, None] + torch.arange(longest_rest, device=stop_P.device)
        x_PS = x_BT[row_P[:, None], column_PS.clamp(max=x_BT.shape[1] - 1)]
        begin_P = None if begin_B is None else begin_B[row_P] - stop_P
        return run(x_PS, state, begin_B=begin_P, end_B=rest_P)

    def input_maps(self) -> list[InputMap]:
        """Return how each layer takes its input."""
        return [InputMap(weight, bias) for weight, bias in zip(self.weight_ih, self.bias, strict=True)]

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run all columns of one layer; a row keeps its start through idle columns before it."""
        raise NotImplementedError


def _states_at_stops(
    run: Callable[..., RNNState], x_BT: Steps, state: RNNState, stops: StateQuery, begin_B: Int[Tensor, " B"] | None
) -> RNNState:
    """Run chunk by chunk, and collect at each stop the states that are queried there."""
    row_P, stop_P = stops
    order_P = stop_P.argsort(stable=True)
    columns, counts = torch.unique(stop_P, return_counts=True)
    column = 0
    picked = [state.select(row_P[:0])]
    for stop, waiting_P in zip(columns.tolist(), torch.split(order_P, counts.tolist()), strict=True):
        while column < stop:
            end = stop if torch.is_grad_enabled() else min(stop, column + LONGEST_CALL)
            rest_B = None if begin_B is None else begin_B - column
            state = run(x_BT[:, column:end], state, begin_B=rest_B)
            column = end
        picked.append(state.select(row_P[waiting_P]))
    states = RNNState(*(torch.cat(parts, dim=1) for parts in zip(*picked, strict=True)))
    return states.select(order_P.argsort())


def draw_gate_bias(gate_init: GateInit, hidden_size: int, *, longest: int) -> Float[Tensor, " H"]:
    """Return biases for the gate that keeps the state.

    `chrono`: units remember over all spans up to `longest` steps (Tallec and Ollivier, 2018). `uniform`: gates spread
    evenly between 0 and 1 (Gu et al., 2020).
    """
    if gate_init == "chrono":
        return torch.log(torch.empty(hidden_size).uniform_(1, max(longest - 1, 1)))
    if gate_init == "uniform":
        return torch.logit(torch.empty(hidden_size).uniform_(1 / hidden_size, 1 - 1 / hidden_size))
    return torch.full((hidden_size,), 1.0 if gate_init == "forget-one" else 0.0)


def run_torch(
    function: Callable[..., Any],
    inputs: LayerInput,
    weight_GH: Float[Tensor, "G H"],
    bias_hh_G: Float[Tensor, " G"] | None = None,
    *,
    idle_gates: Sequence[int],
) -> LayerRun:
    """Run a layer on one of torch's own recurrences (`torch.lstm`, `torch.gru`, ...).

    `idle_gates` says which gates idle columns open (1) and shut (-1), so that the state stays as it is.
    """
    x_BTI, (weight_GI, bias_G), h_BH, c_BK, idle_BT = inputs
    if idle_BT is not None:
        # One more input feature, 1 in idle columns; all others are zero there, so that none of them outweighs it.
        idle_BT1 = idle_BT[:, :, None]
        x_BTI = torch.cat([x_BTI.masked_fill(idle_BT1, 0), idle_BT1.to(x_BTI)], dim=2)
        gate_G = weight_GI.new_tensor(idle_gates).repeat_interleave(len(bias_G) // len(idle_gates))
        weight_GI = torch.cat([weight_GI, SATURATING * gate_G[:, None]], dim=1)
    start = [h_BH[None].contiguous(), c_BK[None].contiguous()]
    has_cells = c_BK.shape[1] > 0
    weights = [weight_GI, weight_GH, bias_G, torch.zeros_like(bias_G) if bias_hh_G is None else bias_hh_G]
    # Whether there are biases, layers, dropout, whether it trains, is bidirectional, and has the batch first.
    options = True, 1, 0.0, torch.is_grad_enabled(), False, True
    h_BTH, *last = function(x_BTI, start if has_cells else start[0], weights, *options)
    return LayerRun(h_BTH, last[0][0], last[1][0] if has_cells else c_BK)


def run_steps(step: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]], inputs: LayerInput) -> LayerRun:
    """Run a layer step by step: `step` turns a mapped input, the output and the cells into the next two."""
    x_BTI, (weight_GI, bias_G), h_BH, c_BK, idle_BT = inputs
    if idle_BT is not None:
        # What is not read may be anything, and an overflow times a gradient of zero is not zero.
        x_BTI = x_BTI.masked_fill(idle_BT[:, :, None], 0)
    outputs = []
    for column, input_BG in enumerate(F.linear(x_BTI, weight_GI, bias_G).unbind(1)):
        state = step(input_BG, h_BH, c_BK)
        if idle_BT is not None:
            is_idle_B1 = idle_BT[:, column, None]
            state = torch.where(is_idle_B1, h_BH, state[0]), torch.where(is_idle_B1, c_BK, state[1])
        h_BH, c_BK = state
        outputs.append(h_BH)
    return LayerRun(torch.stack(outputs, dim=1), h_BH, c_BK)


def find_idle(
    x_BTI: Float[Tensor, "B T I"], begin_B: Int[Tensor, " B"] | None, end_B: Int[Tensor, " B"] | None
) -> Bool[Tensor, "B T"] | None:
    """Mark the columns outside `begin_B <= t < end_B`, which a row does not read; None if there can be none."""
    if begin_B is None and end_B is None:
        return None
    column_T = torch.arange(x_BTI.shape[1], device=x_BTI.device)
    is_before = column_T < (0 if begin_B is None else begin_B[:, None])
    return is_before | (column_T >= (len(column_T) if end_B is None else end_B[:, None]))


def last_output(
    h_BTH: Float[Tensor, "B T H"], start_BH: Float[Tensor, "B H"], end_B: Int[Tensor, " B"]
) -> Float[Tensor, "B H"]:
    """Return the output after each row's last step, or its start where it has none."""
    row_B = torch.arange(len(end_B), device=end_B.device)
    return torch.where(end_B[:, None] > 0, h_BTH[row_B, (end_B - 1).clamp(min=0)], start_BH)
