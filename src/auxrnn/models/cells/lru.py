"""The linear recurrent unit (Orvieto et al., 2023): complex units that turn and fade, each by itself.

    x[t] = lambda x[t-1] + exp(gamma) B u[t],  y[t] = Re(C x[t]) + D u[t],  lambda = exp(-exp(nu) + i exp(theta))

What makes it more than linear stands between the steps of different layers: a layer is a block of norm, recurrence,
GELU, gated linear unit and dropout, added to what came in. The first block has no norm: of a single pixel, a norm would
leave the sign alone; and what enters its recurrence is then linear in the input, on which `exact.py` relies.

`U` counts complex units and `K` = 2 U real numbers: all real parts, then all imaginary parts. These are the `c` of a
state; its `h` is the block's output.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Complex, Float
from torch import Tensor, nn

from auxrnn.kernels import scan as kernel
from auxrnn.models.cells.recurrence import InputMap, LayerInput, LayerRun, Recurrence
from auxrnn.models.dropout import drop
from auxrnn.structs import RNNState

# At first a unit turns by at most so much a step: a full turn takes 4 steps or more.
LARGEST_TURN = math.pi / 2


class LRU(Recurrence):
    """A stack of blocks with as many complex units as `hidden_size`, the width of what goes from block to block.

    At first |lambda| ** 2 is uniform between the squares of `r_min` and `r_max`: r_max near 1 remembers for long.
    """

    def __init__(
        self,
        input_size: int,
        *,
        hidden_size: int,
        num_layers: int,
        r_min: float = 0.9,
        r_max: float = 0.999,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(hidden_size=hidden_size, num_layers=num_layers)
        # Neighbouring pixels are alike, so units that hardly turn add them up to more than the noise of `gamma`.
        self.weight_ih = nn.ParameterList([torch.randn(hidden_size, input_size) / (2 * math.sqrt(input_size))])
        # As large as the weights, so that units differ in what they make of an input.
        self.bias = nn.ParameterList([torch.randn(hidden_size) / 2])
        self.blocks = nn.ModuleList(
            Block(hidden_size, radii=(r_min, r_max), dropout=dropout, has_norm=layer > 0) for layer in range(num_layers)
        )

    def slow_parameters(self) -> list[nn.Parameter]:
        """Return what learns at a smaller rate: a small change of lambda changes all that is remembered."""
        return [block.get_parameter(name) for block in self.blocks for name in ("nu_U", "theta_U", "gamma_U")]

    def initial_state(self, num_rows: int) -> RNNState:
        """Return zeros."""
        h_LBH, _ = super().initial_state(num_rows)
        return RNNState(h_LBH, h_LBH.new_zeros(self.num_layers, num_rows, 2 * self.hidden_size))

    def input_maps(self) -> list[InputMap]:
        """Return how the first block takes its input; the others take it as it is, which `forward_layer` knows."""
        weight_HI, bias_H = self.weight_ih[0], self.bias[0]
        one = InputMap(torch.eye(self.hidden_size).to(bias_H), torch.zeros_like(bias_H))
        return [InputMap(weight_HI, bias_H)] + [one] * (self.num_layers - 1)

    def forward_layer(self, layer: int, inputs: LayerInput) -> LayerRun:
        """Run a block; outputs of idle columns are those that the row started from."""
        h_BTH, input_map, start_BH, start_BK, idle_BT = inputs
        if layer == 0:
            if idle_BT is not None:
                # What is not read may be anything, and an overflow times a gradient of zero is not zero.
                h_BTH = h_BTH.masked_fill(idle_BT[:, :, None], 0)
            h_BTH = F.linear(h_BTH, *input_map)
        x_BTK, h_BTH = self.blocks[layer](h_BTH, start_BK, idle_BT)
        if idle_BT is not None:
            h_BTH = torch.where(idle_BT[:, :, None], start_BH[:, None], h_BTH)
        return LayerRun(h_BTH, h_BTH[:, -1], x_BTK[:, -1])


class Block(nn.Module):
    """One recurrence and what stands around it."""

    def __init__(self, size: int, *, radii: tuple[float, float], dropout: float, has_norm: bool) -> None:
        super().__init__()
        r_min, r_max = radii
        square_U = torch.empty(size).uniform_(r_min**2, r_max**2)
        self.nu_U = nn.Parameter(torch.log(-torch.log(square_U) / 2))
        self.theta_U = nn.Parameter(torch.log(LARGEST_TURN * torch.rand(size).clamp(min=1e-6)))
        # White noise then gives every unit the same variance.
        self.gamma_U = nn.Parameter(torch.log(1 - square_U) / 2)
        self.weight_KH = nn.Parameter(torch.randn(2 * size, size) / math.sqrt(2 * size))
        # Re(C x) as real numbers: the imaginary parts of C with a minus sign.
        self.weight_HK = nn.Parameter(torch.randn(size, 2 * size) / math.sqrt(size))
        self.skip_H = nn.Parameter(torch.randn(size))
        self.gate = nn.Linear(size, 2 * size)
        self.norm = nn.LayerNorm(size) if has_norm else None
        self.dropout = dropout
        self.eval()  # dropout is for training steps alone, which say so (`models/network.py`)

    def decay(self) -> Float[Tensor, " K"]:
        """Return lambda."""
        radius_U, angle_U = torch.exp(-self.nu_U.exp()), self.theta_U.exp()
        return torch.cat([radius_U * angle_U.cos(), radius_U * angle_U.sin()])

    def input_weight(self) -> Float[Tensor, "K H"]:
        """Return exp(gamma) B."""
        return self.gamma_U.exp().repeat(2)[:, None] * self.weight_KH

    def forward(
        self, h_BTH: Float[Tensor, "B T H"], start_BK: Float[Tensor, "B K"], idle_BT: Bool[Tensor, "B T"] | None
    ) -> tuple[Float[Tensor, "B T K"], Float[Tensor, "B T H"]]:
        """Return the states and the outputs after each step."""
        u_BTH = h_BTH if self.norm is None else self.norm(h_BTH)
        v_BTK = F.linear(u_BTH, self.input_weight())
        scan = kernel.scan if kernel.can_run(v_BTK, self.nu_U) else scan_steps
        x_BTK = scan(v_BTK, self.decay(), start_BK, idle_BT)
        y_BTH = torch.addcmul(F.linear(x_BTK, self.weight_HK), self.skip_H, u_BTH)
        gated_BTH = F.glu(self.gate(F.gelu(y_BTH)), dim=2)
        return x_BTK, h_BTH + drop(gated_BTH, self.dropout, is_training=self.training)


def scan_steps(
    v_BTK: Float[Tensor, "B T K"],
    decay_K: Float[Tensor, " K"],
    start_BK: Float[Tensor, "B K"],
    idle_BT: Bool[Tensor, "B T"] | None,
) -> Float[Tensor, "B T K"]:
    """Return x[t] = decay * x[t-1] + v[t] step by step; an idle x[t] is x[t-1]."""
    decay_U, x_BU = to_complex(decay_K), to_complex(start_BK)
    states = []
    for step, v_BU in enumerate(to_complex(v_BTK).unbind(1)):
        next_BU = decay_U * x_BU + v_BU
        x_BU = next_BU if idle_BT is None else torch.where(idle_BT[:, step, None], x_BU, next_BU)
        states.append(x_BU)
    x_BTU = torch.stack(states, dim=1)
    return torch.cat([x_BTU.real, x_BTU.imag], dim=2)


def to_complex(x_K: Float[Tensor, "*B K"]) -> Complex[Tensor, "*B U"]:
    """Return complex numbers, given all their real parts and then all imaginary parts."""
    return torch.complex(*x_K.chunk(2, dim=-1))
