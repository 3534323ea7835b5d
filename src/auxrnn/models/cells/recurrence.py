"""What every recurrence is: stacked layers that take steps and a state, and return outputs and the next state.

A new cell is one file beside this one: a subclass of `Recurrence` with its weights and `forward_layer`. `G` counts what
an input step is mapped to: the gates of an LSTM (4 * H), of a GRU (3 * H), the units of a plain network. Rows may begin
late or end early; all columns run for all rows, and those that a row does not read are idle.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from auxrnn.config import GateInit
from auxrnn.kernels.lstm import Feedback
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

LayerState = tuple[Float[Tensor, "B H"], Float[Tensor, "B K"]]
"""Outputs and cells of one layer."""


class InputMap(NamedTuple):
    """How an input step enters the gates: `weight @ x + bias`."""

    weight_GI: Float[Tensor, "G I"]
    bias_G: Float[Tensor, " G"]


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
            start = state.h_LBH[layer], state.c_LBH[layer]
            h_BTH, (h_BH, c_BK) = self.forward_layer(layer, h_BTH, start, input_map=input_map, idle_BT=idle_BT)
            h_LBH.append(h_BH if end_B is None else last_output(h_BTH, start[0], end_B))
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

    def can_generate(self, x_BT: Steps, embedding: Embeds) -> bool:  # noqa: ARG002 - those who can will look at them
        """Return whether `generate` works for such input."""
        return False

    def generate(
        self, x_BT: Steps, state: RNNState, feedback: Feedback, *, embedding: Embeds
    ) -> tuple[Float[Tensor, "B T H"], Steps]:
        """Run steps of which some are replaced by predictions on the way; return the outputs and the steps as run."""
        raise NotImplementedError("ask `can_generate` first")

    def input_maps(self) -> list[InputMap]:
        """Return how each layer takes its input."""
        return [InputMap(weight, bias) for weight, bias in zip(self.weight_ih, self.bias, strict=True)]

    def forward_layer(
        self,
        layer: int,
        x_BTI: Float[Tensor, "B T I"],
        start: LayerState,
        *,
        input_map: InputMap,
        idle_BT: Bool[Tensor, "B T"] | None,
    ) -> tuple[Float[Tensor, "B T H"], LayerState]:
        """Return all outputs of a layer and its last state; a row keeps its start through idle columns before it."""
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
    h_LPH = torch.cat([part.h_LBH for part in picked], dim=1)
    c_LPH = torch.cat([part.c_LBH for part in picked], dim=1)
    return RNNState(h_LPH, c_LPH).select(order_P.argsort())


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


def call_torch(
    function: Callable[..., Any], x_BTI: Float[Tensor, "B T I"], start: Any, weights: Sequence[Tensor]
) -> Any:
    """Call one of torch's own recurrences (`torch.lstm`, `torch.gru`, ...) for a single layer, batch first."""
    has_biases, num_layers, dropout, is_bidirectional, is_batch_first = True, 1, 0.0, False, True
    is_training = torch.is_grad_enabled()
    return function(
        x_BTI, start, weights, has_biases, num_layers, dropout, is_training, is_bidirectional, is_batch_first
    )


def find_idle(
    x_BTI: Float[Tensor, "B T I"], begin_B: Int[Tensor, " B"] | None, end_B: Int[Tensor, " B"] | None
) -> Bool[Tensor, "B T"] | None:
    """Mark the columns outside `begin_B <= t < end_B`, which a row does not read; None if there can be none."""
    if begin_B is None and end_B is None:
        return None
    step_1T = torch.arange(x_BTI.shape[1], device=x_BTI.device)[None]
    idle_BT = torch.zeros(x_BTI.shape[:2], dtype=torch.bool, device=x_BTI.device)
    if begin_B is not None:
        idle_BT = idle_BT | (step_1T < begin_B[:, None])
    if end_B is not None:
        idle_BT = idle_BT | (step_1T >= end_B[:, None])
    return idle_BT


def mark_idle(
    x_BTI: Float[Tensor, "B T I"],
    weight_GI: Float[Tensor, "G I"],
    idle_BT: Bool[Tensor, "B T"],
    idle_weight_G: Float[Tensor, " G"],
) -> tuple[Float[Tensor, "B T J"], Float[Tensor, "G J"]]:
    """Return inputs with one more feature that is 1 in idle columns, where all others are zero, and their weights."""
    # Zero, so that no input, however large, outweighs the mark.
    read_BTI = x_BTI.masked_fill(idle_BT[:, :, None], 0)
    x_BTJ = torch.cat([read_BTI, idle_BT[:, :, None].to(x_BTI)], dim=2)
    return x_BTJ, torch.cat([weight_GI, idle_weight_G[:, None].to(weight_GI)], dim=1)


def last_output(
    h_BTH: Float[Tensor, "B T H"], start_BH: Float[Tensor, "B H"], end_B: Int[Tensor, " B"]
) -> Float[Tensor, "B H"]:
    """Return the output after each row's last step, or its start where it has none."""
    row_B = torch.arange(len(end_B), device=end_B.device)
    return torch.where(end_B[:, None] > 0, h_BTH[row_B, (end_B - 1).clamp(min=0)], start_BH)
