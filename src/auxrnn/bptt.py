"""Gradient windows: how far back each loss may reach. The only place where gradients are cut.

A loss asks for the main network's state after some steps of some rows and says how many steps back from there its
gradient may go: a `Reading`. Everything before these windows is read without a graph, once for all readings, so the
memory for activations depends on windows and readings, never on T. The windows of a reading run as one batch.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from auxrnn.config import Window
from auxrnn.models.encoder import Encoder
from auxrnn.structs import RNNState, Run, Steps

# States at arbitrary columns are reached from the last multiple of GRID before them: torch gives a cell state only at
# the end of a call. Smaller means more calls, larger means longer walks.
GRID = 16
# So many different columns or fewer are worth a stop of their own, without a walk: the end of the sequences is one.
FEW = 2
# The longest stretch read in one call without a graph: bounds the memory for its outputs.
LONGEST_STRETCH = 64


class Reading(NamedTuple):
    """The states after column `column_M` of row `row_M`, with the graph of the last `window` steps; -1 is the start."""

    row_M: Int[Tensor, " M"]
    column_M: Int[Tensor, " M"]
    window: Window


def read(encoder: Encoder, x_BT: Steps, *, window: Window, first_B: Int[Tensor, " B"] | None = None) -> RNNState:
    """Read whole sequences, keeping the graph of their last `window` steps only.

    Memory for activations grows with `window`, not with T. A `window` of T or more is full back-propagation; a `window`
    of 0 leaves the encoder without any gradient. Row b begins at column `first_B[b]`, from zeros.
    """
    return read_all(encoder, x_BT, [last_states(x_BT, window=window)], first_B=first_B)[0]


def last_states(x_BT: Steps, *, window: Window) -> Reading:
    """Ask for the state after the last step of each row."""
    num_rows, num_columns = x_BT.shape[:2]
    row_B = torch.arange(num_rows, device=x_BT.device)
    return Reading(row_B, torch.full_like(row_B, num_columns - 1), window)


def read_all(
    encoder: Encoder, x_BT: Steps, readings: Sequence[Reading], *, first_B: Int[Tensor, " B"] | None = None
) -> list[RNNState]:
    """Give the states that each reading asks for: one pass over the sequences, one over each reading's windows."""
    num_columns = x_BT.shape[1]
    is_whole = [reading.window == "full" or reading.window >= num_columns for reading in readings]
    before = [_before_window(reading, whole) for reading, whole in zip(readings, is_whole, strict=True)]
    with torch.set_grad_enabled(torch.is_grad_enabled() and any(is_whole)):
        row_P = torch.cat([reading.row_M for reading in readings])
        state = _scan(encoder, x_BT, row_P, torch.cat(before), first_B)
    states = _split(state, [len(column_M) for column_M in before])
    return [
        state if whole else _run_windows(encoder, x_BT, reading, _cut(state), first_B)
        for reading, whole, state in zip(readings, is_whole, states, strict=True)
    ]


def run_cut(
    layers: Sequence[Callable[[Tensor, RNNState], Run]],
    x_MS: Shaped[Tensor, "M S *D"],
    starts: Sequence[RNNState],
    *,
    window: Window,
) -> Float[Tensor, "M S H"]:
    """Run networks stacked on each other over segments, and stop the gradient of all of them every `window` steps."""
    states = list(starts)
    outputs = []
    for part in torch.split(x_MS, x_MS.shape[1] if window == "full" else window, dim=1):
        h_MSH = part
        for index, layer in enumerate(layers):
            h_MSH, states[index] = layer(h_MSH, states[index])
        outputs.append(h_MSH)
        states = states if window == "full" else [_cut(state) for state in states]
    return torch.cat(outputs, dim=1)


def gather_columns(x_BT: Steps, row_M: Int[Tensor, " M"], column_MS: Int[Tensor, "M S"]) -> Shaped[Tensor, "M S *D"]:
    """Give the named columns of the named rows; columns outside the sequence give its nearest step."""
    return x_BT[row_M[:, None], column_MS.clamp(0, x_BT.shape[1] - 1)]


def _cut(state: RNNState) -> RNNState:
    return RNNState(state.h_LBH.detach(), state.c_LBH.detach())


def _before_window(reading: Reading, is_whole: bool) -> Int[Tensor, " M"]:
    """Give the column after which the graph begins; with a whole graph, the column asked for itself."""
    if is_whole or reading.window == "full":
        return reading.column_M
    return (reading.column_M - reading.window).clamp(min=-1)


def _split(state: RNNState, sizes: list[int]) -> list[RNNState]:
    return [
        RNNState(h_LMH, c_LMH)
        for h_LMH, c_LMH in zip(
            torch.split(state.h_LBH, sizes, dim=1), torch.split(state.c_LBH, sizes, dim=1), strict=True
        )
    ]


def _run_windows(
    encoder: Encoder, x_BT: Steps, reading: Reading, start: RNNState, first_B: Int[Tensor, " B"] | None
) -> RNNState:
    """Run the last `window` steps of all places of a reading together, aligned at their ends.

    A window that would begin before its sequence begins late instead, from the zero state.
    """
    row_M, column_M, window = reading
    assert window != "full", "a full window has no start to run from"
    if window == 0:
        return start
    begin_column_M = column_M - window + 1
    column_MS = begin_column_M[:, None] + torch.arange(window, device=column_M.device)
    first_M = torch.zeros_like(column_M) if first_B is None else first_B[row_M]
    begin_M = (first_M - begin_column_M).clamp(0, window)
    return encoder.run(gather_columns(x_BT, row_M, column_MS), start, begin_B=begin_M).state


def _scan(
    encoder: Encoder,
    x_BT: Steps,
    row_P: Int[Tensor, " P"],
    column_P: Int[Tensor, " P"],
    first_B: Int[Tensor, " B"] | None,
) -> RNNState:
    """Read the sequences once, up to the last column asked for, and give the state after each of the `P` places."""
    num_steps_P = column_P + 1
    stop_P = num_steps_P
    if len(torch.unique(num_steps_P)) > FEW:
        stop_P = num_steps_P // GRID * GRID
    state = _collect(encoder, x_BT, row_P, stop_P, first_B)
    rest_P = num_steps_P - stop_P
    longest_rest = int(rest_P.max()) if len(rest_P) else 0
    if longest_rest == 0:
        return state
    column_PS = stop_P[:, None] + torch.arange(longest_rest, device=stop_P.device)
    begin_P = None if first_B is None else first_B[row_P] - stop_P
    return encoder.run(gather_columns(x_BT, row_P, column_PS), state, begin_B=begin_P, end_B=rest_P).state


def _collect(
    encoder: Encoder,
    x_BT: Steps,
    row_P: Int[Tensor, " P"],
    stop_P: Int[Tensor, " P"],
    first_B: Int[Tensor, " B"] | None,
) -> RNNState:
    """Read stretch by stretch, and pick up at each stop the states of the places that wait there."""
    order_P = stop_P.argsort(stable=True)
    stops, counts = torch.unique(stop_P, return_counts=True)
    state, column = encoder.initial_state(x_BT.shape[0]), 0
    picked = []
    for stop, waiting_P in zip(stops.tolist(), torch.split(order_P, counts.tolist()), strict=True):
        while column < stop:
            end = min(stop, column + LONGEST_STRETCH)
            begin_B = None if first_B is None else first_B - column
            state = encoder.run(x_BT[:, column:end], state, begin_B=begin_B).state
            column = end
        picked.append(state.select(row_P[waiting_P]))
    h_LPH = torch.cat([part.h_LBH for part in picked], dim=1)
    c_LPH = torch.cat([part.c_LBH for part in picked], dim=1)
    return RNNState(h_LPH, c_LPH).select(order_P.argsort())
