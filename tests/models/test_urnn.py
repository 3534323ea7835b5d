"""The uRNN: its matrix is the paper's product and stays unitary, its steps are the paper's, its start is learned."""

import math

import pytest
import torch
from torch import nn

from auxrnn import bptt
from auxrnn.models.cells.urnn import URNN, rectify
from auxrnn.models.encoder import Encoder, NoEmbedding

B, T, NUM_INPUTS, H = 4, 9, 3, 6


def make_urnn(num_layers=2, hidden_size=H):
    cell = URNN(NUM_INPUTS, hidden_size=hidden_size, num_layers=num_layers).double()
    for bias_H in cell.bias:
        nn.init.uniform_(bias_H, -0.1, 0.1)
    return cell


def as_complex(x_R):
    half = x_R.shape[-1] // 2
    return x_R[..., :half] + 1j * x_R[..., half:]


def multiply_out(cell, layer):
    """Build W from dense matrices, in the order of the paper."""
    size = cell.hidden_size
    index_H = torch.arange(size, dtype=torch.float64)
    fourier_HH = torch.exp(-2j * math.pi * index_H[:, None] * index_H / size) / size**0.5
    permute_HH = torch.eye(size, dtype=torch.complex128)[cell.permutation_LH[layer]]
    d1_HH, d2_HH, d3_HH = (torch.diag(torch.exp(1j * angle_H)) for angle_H in cell.angles[layer])
    v_2H = as_complex(cell.reflections[layer])
    r1_HH, r2_HH = (torch.eye(size) - 2 * torch.outer(v_H, v_H.conj()) / v_H.abs().square().sum() for v_H in v_2H)
    parts = [d3_HH, r2_HH, fourier_HH.conj().T, d2_HH, permute_HH, r1_HH, fourier_HH, d1_HH]
    return torch.linalg.multi_dot(parts)


def read_slowly(cell, x_TI):
    """Read one sequence with dense matrices, one step at a time; give all outputs of the top, as complex numbers."""
    for layer in range(cell.num_layers):
        w_HH, v_HI = multiply_out(cell, layer), as_complex(cell.weight_ih[layer].T).T
        h_H, outputs = as_complex(cell.start_LR[layer]), []
        for x_I in x_TI:
            z_H = w_HH @ h_H + v_HI @ x_I.to(v_HI)
            h_H = torch.relu(z_H.abs() + cell.bias[layer]) * z_H / z_H.abs()
            outputs.append(h_H)
        x_TI = torch.cat([torch.stack(outputs).real, torch.stack(outputs).imag], dim=1)
    return x_TI


@pytest.mark.parametrize("hidden_size", [1, 2, 7, 16])
def test_the_recurrent_matrix_is_the_product_of_the_paper(hidden_size):
    cell = make_urnn(num_layers=2, hidden_size=hidden_size)
    for layer in range(2):
        actual_HH, expected_HH = cell.recurrent_matrix(layer), multiply_out(cell, layer)
        torch.testing.assert_close(actual_HH, expected_HH, rtol=1e-12, atol=1e-13)
    weights = [cell.angles[0], cell.reflections[0]]
    ours = torch.autograd.grad(cell.recurrent_matrix(0).real.sin().sum(), weights)
    theirs = torch.autograd.grad(multiply_out(cell, 0).real.sin().sum(), weights)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_a_run_equals_dense_matrices_step_by_step_in_values_and_gradients(num_layers):
    cell, x_BTI = make_urnn(num_layers), torch.randn(B, T, NUM_INPUTS, dtype=torch.float64, requires_grad=True)
    h_BTH = cell(x_BTI, cell.initial_state(B)).h_BTH
    expected_BTH = torch.stack([read_slowly(cell, x_TI) for x_TI in x_BTI])
    # |z| is taken a little larger (SMALLEST_SQUARE), which the smallest z feel.
    torch.testing.assert_close(h_BTH, expected_BTH, rtol=1e-6, atol=1e-7)
    inputs = [x_BTI, *cell.parameters()]
    ours, theirs = (torch.autograd.grad(part.sin().sum(), inputs) for part in (h_BTH, expected_BTH))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def is_unitary(cell, layer):
    w_HH = cell.recurrent_matrix(layer).detach()
    off_HH = w_HH.conj().T @ w_HH - torch.eye(cell.hidden_size)
    return float(off_HH.abs().max()) < 1e-6


def test_the_recurrent_matrix_is_unitary_before_and_after_training():
    cell, readout = URNN(1, hidden_size=64, num_layers=2), nn.Linear(128, 3)
    optimizer = torch.optim.RMSprop([*cell.parameters(), *readout.parameters()], lr=1e-2)
    x_BTI, label_B = torch.randn(12, 20, 1), torch.arange(12) % 3
    first_HH, losses = cell.recurrent_matrix(0).detach(), []
    assert all(is_unitary(cell, layer) for layer in range(2))
    for _ in range(8):
        loss = nn.functional.cross_entropy(readout(cell(x_BTI, cell.initial_state(12)).h_BTH[:, -1]), label_B)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    assert float((cell.recurrent_matrix(0).detach() - first_HH).abs().max()) > 0.01
    assert all(is_unitary(cell, layer) for layer in range(2))


def test_blank_inputs_keep_the_length_of_the_state_for_a_thousand_steps():
    cell = URNN(1, hidden_size=32, num_layers=1)
    start = cell.initial_state(2)
    with torch.no_grad():
        after = cell(torch.zeros(2, 1000, 1), start).state
    # W is unitary to about 1e-7, the precision of its phases: a thousand steps may be off by a thousand times that.
    torch.testing.assert_close(after.h_LBH.norm(dim=2), start.h_LBH.norm(dim=2), rtol=2e-4, atol=0)


def test_modrelu_moves_the_modulus_and_keeps_the_phase():
    z_BH = torch.tensor([[3 + 4j, -0.6 - 0.8j, 0.3j]], dtype=torch.complex128)
    bias_H = torch.tensor([1.0, -0.5, -0.5], dtype=torch.float64)
    expected_BH = torch.tensor([[3.6 + 4.8j, -0.3 - 0.4j, 0]], dtype=torch.complex128)
    torch.testing.assert_close(rectify(z_BH, bias_H), expected_BH, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0.0, 1e-38, 1e-20, 1e-9])
def test_modrelu_has_finite_gradients_at_and_near_zero(size, dtype):
    parts_BH2 = torch.full((1, 3, 2), size, dtype=dtype, requires_grad=True)
    bias_H = torch.tensor([-0.5, 0.0, 0.5], dtype=dtype, requires_grad=True)
    h_BH = rectify(torch.view_as_complex(parts_BH2), bias_H)
    h_BH.abs().sum().backward()
    assert bool(h_BH.detach().abs().isfinite().all())
    assert bool(parts_BH2.grad.isfinite().all())
    assert bool(bias_H.grad.isfinite().all())


def test_a_full_window_reaches_the_learned_start_and_a_shorter_one_does_not():
    encoder = Encoder(NoEmbedding(NUM_INPUTS), cell=make_urnn())
    x_BTD = torch.randn(B, T, NUM_INPUTS, dtype=torch.float64)
    start_LR = encoder.cell.start_LR
    h_LBH = bptt.final_states(encoder, x_BTD, window="full").h_LBH
    (actual,) = torch.autograd.grad(h_LBH.sin().sum(), start_LR)
    plain_LBH = encoder.cell(x_BTD, encoder.initial_state(B)).state.h_LBH
    (expected,) = torch.autograd.grad(plain_LBH.sin().sum(), start_LR)
    torch.testing.assert_close(actual, expected, rtol=1e-11, atol=1e-12)
    assert bool(actual.all())
    short_LBH = bptt.final_states(encoder, x_BTD, window=T - 1).h_LBH
    assert torch.autograd.grad(short_LBH.sin().sum(), start_LR, allow_unused=True) == (None,)


def test_parameters_start_in_the_ranges_of_the_paper():
    cell = URNN(30, hidden_size=200, num_layers=2)
    bounds = [(cell.start_LR, (3 / 400) ** 0.5)]
    bounds += [(angle_3H, math.pi) for angle_3H in cell.angles]
    bounds += [(weight, (6 / sum(weight.shape)) ** 0.5) for weight in [*cell.reflections, *cell.weight_ih]]
    for parameter, bound in bounds:
        assert 0.97 * bound < float(parameter.detach().abs().max()) <= bound
        # The mean of n draws is off by bound / sqrt(3 n): five times that is never met.
        assert abs(float(parameter.detach().mean())) < 5 * bound / (3 * parameter.numel()) ** 0.5
    assert not any(bool(bias_H.any()) for bias_H in cell.bias)


def test_the_permutation_is_saved_with_the_weights_and_drawn_from_the_seed():
    cell, other = URNN(2, hidden_size=50, num_layers=2), URNN(2, hidden_size=50, num_layers=2)
    assert not torch.equal(cell.permutation_LH[0], cell.permutation_LH[1])
    assert cell.permutation_LH.sort(dim=1).values.tolist() == [list(range(50))] * 2
    assert not torch.equal(cell.permutation_LH, other.permutation_LH)
    other.load_state_dict(cell.state_dict())
    assert torch.equal(cell.recurrent_matrix(1), other.recurrent_matrix(1))
    torch.manual_seed(0)
    assert torch.equal(URNN(2, hidden_size=50, num_layers=2).permutation_LH, cell.permutation_LH)


def test_the_published_size_has_the_published_number_of_parameters():
    cell, readout = URNN(1, hidden_size=512, num_layers=1), nn.Linear(2 * 512, 10)
    num_parameters = sum(p.numel() for p in [*cell.parameters(), *readout.parameters()])
    assert round(num_parameters, -3) == 16_000
