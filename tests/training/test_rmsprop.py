"""RMSProp as TensorFlow does it, against the formula in plain Python."""

import math

import pytest
import torch
from torch import nn

from auxrnn.training.optimizers import RMSProp


def update_slowly(weights, gradients, mean_squares, *, lr, decay=0.9, epsilon=1e-10):
    """Do TensorFlow's update on lists of numbers."""
    for index, gradient in enumerate(gradients):
        mean_squares[index] = decay * mean_squares[index] + (1 - decay) * gradient**2
        weights[index] -= lr * gradient / math.sqrt(mean_squares[index] + epsilon)


def make_parameter(*values):
    return nn.Parameter(torch.tensor(values, dtype=torch.float64))


def test_updates_equal_tensorflows_formula_from_a_mean_square_of_one():
    weights, mean_squares, rng = [0.5, -2.0, 3.0], [1.0, 1.0, 1.0], torch.Generator().manual_seed(0)
    parameter = make_parameter(*weights)
    optimizer = RMSProp([parameter], lr=1e-3)
    for step in range(30):
        gradient = torch.randn(3, dtype=torch.float64, generator=rng) * 10.0 ** (step % 5 - 3)
        optimizer.param_groups[0]["lr"] = lr = 1e-3 / (1 + step)
        parameter.grad = gradient.clone()
        optimizer.step()
        update_slowly(weights, gradient.tolist(), mean_squares, lr=lr)
        torch.testing.assert_close(parameter.tolist(), weights, rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(optimizer.state[parameter]["mean_square"].tolist(), mean_squares, rtol=1e-13, atol=0)


def test_epsilon_stands_inside_the_root():
    parameter = make_parameter(1.0)
    optimizer = RMSProp([parameter], lr=1.0, decay=0.0, epsilon=9.0)
    parameter.grad = torch.tensor([4.0], dtype=torch.float64)
    optimizer.step()
    # sqrt(16 + 9) = 5; outside the root it would be 4 + 9.
    assert parameter.item() == pytest.approx(1 - 4 / 5)


def test_parameters_without_gradient_are_untouched():
    moved, still = make_parameter(1.0), make_parameter(2.0)
    optimizer = RMSProp([moved, still], lr=0.1)
    moved.grad = torch.ones_like(moved)
    optimizer.step()
    assert moved.item() != 1.0
    assert still.item() == 2.0
    assert optimizer.state[still]["mean_square"].item() == 1.0


def test_without_any_gradient_nothing_happens():
    parameter = make_parameter(1.0)
    RMSProp([parameter], lr=0.1).step()
    assert parameter.item() == 1.0


@pytest.mark.parametrize("gradient", [1e-3, 1.0, 50.0])
def test_the_first_step_follows_the_gradient_where_torchs_is_ten_rates_whatever_it_is(gradient):
    ours, theirs = make_parameter(0.0), make_parameter(0.0)
    for parameter, optimizer in ((ours, RMSProp([ours], lr=1e-3)), (theirs, torch.optim.RMSprop([theirs], lr=1e-3))):
        parameter.grad = torch.full_like(parameter, gradient)
        optimizer.step()
    assert theirs.item() == pytest.approx(-1e-2, rel=1e-3)
    assert ours.item() == pytest.approx(-1e-3 * gradient / math.sqrt(0.9 + 0.1 * gradient**2))
    assert abs(ours.item()) < 1e-3 * math.sqrt(10)


def test_a_closure_is_run_with_gradients_and_its_loss_given_back():
    parameter = make_parameter(3.0)
    optimizer = RMSProp([parameter], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = parameter.square().sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9.0
    assert parameter.item() < 3.0
