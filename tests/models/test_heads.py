"""Drop-connect in the heads: one mask a training step, the same expectation, nothing at evaluation."""

import pytest
import torch
import torch.nn.functional as F

from auxrnn.models.encoder import Head
from auxrnn.structs import Draws

B, T, H, FEATURES, C = 40, 6, 5, 7, 3


def make_head(drop_connect=0.5):
    return Head(H, head_size=FEATURES, output_size=C, drop_connect=drop_connect).double()


def draw(head, step=0):
    return head.draw_dropconnect_mask(Draws(0, "test", step).rng("drop-connect"))


@pytest.fixture
def x_BTH():
    return torch.randn(B, T, H, dtype=torch.float64)


def test_all_rows_and_steps_of_a_training_step_share_one_mask(x_BTH):
    head = make_head()
    kept_CF = draw(head)
    actual_BTC = head(x_BTH, kept_CF)
    for b in range(B):
        for t in range(T):
            hidden_F = (head.hidden.weight @ x_BTH[b, t] + head.hidden.bias).clamp(min=0)
            expected_C = (kept_CF * head.output.weight) @ hidden_F + head.output.bias
            torch.testing.assert_close(actual_BTC[b, t], expected_C, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("drop_connect", [0.0, 0.25, 0.5, 0.9])
def test_a_mask_holds_zeros_and_the_inverse_of_the_probability_to_keep(drop_connect):
    head = Head(H, head_size=200, output_size=100, drop_connect=drop_connect)
    kept_CF = draw(head)
    values = {0.0, 1 / (1 - drop_connect)} if drop_connect else {1.0}
    torch.testing.assert_close(kept_CF.unique(), torch.tensor(sorted(values)))
    # 20,000 weights: four standard errors of a proportion are at most 4 * 0.5 / sqrt(20000).
    assert abs(float((kept_CF == 0).double().mean()) - drop_connect) < 0.0142


def test_the_average_over_many_masks_is_the_output_at_evaluation(x_BTH):
    head, num_masks = make_head(), 3000
    x_BH = x_BTH[:4, 0]
    output_NBC = torch.stack([head(x_BH, draw(head, step)) for step in range(num_masks)])
    standard_error_BC = output_NBC.std(dim=0) / num_masks**0.5
    assert bool(((output_NBC.mean(dim=0) - head(x_BH)).abs() < 4.5 * standard_error_BC).all())


def test_masks_differ_between_steps_and_not_within_one():
    head = make_head()
    assert torch.equal(draw(head, 3), draw(head, 3))
    assert not torch.equal(draw(head, 3), draw(head, 4))


def test_nothing_is_dropped_at_evaluation(x_BTH):
    head = make_head()
    expected_BTC = F.linear(F.relu(head.hidden(x_BTH)), head.output.weight, head.output.bias)
    assert torch.equal(head(x_BTH), expected_BTC)
    assert torch.equal(head(x_BTH), make_head_like(head, drop_connect=0.0)(x_BTH))


def make_head_like(head, *, drop_connect):
    other = make_head(drop_connect)
    other.load_state_dict(head.state_dict())
    return other


def test_a_masked_pass_leaves_the_parameters_untouched(x_BTH):
    head = make_head()
    before = {name: value.clone() for name, value in head.state_dict().items()}
    head(x_BTH, draw(head)).sum().backward()
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())


def test_gradient_reaches_exactly_the_kept_weights(x_BTH):
    head = make_head()
    kept_CF = draw(head)
    head(x_BTH, kept_CF).square().sum().backward()
    assert torch.equal(head.output.weight.grad != 0, kept_CF != 0)
    assert 0 < int((kept_CF != 0).sum()) < kept_CF.numel()


def test_weights_start_glorot_uniform_and_biases_zero():
    head = Head(100, head_size=200, output_size=50, drop_connect=0.5)
    for layer in (head.hidden, head.output):
        bound = (6 / sum(layer.weight.shape)) ** 0.5
        assert 0.95 * bound < float(layer.weight.detach().abs().max()) <= bound
        assert not layer.bias.any()
