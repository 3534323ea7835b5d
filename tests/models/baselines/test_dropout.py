"""Dropout with shared draws, against what dropout means."""

import pytest
import torch

from auxrnn.models.baselines.layers import LEVELS, Dropout

NUM = 200_003  # not a multiple of four


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_each_element_is_cleared_at_the_rate_wherever_it_stands_in_a_draw(rate):
    torch.manual_seed(0)
    kept = Dropout(rate)(torch.ones(NUM)) != 0
    for place in range(4):
        share = kept[place::4].double().mean().item()
        assert share == pytest.approx(1 - rate, abs=0.01), place


def test_elements_that_share_a_draw_are_cleared_independently():
    torch.manual_seed(0)
    kept_DS = (Dropout(0.5)(torch.ones(NUM - 3)) != 0).double().view(-1, 4)
    assert torch.corrcoef(kept_DS.T).sub(torch.eye(4)).abs().max() < 0.02


def test_what_is_kept_is_scaled_so_that_the_mean_stays():
    rate = 0.1
    x = torch.rand(NUM, dtype=torch.float64) + 1
    y = Dropout(rate)(x)
    num_cleared = round(rate * LEVELS)
    torch.testing.assert_close(y[y != 0], x[y != 0] * LEVELS / (LEVELS - num_cleared))
    assert y.mean().item() == pytest.approx(x.mean().item(), rel=0.01)


def test_gradients_pass_where_elements_did():
    x = torch.rand(7, 5, 3, dtype=torch.float64).add_(1).requires_grad_()
    y = Dropout(0.4)(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient, (y / x).detach())


def test_a_seed_gives_the_same_mask_again():
    drop, x = Dropout(0.3), torch.ones(1000)
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(drop(x))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


@pytest.mark.parametrize("drop", [Dropout(0.5).eval(), Dropout(0.0)])
def test_evaluation_and_rate_zero_change_and_draw_nothing(drop):
    x, before = torch.rand(100), torch.get_rng_state()
    assert drop(x) is x
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3)])
def test_any_number_of_elements_is_taken(shape):
    x = torch.ones(shape)
    assert Dropout(0.5)(x).shape == x.shape


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_that_is_no_part_is_refused(rate):
    with pytest.raises(ValueError, match="rate is"):
        Dropout(rate)
