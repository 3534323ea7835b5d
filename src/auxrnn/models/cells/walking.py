"""States at chosen places for recurrences that give a state only at the end of a call.

A fused kernel picks states up as it passes. Others are walked from stop to stop.
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from auxrnn.structs import Places, RNNState, Run, Steps

# States at arbitrary columns are reached from the last multiple of GRID before them. Smaller means more calls, larger
# means longer walks.
GRID = 16
# So many different columns or fewer are worth a stop of their own, without a walk: the end of the sequences is one.
FEW = 2
# The longest stretch read in one call without a graph: bounds the memory for its outputs.
LONGEST_STRETCH = 64


@runtime_checkable
class RunSteps(Protocol):
    """Reads the steps `begin_B <= t < end_B` of each row, as `Recurrence.run` does."""

    def __call__(
        self,
        x_BT: Steps,
        state: RNNState,
        *,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Give the state after the last of them."""


def walk(
    run: RunSteps, x_BT: Steps, start: RNNState, places: Places, *, begin_B: Int[Tensor, " B"] | None = None
) -> RNNState:
    """Read the sequences once, up to the last place, and give the state at each."""
    row_P, steps_P = places
    stop_P = steps_P
    if len(torch.unique(steps_P)) > FEW:
        stop_P = steps_P // GRID * GRID
    state = _collect(run, x_BT, start, Places(row_P, stop_P), begin_B)
    rest_P = steps_P - stop_P
    longest_rest = int(rest_P.max()) if len(rest_P) else 0
    if longest_rest == 0:
        return state
    column_PS = stop_P[:, None] + torch.arange(longest_rest, device=stop_P.device)
    x_PS = x_BT[row_P[:, None], column_PS.clamp(max=x_BT.shape[1] - 1)]
    begin_P = None if begin_B is None else begin_B[row_P] - stop_P
    return run(x_PS, state, begin_B=begin_P, end_B=rest_P).state


def _collect(run: RunSteps, x_BT: Steps, state: RNNState, stops: Places, begin_B: Int[Tensor, " B"] | None) -> RNNState:
    """Read stretch by stretch, and pick up at each stop the states of the places that wait there."""
    row_P, stop_P = stops
    order_P = stop_P.argsort(stable=True)
    columns, counts = torch.unique(stop_P, return_counts=True)
    column = 0
    picked = [state.select(row_P[:0])]
    for stop, waiting_P in zip(columns.tolist(), torch.split(order_P, counts.tolist()), strict=True):
        while column < stop:
            end = stop if torch.is_grad_enabled() else min(stop, column + LONGEST_STRETCH)
            rest_B = None if begin_B is None else begin_B - column
            state = run(x_BT[:, column:end], state, begin_B=rest_B).state
            column = end
        picked.append(state.select(row_P[waiting_P]))
    h_LPH = torch.cat([part.h_LBH for part in picked], dim=1)
    c_LPH = torch.cat([part.c_LBH for part in picked], dim=1)
    return RNNState(h_LPH, c_LPH).select(order_P.argsort())
