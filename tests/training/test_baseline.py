"""Models that read whole sequences train under the same rules: counted draws, one head, labels smoothed if asked."""

import pytest
import torch
import torch.nn.functional as F

from auxrnn.build import InputSpec, build_network
from auxrnn.config import unflatten
from auxrnn.models.network import LossTerms, classification_loss
from auxrnn.structs import Draws, SequenceBatch

SPEC = InputSpec(0, 9, 3, 70)
TASK = LossTerms(is_supervised=True, is_auxiliary=False, supervised_window="full")
VALUES = {
    "transformer": {"hidden_size": 8, "filter_size": 8, "num_heads": 2},
    "dmca": {"hidden_size": 8, "num_heads": 2, "block_length": 16, "block_reach": 8},
    "char_cnn": {"pad_to": 130},
    "conv_rnn": {"hidden_size": 4, "pad_to": 40},
    "vdcnn": {"pad_to": 64, "depth": 9},
}


def make(model):
    return build_network(unflatten({"data": "", "model": model} | VALUES[model]), SPEC)


def make_batch(num_rows=4):
    rng = torch.Generator().manual_seed(0)
    first_B = torch.tensor([0, 12, 50, 69])[:num_rows]
    return SequenceBatch(torch.randint(9, (num_rows, 70), generator=rng), torch.arange(num_rows) % 3, first_B)


def loss_of(network, draws):
    return network.losses(make_batch(), terms=TASK, draws=draws, true_probability=1.0).combine(1.0)


@pytest.mark.parametrize("model", VALUES)
def test_what_is_dropped_depends_on_seed_phase_and_step_alone(model):
    network = make(model)
    first = loss_of(network, Draws(0, "supervised", 5))
    torch.rand(7)
    assert torch.equal(loss_of(network, Draws(0, "supervised", 5)), first)
    if model != "vdcnn":
        assert not torch.equal(loss_of(network, Draws(0, "supervised", 6)), first)


@pytest.mark.parametrize("model", VALUES)
def test_a_training_step_leaves_the_global_generator_as_it_was(model):
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    loss_of(make(model), Draws(0, "supervised", 0))
    assert torch.equal(torch.rand(4), expected)


@pytest.mark.parametrize("model", VALUES)
def test_in_use_nothing_is_dropped_and_nothing_remembered(model):
    network, batch = make(model), make_batch()
    loss_of(network, Draws(0, "supervised", 0))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    assert torch.equal(network.logits(batch), network.logits(batch))
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize("model", VALUES)
def test_gradients_reach_every_weight(model):
    network = make(model)
    loss_of(network, Draws(0, "supervised", 0)).backward()
    assert [name for name, parameter in network.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize("model", ["transformer", "dmca", "conv_rnn"])
def test_a_row_of_a_batch_is_read_as_it_would_be_alone(model):
    network, batch = make(model).double(), make_batch()
    together_BC = network.logits(batch)
    for row, first in enumerate(batch.first_B.tolist()):
        alone = SequenceBatch(batch.x_BT[row : row + 1, first:], batch.label_B[row : row + 1])
        torch.testing.assert_close(network.logits(alone)[0], together_BC[row], rtol=1e-9, atol=1e-11)


def test_smoothed_labels_are_a_mix_of_the_label_and_all_classes():
    logits_BC, label_B = torch.randn(5, 4, dtype=torch.float64), torch.tensor([0, 3, 1, 1, 2])
    target_BC = 0.9 * F.one_hot(label_B, 4) + 0.1 / 4
    loss, _ = classification_loss(logits_BC, label_B, smoothing=0.1)
    expected = -(target_BC * logits_BC.log_softmax(dim=1)).sum()
    torch.testing.assert_close(loss.total, expected)
