"""Rows that begin late or end early, for recurrences that always run all columns: the other columns are idle.

`run_layers` is all that recurrences without cells share: layer upon layer, and the state of each at its row's end.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from auxrnn.models.cells.recurrence import Embeds, InputMap
from auxrnn.structs import RNNState, Run, Steps

# Large enough that a sigmoid of it is exactly 0 or 1 in single and double precision; small enough for half precision.
SATURATING = 1e4


@runtime_checkable
class RunLayer(Protocol):
    """One layer of a recurrence without cells."""

    def __call__(
        self,
        layer: int,
        x_BTI: Float[Tensor, "B T I"],
        start_BH: Float[Tensor, "B H"],
        /,
        *,
        input_map: InputMap,
        idle_BT: Bool[Tensor, "B T"] | None,
    ) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
        """Give all outputs, and the last: a row keeps its start through the idle columns before its first step."""


def run_layers(
    run_layer: RunLayer,
    x_BT: Steps,
    state: RNNState,
    *,
    input_maps: Sequence[InputMap],
    embedding: Embeds | None,
    begin_B: Int[Tensor, " B"] | None,
    end_B: Int[Tensor, " B"] | None,
) -> Run:
    """Do what `Recurrence.run` promises, with one map of the input for each layer."""
    if x_BT.shape[1] == 0:
        return Run(state.h_LBH.new_zeros(x_BT.shape[0], 0, state.h_LBH.shape[2]), state)
    h_BTH, bottom = x_BT, input_maps[0]
    if embedding is not None:
        h_BTH, bottom = embedding.embed(x_BT, bottom)
    idle_BT = find_idle(h_BTH, begin_B, end_B)
    h_LBH = []
    for layer, input_map in enumerate([bottom, *input_maps[1:]]):
        start_BH = state.h_LBH[layer]
        h_BTH, last_BH = run_layer(layer, h_BTH, start_BH, input_map=input_map, idle_BT=idle_BT)
        h_LBH.append(last_BH if end_B is None else last_output(h_BTH, start_BH, end_B))
    return Run(h_BTH, RNNState(torch.stack(h_LBH), state.c_LBH))


def find_idle(
    x_BTI: Float[Tensor, "B T I"], begin_B: Int[Tensor, " B"] | None, end_B: Int[Tensor, " B"] | None
) -> Bool[Tensor, "B T"] | None:
    """Tell which columns a row does not read: those outside `begin_B <= t < end_B`. None if there can be none."""
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
    """Give inputs with one more that is 1 in idle columns, where all others are blank, and weights to read them."""
    # Blank, so that no input, however large, outweighs the mark.
    read_BTI = x_BTI.masked_fill(idle_BT[:, :, None], 0)
    x_BTJ = torch.cat([read_BTI, idle_BT[:, :, None].to(x_BTI)], dim=2)
    return x_BTJ, torch.cat([weight_GI, idle_weight_G[:, None].to(weight_GI)], dim=1)


def last_output(
    h_BTH: Float[Tensor, "B T H"], start_BH: Float[Tensor, "B H"], end_B: Int[Tensor, " B"]
) -> Float[Tensor, "B H"]:
    """Give the output after each row's last step, or its start where it has none."""
    row_B = torch.arange(len(end_B), device=end_B.device)
    return torch.where(end_B[:, None] > 0, h_BTH[row_B, (end_B - 1).clamp(min=0)], start_BH)
