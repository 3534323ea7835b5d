"""Gradient windows: how far back each loss may reach. The only place where gradients are cut.

A loss asks for the main network's states after some steps of some rows and says how many steps back from there its
gradient may go: a `GradientWindow`. Everything before these windows is read without a graph, once for all of them, so
the memory for activations depends on the windows, never on T. All places of one `GradientWindow` run as one batch.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from auxrnn.config import Window
from auxrnn.models.encoder import Encoder
from auxrnn.structs import RNNState, Run, StateQuery, Steps

CHUNK = 256
"""Steps whose outputs are held at a time where no gradient is needed."""


class GradientWindow(NamedTuple):
    """The states after column `column_M` of row `row_M`, with the graph of the last `window` steps; -1 is the start."""

    row_M: Int[Tensor, " M"]
    column_M: Int[Tensor, " M"]
    window: Window


def final_window(x_BT: Steps, *, window: Window) -> GradientWindow:
    """Return the query for the state after the last step of each row."""
    num_rows, num_columns = x_BT.shape[:2]
    row_B = torch.arange(num_rows, device=x_BT.device)
    return GradientWindow(row_B, torch.full_like(row_B, num_columns - 1), window)


def final_states(
    encoder: Encoder, x_BT: Steps, *, window: Window, first_B: Int[Tensor, " B"] | None = None
) -> RNNState:
    """Return the states after whole sequences, with the graph of their last `window` steps only.

    Memory for activations grows with `window`, not with T. A `window` of T or more is full back-propagation; a `window`
    of 0 leaves the encoder without any gradient. Row b begins at column `first_B[b]`, from the initial state.
    """
    return states_at(encoder, x_BT, [final_window(x_BT, window=window)], first_B=first_B)[0]


def final_states_and_mean(
    encoder: Encoder, x_BT: Steps, *, window: Window, first_B: Int[Tensor, " B"] | None = None
) -> tuple[RNNState, Float[Tensor, "B H"]]:
    """Return the states as `final_states` does, and the mean of the top outputs over all steps of each row.

    The gradient of both reaches the last `window` steps; memory does not grow with the steps before them.
    """
    num_rows, num_columns = x_BT.shape[:2]
    num_before = 0 if window == "full" else max(num_columns - window, 0)
    first_B = x_BT.new_zeros(num_rows, dtype=torch.long) if first_B is None else first_B
    state, total_BH = encoder.initial_state(num_rows), torch.zeros((), device=x_BT.device)
    for start, end in itertools.pairwise(sorted({*range(0, num_before, CHUNK), num_before, num_columns})):
        with torch.set_grad_enabled(torch.is_grad_enabled() and start == num_before):
            begin_B = (first_B - start).clamp(0, end - start)
            h_BTH, state = encoder(x_BT[:, start:end], state, begin_B=begin_B)
            is_read_BT = torch.arange(end - start, device=x_BT.device) >= begin_B[:, None]
            total_BH = total_BH + torch.where(is_read_BT[:, :, None], h_BTH, 0.0).sum(dim=1)
    return state, total_BH / (num_columns - first_B)[:, None]


def states_at(
    encoder: Encoder, x_BT: Steps, windows: Sequence[GradientWindow], *, first_B: Int[Tensor, " B"] | None = None
) -> list[RNNState]:
    """Return the states of each window: one pass over the sequences without a graph, one over each set of windows.

    A window that covers the whole sequence needs no pass of its own: the first one then has a graph.
    """
    num_columns = x_BT.shape[1]
    reaches = [num_columns if window.window == "full" else window.window for window in windows]
    columns = []
    for window, reach in zip(windows, reaches, strict=True):
        # The state before a window's first step; of a window that covers everything, the queried state itself.
        columns.append(window.column_M if reach >= num_columns else (window.column_M - reach).clamp(min=-1))
    with torch.set_grad_enabled(torch.is_grad_enabled() and max(reaches) >= num_columns):
        query = StateQuery(torch.cat([window.row_M for window in windows]), torch.cat(columns) + 1)
        states = encoder.states_at(x_BT, encoder.initial_state(x_BT.shape[0]), query, begin_B=first_B)
    sizes = [len(window.row_M) for window in windows]
    starts = [RNNState(*parts) for parts in zip(*(torch.split(part, sizes, dim=1) for part in states), strict=True)]
    return [
        start if reach >= num_columns else _forward_windows(encoder, x_BT, window, _cut(start), first_B)
        for window, reach, start in zip(windows, reaches, starts, strict=True)
    ]


def forward_truncated(
    layers: Sequence[Callable[[Tensor, RNNState], Run]],
    x_MS: Shaped[Tensor, "M S *D"],
    starts: Sequence[RNNState],
    *,
    window: Window,
) -> Float[Tensor, "M S H"]:
    """Return the outputs of stacked networks over segments, with the gradient cut every `window` steps."""
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
    """Return the named columns of the named rows; columns outside of the sequence give its nearest step."""
    return x_BT[row_M[:, None], column_MS.clamp(0, x_BT.shape[1] - 1)]


def _cut(state: RNNState) -> RNNState:
    return RNNState(state.h_LBH.detach(), state.c_LBH.detach())


def _forward_windows(
    encoder: Encoder, x_BT: Steps, each: GradientWindow, start: RNNState, first_B: Int[Tensor, " B"] | None
) -> RNNState:
    """Run the last `window` steps of all places together, aligned at their ends.

    A window that would begin before its sequence begins late instead, from the initial state.
    """
    row_M, column_M, window = each
    assert window != "full", "a full window has no start to run from"
    if window == 0:
        return start
    begin_column_M = column_M - window + 1
    column_MS = begin_column_M[:, None] + torch.arange(window, device=column_M.device)
    first_M = torch.zeros_like(column_M) if first_B is None else first_B[row_M]
    begin_M = (first_M - begin_column_M).clamp(0, window)
    query = StateQuery(torch.arange(len(row_M), device=row_M.device), torch.full_like(row_M, window))
    return encoder.states_at(gather_columns(x_BT, row_M, column_MS), start, query, begin_B=begin_M)
