"""Optimizers end where they would have ended, when they are put away in the middle and brought back."""

import pytest
import torch
from torch import nn

from auxrnn.training.optimizers import KINDS, collect_state, make_optimizer, restore_state


def make_layer():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Linear(3, 2)


def update(layer, optimizer, seed):
    x_BH = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
    optimizer.zero_grad(set_to_none=True)
    layer(x_BH).square().sum().backward()
    optimizer.step()


@pytest.mark.parametrize("name", KINDS)
def test_a_restored_optimizer_goes_on_exactly_as_the_old_one_does(name):
    layer, other = make_layer(), make_layer()
    optimizer = make_optimizer(name, layer, lr=0.1)
    for seed in range(3):
        update(layer, optimizer, seed)
    kept = {key: value.clone() for key, value in collect_state(optimizer, layer).items()}
    other.load_state_dict(layer.state_dict())
    restored = make_optimizer(name, other, lr=0.1)
    restore_state(restored, other, kept, kind=name)
    for seed in range(3, 6):
        update(layer, optimizer, seed)
        update(other, restored, seed)
    assert all(torch.equal(*pair) for pair in zip(layer.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_everything_that_an_optimizer_keeps_is_known_by_name(name):
    layer = make_layer()
    optimizer = make_optimizer(name, layer, lr=0.1)
    update(layer, optimizer, 0)
    kept = {key.split(".", 1)[0] for key in collect_state(optimizer, layer)}
    assert kept == set(KINDS[name].kept)


@pytest.mark.parametrize("name", KINDS)
def test_every_optimizer_descends(name):
    layer = make_layer()
    optimizer = make_optimizer(name, layer, lr=1.0 if name == "adadelta" else 0.01)
    before = sum(float(parameter.detach().square().sum()) for parameter in layer.parameters())
    for seed in range(60):
        update(layer, optimizer, seed)
    assert sum(float(parameter.detach().square().sum()) for parameter in layer.parameters()) < before


def test_adam_is_tensor2tensors_and_sgd_has_the_published_momentum():
    layer = make_layer()
    adam = make_optimizer("adam", layer, lr=0.1).param_groups[0]
    assert (adam["betas"], adam["eps"]) == ((0.9, 0.997), 1e-9)
    assert make_optimizer("sgd", layer, lr=0.1).param_groups[0]["momentum"] == 0.9
    adadelta = make_optimizer("adadelta", layer, lr=1.0).param_groups[0]
    assert (adadelta["rho"], adadelta["eps"]) == (0.95, 1e-5)
