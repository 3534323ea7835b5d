"""The Legendre memory (Voelker et al., 2019): the last steps in closed form, with nothing to learn about remembering.

    u_t = E x_t + e,    m_t = A m_{t-1} + B u_t,    h_t = tanh(W m_t + V x_t + v)

A and B are frozen. Of all linear memories of N numbers they are the one that keeps the Legendre polynomials of the last
`memory_length` steps of u (HiPPO, Gu et al., 2020), discretized exactly for inputs that are constant within a step. The
encoder E and the readout W, V are learned. Nothing that is read out enters the memory again, so the memory after n
steps is also one product of these n inputs with the impulse response A^k B. Dimensions: `Q` memories a layer, `N`
coefficients of each, `K` all of them (Q * N).
"""

import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from auxrnn.config import Window
from auxrnn.models.cells.recurrence import Embeds, InputMap, LayerInput, LayerRun, Recurrence, last_output
from auxrnn.structs import RNNState, StateQuery, Steps

CHUNK = 16
"""Steps whose memories are computed in one product, where all of them are wanted."""
BLOCK = 1024
"""Steps that one product covers, where only the last memory is wanted: bounds its constants."""


class Legendre(Recurrence):
    """A stack of frozen memories with learned encoders and readouts.

    Each layer has as many memories as `num_memories` and the inputs of the lowest layer allow: a further one would
    remember nothing new. A memory spans `memory_length` steps, by default `num_steps`, those of the longest sequence.
    """

    def __init__(
        self,
        input_size: int,
        *,
        hidden_size: int,
        num_layers: int,
        num_memories: int,
        memory_order: int,
        memory_length: Window,
        num_steps: int,
    ) -> None:
        super().__init__(hidden_size=hidden_size, num_layers=num_layers)
        self.order, self.length = memory_order, num_steps if memory_length == "full" else memory_length
        self.num_memories = min(num_memories, input_size)
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.weight_ih = nn.ParameterList(self._draw_input_weights(size) for size in sizes)
        self.weight_hm = nn.ParameterList(torch.empty(hidden_size, self.num_memories * self.order) for _ in sizes)
        self.bias = nn.ParameterList(torch.zeros(self.num_memories + hidden_size) for _ in sizes)
        for weight_HK in self.weight_hm:
            nn.init.xavier_uniform_(weight_HK)

    def _draw_input_weights(self, input_size: int) -> Float[Tensor, "G I"]:
        """Draw an encoder that keeps the scale of its inputs, and the part of the readout that sees them."""
        encoder_QI = nn.init.orthogonal_(torch.empty(self.num_memories, input_size))
        return torch.cat([encoder_QI, nn.init.xavier_uniform_(torch.empty(self.hidden_size, input_size))])

    def initial_state(self, num_rows: int) -> RNNState:
        """Return zeros for outputs and memories."""
        h_LBH, _ = super().initial_state(num_rows)
        return RNNState(h_LBH, h_LBH.new_zeros(self.num_layers, num_rows, self.num_memories * self.order))

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run chunk by chunk, with all memories of a chunk at once."""
        x_BTI, input_map, h_BH, m_BK, idle_BT = inputs
        idle_BT = x_BTI.new_zeros(x_BTI.shape[:2], dtype=torch.bool) if idle_BT is None else idle_BT
        # What is not read may be anything, and an overflow times a gradient of zero is not zero.
        sums_BTG = F.linear(x_BTI.masked_fill(idle_BT[:, :, None], 0), *input_map)
        u_BTQ, seen_BTH = sums_BTG.tensor_split([self.num_memories], dim=2)
        u_BTQ, outputs = u_BTQ.masked_fill(idle_BT[:, :, None], 0), []
        chunks = (torch.split(part, CHUNK, dim=1) for part in (u_BTQ, seen_BTH, idle_BT))
        for u_BSQ, seen_BSH, idle_BS in zip(*chunks, strict=True):
            m_BSK = self._remember(u_BSQ, m_BK)
            h_BSH = torch.tanh(F.linear(m_BSK, self.weight_hm[layer]) + seen_BSH)
            outputs.append(torch.where(idle_BS[:, :, None], h_BH[:, None], h_BSH))
            # One more than the last column that a row reads in this chunk; 0 if it reads none.
            end_B = (torch.arange(1, idle_BS.shape[1] + 1, device=idle_BS.device) * ~idle_BS).amax(dim=1)
            h_BH, m_BK = last_output(outputs[-1], h_BH, end_B), last_output(m_BSK, m_BK, end_B)
        return LayerRun(torch.cat(outputs, dim=1), h_BH, m_BK)

    def _remember(self, u_BSQ: Float[Tensor, "B S Q"], m_BK: Float[Tensor, "B K"]) -> Float[Tensor, "B S K"]:
        """Return the memories after each of at most CHUNK steps."""
        num_steps, tables = u_BSQ.shape[1], self._tables(u_BSQ)
        recent_BSQS = F.pad(u_BSQ, (0, 0, num_steps - 1, 0)).unfold(1, num_steps, 1)
        kept_BQM = self._divide(m_BK) @ tables.powers_NM[:, : num_steps * self.order]
        kept_BSQN = kept_BQM.reshape(*kept_BQM.shape[:2], num_steps, self.order).transpose(1, 2)
        return torch.flatten(recent_BSQS @ tables.impulse_SN[-num_steps:] + kept_BSQN, 2)

    def states_at(
        self,
        x_BT: Steps,
        state: RNNState,
        query: StateQuery,
        *,
        embedding: Embeds | None = None,
        begin_B: Int[Tensor, " B"] | None = None,
    ) -> RNNState:
        """Return the queried states: of a single layer as products of inputs and impulse response, without recurrence.

        Where memories that are not empty decay over different numbers of steps, and for several layers, it runs.
        """
        row_P, steps_P = query
        num_places, longest = len(torch.unique(steps_P)), int(steps_P.max()) if len(steps_P) else 0
        if self.num_layers > 1 or longest == 0 or (num_places > 1 and bool(state.c_LBH.any())):
            return super().states_at(x_BT, state, query, embedding=embedding, begin_B=begin_B)
        bottom, first_P = self.input_maps()[0], 0 if begin_B is None else begin_B[row_P].clamp(min=0)
        if embedding is not None and embedding.is_foldable:
            bottom, embedding = embedding.fold(bottom), None
        start = state.select(row_P)
        m_PQN = self._divide(start.c_LBH[0])
        # Aligned at their ends, the first block being the one that is not whole.
        for end in range((longest - 1) % BLOCK + 1, longest + 1, BLOCK):
            column_PS = (steps_P - longest)[:, None] + torch.arange(max(end - BLOCK, 0), end, device=steps_P.device)
            is_read_PS1 = (column_PS >= (first_P if isinstance(first_P, int) else first_P[:, None]))[:, :, None]
            encode = InputMap(bottom.weight_GI[: self.num_memories], bottom.bias_G[: self.num_memories])
            u_PSQ = _map(x_BT[row_P[:, None], column_PS.clamp(min=0)], encode, embedding, is_read_PS1)
            m_PQN = self._condense(u_PSQ, m_PQN)
        has_read_P11 = (steps_P > first_P)[:, None, None]
        read = InputMap(bottom.weight_GI[self.num_memories :], bottom.bias_G[self.num_memories :])
        seen_P1H = _map(x_BT[row_P, (steps_P - 1).clamp(min=0)][:, None], read, embedding, has_read_P11)
        h_PH = torch.tanh(F.linear(m_PQN.flatten(1), self.weight_hm[0]) + seen_P1H[:, 0])
        return RNNState(torch.where(has_read_P11[:, 0], h_PH, start.h_LBH[0])[None], m_PQN.flatten(1)[None])

    def _divide(self, m_BK: Float[Tensor, "B K"]) -> Float[Tensor, "B Q N"]:
        return m_BK.reshape(len(m_BK), -1, self.order)

    def _condense(self, u_BSQ: Float[Tensor, "B S Q"], m_BQN: Float[Tensor, "B Q N"]) -> Float[Tensor, "B Q N"]:
        """Return the memories after the last of at most BLOCK steps."""
        num_steps, impulse_SN = u_BSQ.shape[1], self._tables(u_BSQ).impulse_SN
        new_BQN = u_BSQ.transpose(1, 2) @ impulse_SN[-num_steps:]
        if not m_BQN.any():
            return new_BQN
        return new_BQN + m_BQN @ _power(self.order, self.length, num_steps, u_BSQ.dtype, u_BSQ.device)

    def _tables(self, like: Tensor) -> "Tables":
        return _tabulate(self.order, self.length, like.dtype, like.device)


class Tables(NamedTuple):
    """The constants of a memory."""

    impulse_SN: Float[Tensor, "S N"]
    """A^k B for k from BLOCK - 1 down to 0: what an input leaves after k further steps."""
    powers_NM: Float[Tensor, "N M"]
    """The transposes of A^1, ..., A^CHUNK side by side: what a memory leaves."""


def discretize(order: int, length: int) -> tuple[Float[Tensor, "N N"], Float[Tensor, " N"]]:
    """Return A and B of one step in double precision (zero-order hold)."""
    row_N = torch.arange(order, dtype=torch.float64)
    sign_NN = torch.where(row_N[:, None] < row_N, -1.0, (-1.0) ** (row_N[:, None] - row_N + 1))
    scale_N = (2 * row_N + 1) / length
    # The exponential of both together also integrates the input over the step.
    both = F.pad(torch.column_stack([scale_N[:, None] * sign_NN, scale_N * (-1.0) ** row_N]), (0, 0, 0, 1))
    discrete = torch.linalg.matrix_exp(both)
    return discrete[:-1, :-1], discrete[:-1, -1]


@functools.lru_cache(maxsize=8)
def _tabulate(order: int, length: int, dtype: torch.dtype, device: torch.device) -> Tables:
    # A stream asks for them without a graph, and a training may ask for the same ones afterwards.
    with torch.inference_mode(mode=False):
        a_NN, b_N = discretize(order, length)
        powers = [torch.linalg.matrix_power(a_NN, count).T for count in range(1, CHUNK + 1)]
        impulse_SN = b_N[None]
        while len(impulse_SN) < BLOCK:
            impulse_SN = torch.cat([impulse_SN, impulse_SN @ torch.linalg.matrix_power(a_NN, len(impulse_SN)).T])
        return Tables(impulse_SN.flip(0).to(device, dtype), torch.cat(powers, dim=1).to(device, dtype))


@functools.lru_cache(maxsize=8)
def _power(order: int, length: int, count: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "N N"]:
    """Return the transpose of A^count."""
    with torch.inference_mode(mode=False):
        power_NN: Tensor = torch.linalg.matrix_power(discretize(order, length)[0], count)
        return power_NN.T.to(device, dtype)


def _map(x_BT: Steps, input_map: InputMap, embedding: Embeds | None, is_read_BT1: Tensor) -> Float[Tensor, "B T G"]:
    """Return what steps are mapped to, through an embedding that is not folded yet; zeros where a row reads none."""
    if embedding is not None:
        x_BT, input_map = embedding.embed(x_BT, input_map)
    if not x_BT.is_floating_point():
        sums_BTG = F.embedding(x_BT, input_map.weight_GI.T) + input_map.bias_G
    else:
        sums_BTG = F.linear(x_BT.masked_fill(~is_read_BT1, 0), *input_map)
    return sums_BTG.masked_fill(~is_read_BT1, 0)
