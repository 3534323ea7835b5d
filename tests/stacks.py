"""Passes over random batches, and the plain recurrence, one step after the other, that the fused kernel must equal."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from auxrnn.kernels import gated as kernel
from auxrnn.kernels.library import INSTRUCTION_SETS, load_kernel
from auxrnn.models.cells.gru import GRU
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.cells.ur_lstm import URLSTM
from auxrnn.structs import RNNState, StateQuery

BUILDS = [name for name in INSTRUCTION_SETS if load_kernel(name) is not None]
"""The builds that are there and that this processor can run."""
GATED = [LSTM, GRU, URLSTM]
"""The cells that the kernel has."""


class Sizes(NamedTuple):
    """How large a pass is; `inputs` are the features of a vector, or the tokens of a vocabulary."""

    rows: int
    steps: int
    hidden: int
    layers: int
    inputs: int
    places: int


class Pass(NamedTuple):
    """All that a pass over a batch reads."""

    x_BT: Tensor
    weights: list[Tensor]
    start: RNNState
    places: StateQuery
    begin_B: Tensor | None = None
    cell: str = "lstm"

    def sources(self):
        """Give the tensors that gradients are asked of."""
        return [*([self.x_BT] if self.x_BT.is_floating_point() else []), *self.weights, *self.start]

    def to(self, dtype):
        """Give fresh leaves of a type, which ask for gradients."""

        def renew(tensor):
            return tensor.detach().to(dtype, copy=True).requires_grad_()

        x_BT = renew(self.x_BT) if self.x_BT.is_floating_point() else self.x_BT
        start = RNNState(*(renew(part) for part in self.start))
        return self._replace(x_BT=x_BT, weights=[renew(weight) for weight in self.weights], start=start)

    def read(self, **options):
        """Run the kernel; give all outputs, and h and c at the places."""
        work = (self.x_BT, self.weights, self.start, self.places)
        outputs = kernel.forward(*work, cell=self.cell, begin_B=self.begin_B, **options)
        return outputs.h_BTH, *outputs.states


def draw_pass(sizes, *, cell="lstm", is_token=False, is_late=False, seed=0):
    """Draw a pass in single precision; rows that begin late may also begin never, or before the first step."""
    rows, steps, hidden, layers, inputs, places = sizes
    rng = torch.Generator().manual_seed(seed)

    def draw(*shape, scale):
        return scale * torch.randn(shape, generator=rng)

    weights = []
    for layer in range(layers):
        width = inputs if layer == 0 else hidden
        weight_ih = draw(4 * hidden, width, scale=1.0 if is_token and layer == 0 else width**-0.5)
        weights += [weight_ih, draw(4 * hidden, hidden, scale=hidden**-0.5), draw(4 * hidden, scale=0.5)]
    x_BT = torch.randint(inputs, (rows, steps), generator=rng) if is_token else draw(rows, steps, inputs, scale=1.0)
    start = RNNState(*(draw(layers, rows, hidden, scale=0.5) for _ in range(2)))
    at = StateQuery(
        torch.randint(max(rows, 1), (places,), generator=rng), torch.randint(steps + 1, (places,), generator=rng)
    )
    begin_B = torch.randint(-2, steps + 3, (rows,), generator=rng) if is_late else None
    return Pass(x_BT, weights, start, at, begin_B, cell)


def step_lstm(i, f, g, o, c):
    """Give h and c."""
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def step_gru(r, z, n_h, n, c):
    """Give h twice: the kernel keeps it as c as well."""
    h = (1 - z.sigmoid()) * (n + r.sigmoid() * n_h).tanh() + z.sigmoid() * c
    return h, h


def step_ur_lstm(r, f, u, o, c):
    """Give h and c."""
    r, f = r.sigmoid(), f.sigmoid()
    g = 2 * r * f + (1 - 2 * r) * f**2
    c = g * c + (1 - g) * u.tanh()
    return o.sigmoid() * c.tanh(), c


PLAIN_STEPS = {"lstm": step_lstm, "gru": step_gru, "ur_lstm": step_ur_lstm}
RECURRENT_SUMS = {"gru": 3}
"""How many of the four sums, the first ones, read h; what stands in the way of the others is not read."""


def read_plainly(work):
    """Give what `Pass.read` gives, in the precision of the weights."""
    h, c = list(work.start.h_LBH), list(work.start.c_LBH)
    all_h, all_c = [torch.stack(h)], [torch.stack(c)]
    for step in range(work.x_BT.shape[1]):
        x_BI = work.x_BT[:, step]
        if not x_BI.is_floating_point():
            x_BI = F.one_hot(x_BI, work.weights[0].shape[1]).to(h[0])
        is_active_B1 = torch.ones(len(x_BI), 1, dtype=torch.bool)
        if work.begin_B is not None:
            is_active_B1 = (step >= work.begin_B)[:, None]
        for layer in range(len(h)):
            weight_ih, weight_hh, bias_G = work.weights[3 * layer : 3 * layer + 3]
            num_read = RECURRENT_SUMS.get(work.cell, 4) * len(bias_G) // 4
            from_h_BG = F.pad(h[layer] @ weight_hh[:num_read].T, (0, len(bias_G) - num_read))
            sums = (x_BI @ weight_ih.T + from_h_BG + bias_G).chunk(4, dim=1)
            next_h, next_c = PLAIN_STEPS[work.cell](*sums, c[layer])
            h[layer] = torch.where(is_active_B1, next_h, h[layer])
            c[layer] = torch.where(is_active_B1, next_c, c[layer])
            x_BI = h[layer]
        all_h.append(torch.stack(h))
        all_c.append(torch.stack(c))
    row_P, steps_P = work.places
    h_LBTH, c_LBTH = torch.stack(all_h, dim=2), torch.stack(all_c, dim=2)
    return h_LBTH[-1, :, 1:], h_LBTH[:, row_P, steps_P], c_LBTH[:, row_P, steps_P]


def gradients(results, sources, entering):
    """Give what flows back to the sources when these gradients enter at the results; None enters nowhere."""
    pairs = [(result, grad.to(result)) for result, grad in zip(results, entering, strict=True) if grad is not None]
    if not pairs:
        return [torch.zeros_like(source) for source in sources]
    entered, grads = zip(*pairs, strict=True)
    return torch.autograd.grad(entered, sources, grads, allow_unused=True, materialize_grads=True)


def assert_near(actual, expected, *, relative):
    """Compare tensors with the largest magnitude of each as the measure.

    Where all of a tensor nearly cancels out, the numbers that were added up, of magnitude one, are it: 0.01 of them.
    """
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape
        if theirs.numel():
            largest = max(float(theirs.detach().abs().max()), 0.01)
            torch.testing.assert_close(ours.to(theirs.dtype), theirs, rtol=0, atol=relative * largest)


def assert_same_bytes(actual, expected):
    """Compare tensors to the last bit."""
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape
        assert ours.detach().contiguous().numpy().tobytes() == theirs.detach().contiguous().numpy().tobytes()
