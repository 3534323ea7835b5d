"""The LRU is what its paper says: a block equals a plain loop over complex numbers, and starts where it should."""

import pytest
import torch
import torch.nn.functional as F

from auxrnn.config import unflatten
from auxrnn.data import datasets
from auxrnn.models.cells.lru import LRU, to_complex
from auxrnn.models.network import LossTerms, Network
from auxrnn.runs import open_session, prepare, settle
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.optimizers import make_optimizer

B, T, NUM_INPUTS, H = 3, 10, 2, 6


def read_plainly(cell, x_BTI):
    """Give the outputs of the top block, by the equations."""
    h_BTH = x_BTI @ cell.weight_ih[0].T + cell.bias[0]
    for layer, block in enumerate(cell.blocks):
        u_BTH = F.layer_norm(h_BTH, (H,), block.norm.weight, block.norm.bias) if layer else h_BTH
        decay_U = torch.exp(torch.complex(-block.nu_U.exp(), block.theta_U.exp()))
        b_UH = torch.complex(*block.weight_KH.chunk(2))
        real_HU, minus_imaginary_HU = block.weight_HK.chunk(2, dim=1)
        c_HU = torch.complex(real_HU, -minus_imaginary_HU)
        x_BU, outputs = torch.zeros(B, H, dtype=decay_U.dtype), []
        for u_BH in u_BTH.unbind(1):
            x_BU = decay_U * x_BU + block.gamma_U.exp() * (u_BH.to(b_UH.dtype) @ b_UH.T)
            outputs.append((x_BU @ c_HU.T).real + block.skip_H * u_BH)
        left_BTH, right_BTH = block.gate(F.gelu(torch.stack(outputs, dim=1))).chunk(2, dim=2)
        h_BTH = h_BTH + left_BTH * right_BTH.sigmoid()
    return h_BTH


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_equals_a_plain_loop_in_values_and_gradients(num_layers, dtype):
    cell = LRU(NUM_INPUTS, hidden_size=H, num_layers=num_layers).double()
    x_BTI = torch.randn(B, T, NUM_INPUTS, dtype=torch.float64)
    expected_BTH = read_plainly(cell, x_BTI)
    measure_BTH = torch.randn_like(expected_BTH)
    expected = torch.autograd.grad((expected_BTH * measure_BTH).sum(), list(cell.parameters()))
    cell = cell.to(dtype)
    h_BTH, state = cell(x_BTI.to(dtype), cell.initial_state(B))
    grads = torch.autograd.grad((h_BTH * measure_BTH).sum(), list(cell.parameters()))
    tolerance = {"rtol": 1e-11, "atol": 1e-11} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 2e-4}
    torch.testing.assert_close(h_BTH.double(), expected_BTH, **tolerance)
    for ours, theirs in zip(grads, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, **tolerance)
    assert state.c_LBH.shape == (num_layers, B, 2 * H)


def test_units_start_in_the_ring_and_give_white_noise_the_same_variance():
    block = LRU(1, hidden_size=4000, num_layers=1, r_min=0.5, r_max=0.9).blocks[0]
    square_U = to_complex(block.decay().detach()).abs().square()
    assert 0.25 <= square_U.min() < 0.26
    assert 0.80 < square_U.max() <= 0.81
    assert square_U.mean() == pytest.approx((0.25 + 0.81) / 2, abs=0.01)
    torch.testing.assert_close(block.gamma_U.exp().square(), 1 - square_U)


def test_radii_turns_and_gains_learn_at_a_quarter_of_the_rate():
    cell = LRU(1, hidden_size=H, num_layers=2)
    optimizer = make_optimizer("sgd", cell, lr=0.1)
    before = {name: value.clone() for name, value in cell.state_dict().items()}
    for parameter in cell.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    for name, value in cell.state_dict().items():
        is_slow = name.endswith(("nu_U", "theta_U", "gamma_U"))
        torch.testing.assert_close(before[name] - value, torch.full_like(value, 0.025 if is_slow else 0.1))


def make_session(**values):
    config = settle(unflatten({"data": "digits", "model": "lru", "num_layers": 2, "hidden_size": 4} | values))
    dataset = datasets.load(config.data)
    return open_session(config, dataset, prepare(config, dataset), None)


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_dropout_is_drawn_for_a_training_step_and_for_nothing_else(readout):
    network = make_session(dropout=0.5, drop_connect=0.0, readout=readout).network
    assert isinstance(network, Network)
    batch = SequenceBatch(torch.rand(3, 9, 1), torch.tensor([0, 1, 2]))
    terms = LossTerms(True, False, "full")

    def measure(step, *, is_training=True):
        losses = network.losses(batch, terms=terms, draws=Draws(0, "test", step), is_training=is_training)
        return losses.supervised.total.item()

    torch_state = torch.get_rng_state()
    assert measure(0) == measure(0) != measure(1)
    assert measure(0, is_training=False) == measure(1, is_training=False)
    assert torch.equal(torch.get_rng_state(), torch_state)
    logits_BC = network.logits(batch)
    assert torch.equal(logits_BC, network.logits(batch))
    expected = F.cross_entropy(logits_BC, batch.label_B, reduction="sum").item()
    assert measure(0, is_training=False) == pytest.approx(expected)
