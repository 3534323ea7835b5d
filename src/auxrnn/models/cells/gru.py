"""The GRU (Cho et al., 2014) as torch and cuDNN run it: the reset gate acts after the recurrent matrix.

Gates stand in torch's order: reset, update, new. An update gate of 1 keeps the state, one of 0 replaces it.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from auxrnn.models.cells.idle import SATURATING, mark_idle, run_layers
from auxrnn.models.cells.recurrence import Embeds, InputMap
from auxrnn.structs import RNNState, Run, Steps


class GRU(nn.Module):
    """A stack of GRU layers with Glorot-uniform weights and zero biases.

    `bias` is added on the side of the input, `bias_hh` on the side of the state. They differ for the new gate only,
    where the reset gate scales the second; both are whole, so that parameters are those of `nn.GRU`.
    """

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.weight_ih = nn.ParameterList(torch.empty(3 * hidden_size, size) for size in sizes)
        self.weight_hh = nn.ParameterList(torch.empty(3 * hidden_size, hidden_size) for _ in sizes)
        self.bias = nn.ParameterList(torch.zeros(3 * hidden_size) for _ in sizes)
        self.bias_hh = nn.ParameterList(torch.zeros(3 * hidden_size) for _ in sizes)
        for weight in [*self.weight_ih, *self.weight_hh]:
            nn.init.xavier_uniform_(weight)

    @property
    def output_size(self) -> int:
        """Width of the outputs."""
        return self.hidden_size

    def start_chrono(self, longest: int) -> None:
        """Let units remember over all spans up to `longest` steps (chrono: Tallec and Ollivier, 2018)."""
        for bias_G in self.bias:
            self._update_gate(bias_G).uniform_(1, max(longest - 1, 1)).log_()

    def start_uniform(self) -> None:
        """Spread the update gates evenly between 0 and 1 (uniform gate initialization: Gu et al., 2020)."""
        size = self.hidden_size
        for bias_G in self.bias:
            self._update_gate(bias_G).uniform_(1 / size, 1 - 1 / size).logit_()

    def start_gates(self, *, keep: float) -> None:
        """Set the biases of the gate that keeps the state; those of the others are zero."""
        for bias_G in self.bias:
            self._update_gate(bias_G).fill_(keep)

    def initial_state(self, num_rows: int) -> RNNState:
        """Give zeros for each row, where the weights live."""
        h_LBH = self.bias[0].new_zeros(self.num_layers, num_rows, self.hidden_size)
        return RNNState(h_LBH, h_LBH[:, :, :0])

    def run(
        self,
        x_BT: Steps,
        state: RNNState,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Read the steps `begin_B <= t < end_B` of each row, as `Recurrence.run`; who begins late starts from zeros."""
        maps = [InputMap(weight, bias) for weight, bias in zip(self.weight_ih, self.bias, strict=True)]
        return run_layers(
            self._run_layer, x_BT, state, input_maps=maps, embedding=embedding, begin_B=begin_B, end_B=end_B
        )

    def _update_gate(self, bias_G: Float[Tensor, " G"]) -> Float[Tensor, " H"]:
        return bias_G.detach()[self.hidden_size : 2 * self.hidden_size]

    def _run_layer(
        self,
        layer: int,
        x_BTI: Float[Tensor, "B T I"],
        start_BH: Float[Tensor, "B H"],
        *,
        input_map: InputMap,
        idle_BT: Bool[Tensor, "B T"] | None,
    ) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
        weight_GI, bias_G = input_map
        if idle_BT is not None:
            x_BTI, weight_GI = mark_idle(x_BTI, weight_GI, idle_BT, self._idle_weight(bias_G))
        weights = [weight_GI, self.weight_hh[layer], bias_G, self.bias_hh[layer]]
        has_biases, num_layers, dropout, is_bidirectional, is_batch_first = True, 1, 0.0, False, True
        h_BTH, h_1BH = torch.gru(
            x_BTI,
            start_BH[None].contiguous(),
            weights,
            has_biases,
            num_layers,
            dropout,
            torch.is_grad_enabled(),
            is_bidirectional,
            is_batch_first,
        )
        return h_BTH, h_1BH[0]

    def _idle_weight(self, bias_G: Float[Tensor, " G"]) -> Float[Tensor, " G"]:
        """Open the update gate wide: a state h becomes (h - new) * 1 + new, and zeros stay exactly zeros."""
        weight_3H = bias_G.new_zeros(3, self.hidden_size)
        weight_3H[1] = SATURATING
        return weight_3H.reshape(-1)
