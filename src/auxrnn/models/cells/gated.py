"""What the gated cells share: in single precision on CPUs the fused kernel runs them; anywhere else torch does.

The torch path of each cell is the readable reference for its part of the kernel (`kernels/cells/`).
"""

from typing import ClassVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from auxrnn.kernels import gated as kernel
from auxrnn.models.cells.recurrence import Embeds, InputMap, Recurrence
from auxrnn.structs import RNNState, Run, StateQuery, Steps


class Gated(Recurrence):
    """A stack of layers whose `gates` each have a Glorot-uniform matrix for the input and for the state, and a bias."""

    cell_name: ClassVar[str]
    """Its name in the kernel."""
    gates: ClassVar[int] = 4
    has_cells: ClassVar[bool] = True
    """Whether the state is more than the output."""

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__(hidden_size=hidden_size, num_layers=num_layers)
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        num_sums = self.gates * hidden_size
        self.weight_ih = nn.ParameterList(torch.empty(num_sums, size) for size in sizes)
        self.weight_hh = nn.ParameterList(torch.empty(num_sums, hidden_size) for _ in sizes)
        self.bias = nn.ParameterList(torch.zeros(num_sums) for _ in sizes)
        for weight in [*self.weight_ih, *self.weight_hh]:
            nn.init.xavier_uniform_(weight)

    def initial_state(self, num_rows: int) -> RNNState:
        """Return zeros for outputs and cells."""
        h_LBH, no_cells = super().initial_state(num_rows)
        return RNNState(h_LBH, h_LBH if self.has_cells else no_cells)

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
        outputs = self._run_kernel(x_BT, state, query, embedding, begin_B=begin_B, wants_outputs=True)
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
        return self._run_kernel(x_BT, state, query, embedding, begin_B=begin_B).states

    def can_generate(self, x_BT: Steps, embedding: Embeds) -> bool:
        """Return whether the kernel can run, and the embedding be folded."""
        return embedding.is_foldable and kernel.can_run(x_BT, self.bias[0])

    def generate(
        self, x_BT: Steps, state: RNNState, feedback: kernel.Feedback, *, embedding: Embeds
    ) -> tuple[Float[Tensor, "B T H"], Steps]:
        """Run steps of which some are replaced by predictions on the way, where `can_generate` says so."""
        nothing = torch.empty(0, dtype=torch.long, device=x_BT.device)
        query = StateQuery(nothing, nothing)
        outputs = self._run_kernel(x_BT, state, query, embedding, wants_outputs=True, feedback=feedback)
        return outputs.h_BTH, outputs.x_BT

    def kernel_weights(self, bottom: InputMap) -> list[Tensor]:
        """Return input weights, recurrent weights and bias of each layer, with `bottom` as the way into the lowest."""
        maps = enumerate([bottom, *self.input_maps()[1:]])
        # Under autocast, folding halves the precision of its result.
        return [weight.float() for layer, input_map in maps for weight in self.kernel_layer(layer, input_map)]

    def kernel_layer(self, layer: int, input_map: InputMap) -> tuple[Tensor, Tensor, Tensor]:
        """Return input weights, recurrent weights and bias for the four sums that the kernel makes of each unit."""
        return input_map.weight_GI, self.weight_hh[layer], input_map.bias_G

    def kernel_state(self, state: RNNState) -> RNNState:
        """Return a state as the kernel has it: where there are no cells, it keeps the output there."""
        return state if self.has_cells else RNNState(state.h_LBH, state.h_LBH)

    def _run_kernel(
        self,
        x_BT: Steps,
        state: RNNState,
        query: StateQuery,
        embedding: Embeds | None,
        *,
        begin_B: Int[Tensor, " B"] | None = None,
        wants_outputs: bool = False,
        feedback: kernel.Feedback | None = None,
    ) -> kernel.Outputs:
        input_BT, weights = self._fold(x_BT, embedding)
        outputs = kernel.forward(
            input_BT,
            weights,
            self.kernel_state(state),
            query,
            cell=self.cell_name,
            begin_B=begin_B,
            wants_outputs=wants_outputs,
            feedback=feedback,
        )
        if self.has_cells:
            return outputs
        h_LPH = outputs.states.h_LBH
        return outputs._replace(states=RNNState(h_LPH, h_LPH[:, :, :0]))

    def _fold(self, x_BT: Steps, embedding: Embeds | None) -> tuple[Shaped[Tensor, "B T *I"], list[Tensor]]:
        """Return the input and the weights of all layers as the kernel takes them."""
        bottom = self.input_maps()[0]
        if embedding is not None and embedding.is_foldable:
            bottom = embedding.fold(bottom)
        elif embedding is not None:
            x_BT, bottom = embedding.embed(x_BT, bottom)
        return x_BT, self.kernel_weights(bottom)
