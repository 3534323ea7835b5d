"""The uRNN (Arjovsky, Shah and Bengio, 2016): complex units, and a recurrent matrix W that is always unitary.

    h_t = modReLU(W h_{t-1} + V x_t),    W = D3 R2 F^-1 D2 Perm R1 F D1

D are diagonals of phases, R reflections, F the unitary Fourier transform, Perm a fixed permutation: O(H) parameters and
O(H log H) time. Complex numbers enter and leave as reals: all real parts, then all imaginary parts; `R` counts both
(2 * H).
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float, Int
from torch import Tensor, nn

from auxrnn.models.cells.recurrence import InputMap, LayerInput, LayerRun, Recurrence
from auxrnn.structs import RNNState

# Added to a squared modulus, so that the direction z / |z| has a finite gradient at zero.
SMALLEST_SQUARE = 1e-10


class URNN(Recurrence):
    """A stack of uRNN layers of `hidden_size` complex units, initialized as in the paper; the first state is learned.

    A row that begins late may start from any state.
    """

    def __init__(self, input_size: int, *, hidden_size: int, num_layers: int) -> None:
        super().__init__(hidden_size=hidden_size, num_layers=num_layers)
        sizes = [input_size] + [2 * hidden_size] * (num_layers - 1)
        self.angles = nn.ParameterList(torch.empty(3, hidden_size).uniform_(-math.pi, math.pi) for _ in sizes)
        self.reflections = nn.ParameterList(torch.empty(2, 2 * hidden_size) for _ in sizes)
        self.weight_ih = nn.ParameterList(torch.empty(2 * hidden_size, size) for size in sizes)
        self.bias = nn.ParameterList(torch.zeros(hidden_size) for _ in sizes)
        bound = math.sqrt(3 / (2 * hidden_size))
        self.start_LR = nn.Parameter(torch.empty(num_layers, 2 * hidden_size).uniform_(-bound, bound))
        self.permutation_LH: Tensor
        self.register_buffer("permutation_LH", torch.stack([torch.randperm(hidden_size) for _ in sizes]))
        for weight in [*self.reflections, *self.weight_ih]:
            nn.init.xavier_uniform_(weight)

    @property
    def output_size(self) -> int:
        """Width of the outputs: real parts and imaginary parts."""
        return 2 * self.hidden_size

    def recurrent_matrix(self, layer: int) -> Complex[Tensor, "H H"]:
        """Return W of a layer as a dense matrix."""
        turn = self.make_turn(layer)
        one_HH = torch.diag(torch.ones_like(turn.phases[0]))
        return turn.apply(one_HH, torch.zeros_like(one_HH)).T

    def initial_state(self, num_rows: int) -> RNNState:
        """Return the learned start for each row."""
        h_LBR = self.start_LR[:, None].expand(-1, num_rows, -1)
        return RNNState(h_LBR, h_LBR[:, :, :0])

    def input_maps(self) -> list[InputMap]:
        """Return how each layer takes its input: without a bias of its own, but that of an embedding comes there."""
        return [InputMap(weight_RI, weight_RI.new_zeros(self.output_size)) for weight_RI in self.weight_ih]

    def make_turn(self, layer: int) -> "Turn":
        """Return W of a layer in the form that steps apply: what does not depend on the step, computed once."""
        angle_3H, reflection_2R = self.angles[layer], self.reflections[layer]
        phases = torch.polar(torch.ones_like(angle_3H), angle_3H).unbind(0)
        first_H, _, last_H = phases
        unit_2H = _as_complex(reflection_2R / torch.linalg.vector_norm(reflection_2R, dim=1, keepdim=True))
        v1_1H, v2_1H, permutation_1H = unit_2H[:1], unit_2H[1:], self.permutation_LH[layer : layer + 1]
        a_1H = first_H.conj() * torch.fft.ifft(v1_1H, norm="ortho")
        image_1H = _mix(a_1H, phases, permutation_1H)
        origin_1H = _unmix(v2_1H, phases, permutation_1H)
        overlap_11 = (v2_1H.conj() * image_1H).sum(dim=1, keepdim=True)
        probe_2H = torch.cat([a_1H, origin_1H]).conj().resolve_conj()
        answer_2H = last_H * torch.cat([4 * overlap_11 * v2_1H - 2 * image_1H, -2 * v2_1H])
        return Turn(phases, permutation_1H, probe_2H.T, answer_2H)

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run step by step."""
        x_BTI, input_map, start_BR, c_BK, idle_BT = inputs
        if idle_BT is not None:
            # What is not read may be anything, and an overflow times a gradient of zero is not zero.
            x_BTI = x_BTI.masked_fill(idle_BT[:, :, None], 0)
        turn, bias_H, z_BH = self.make_turn(layer), self.bias[layer], _as_complex(start_BR)
        outputs = []
        for step, input_BH in enumerate(_map_inputs(x_BTI, input_map).unbind(0)):
            next_BH = rectify(turn.apply(z_BH, input_BH), bias_H)
            z_BH = next_BH if idle_BT is None else torch.where(idle_BT[:, step, None], z_BH, next_BH)
            outputs.append(torch.view_as_real(z_BH).transpose(1, 2))
        return LayerRun(torch.stack(outputs, dim=1).flatten(2), outputs[-1].flatten(1), c_BK)


Phases = tuple[Complex[Tensor, " H"], ...]
"""The diagonals D1, D2 and D3."""


class Turn(NamedTuple):
    """W in the form that a step applies: both reflections are moved to the ends, as one product of rank 2.

    With M = F^-1 D2 Perm F D1, unit vectors v1 and v2 of the reflections, and a = (F D1)^* v1,
    W = D3 (1 - 2 v2 v2^*) M (1 - 2 a a^*) = D3 M - D3 (2 M a - 4 v2 (v2^* M a)) a^* - 2 D3 v2 (M^* v2)^*.
    """

    phases: Phases
    permutation_1H: Int[Tensor, "1 H"]
    probe_H2: Complex[Tensor, "H 2"]
    answer_2H: Complex[Tensor, "2 H"]

    def apply(self, z_BH: Complex[Tensor, "B H"], input_BH: Complex[Tensor, "B H"]) -> Complex[Tensor, "B H"]:
        """Return W z + input, for each row."""
        mixed_BH = _mix(z_BH, self.phases, self.permutation_1H)
        rest_BH = torch.addmm(input_BH, z_BH @ self.probe_H2, self.answer_2H)
        return torch.addcmul(rest_BH, self.phases[2], mixed_BH)


def rectify(z_BH: Complex[Tensor, "B H"], bias_H: Float[Tensor, " H"]) -> Complex[Tensor, "B H"]:
    """Add the bias to the modulus, keep the phase, and give zero where the sum is negative: modReLU."""
    square_BH = (z_BH * z_BH.conj()).real + SMALLEST_SQUARE
    return z_BH * F.relu(1 + bias_H * torch.rsqrt(square_BH))


def _mix(z_BH: Complex[Tensor, "B H"], phases: Phases, permutation_1H: Int[Tensor, "1 H"]) -> Complex[Tensor, "B H"]:
    """Return M z = F^-1 D2 Perm F D1 z."""
    first_H, middle_H, _ = phases
    spectrum_BH = torch.fft.fft(z_BH * first_H, norm="ortho")
    # Several times faster on CPUs than indexing, forward and backward.
    permuted_BH = torch.gather(spectrum_BH, 1, permutation_1H.expand_as(spectrum_BH))
    mixed_BH: Tensor = torch.fft.ifft(permuted_BH * middle_H, norm="ortho")
    return mixed_BH


def _unmix(z_BH: Complex[Tensor, "B H"], phases: Phases, permutation_1H: Int[Tensor, "1 H"]) -> Complex[Tensor, "B H"]:
    """Return M^* z = D1^* F^-1 Perm^-1 D2^* F z: undo `_mix`."""
    first_H, middle_H, _ = phases
    permuted_BH = torch.fft.fft(z_BH, norm="ortho") * middle_H.conj()
    spectrum_BH = torch.gather(permuted_BH, 1, permutation_1H.argsort().expand_as(permuted_BH))
    turned_BH: Tensor = torch.fft.ifft(spectrum_BH, norm="ortho")
    return turned_BH * first_H.conj()


def _map_inputs(x_BTI: Float[Tensor, "B T I"], input_map: InputMap) -> Complex[Tensor, "T B H"]:
    """Return V x for all steps."""
    # With the two parts of each unit side by side, the product can be looked at as complex numbers, without a copy.
    weight_RI, bias_R = (part.reshape(2, -1, *part.shape[1:]).transpose(0, 1).flatten(0, 1) for part in input_map)
    product_TBR = F.linear(x_BTI.transpose(0, 1), weight_RI, bias_R)
    return torch.view_as_complex(product_TBR.reshape(*product_TBR.shape[:2], -1, 2))


def _as_complex(x_BR: Float[Tensor, "B R"]) -> Complex[Tensor, "B H"]:
    return torch.complex(*x_BR.chunk(2, dim=1))
