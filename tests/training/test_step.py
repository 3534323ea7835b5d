"""One step: which losses count, what they are divided by, how far each reaches, and how gradients are clipped."""

import pytest
import torch
import torch.nn.functional as F

from auxrnn import bptt
from auxrnn.models.network import Losses, LossTerms
from auxrnn.structs import Draws, LossSum, SequenceBatch
from auxrnn.training.optimizers import back_propagate
from tiny_network import make_batch, make_network

B, T = 4, 20
DRAWS = Draws(3, "test", 7)
SUPERVISED, AUXILIARY, JOINT = LossTerms(True, False, 5), LossTerms(False, True, 5), LossTerms(True, True, 5)
OBJECTIVES = ["reconstruct", "predict"]


def compute(network, batch, task, true_probability=0.7):
    return network.losses(batch, terms=task, draws=DRAWS, true_probability=true_probability)


def gradients(network, loss):
    back_propagate(network, loss, clip_norm=0.0)
    return {name: parameter.grad for name, parameter in network.named_parameters()}


@pytest.mark.parametrize("window", [0, 5, "full"])
def test_the_supervised_loss_is_the_summed_cross_entropy_of_the_last_states(window):
    network, batch = make_network("none"), make_batch()
    losses = compute(network, batch, SUPERVISED._replace(supervised_window=window))
    state = bptt.final_states(network.encoder, batch.x_BT, window=0)
    kept_CF = network.classifier.draw_dropconnect_mask(DRAWS.rng("classifier drop-connect"))
    logits_BC = network.classifier(state.h_LBH[-1], kept_CF)
    torch.testing.assert_close(losses.supervised.total, F.cross_entropy(logits_BC, batch.label_B, reduction="sum"))
    assert int(losses.supervised.num_tokens) == B
    assert int(losses.num_correct) == sum(
        int(logits.argmax()) == int(label) for logits, label in zip(logits_BC, batch.label_B, strict=True)
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_each_row_counts_by_its_weight_in_the_supervised_loss_alone(smoothing):
    network, batch = make_network("reconstruct"), make_batch()
    terms = JOINT._replace(label_smoothing=smoothing)
    weight_B = torch.tensor([0.5, 2.0, 0.0, 1.5], dtype=torch.float64)
    plain, weighted = compute(network, batch, terms), compute(network, batch._replace(weight_B=weight_B), terms)
    # A row alone has the same drop-connect, but no two rows share a loss.
    rows = [SequenceBatch(batch.x_BT[row : row + 1], batch.label_B[row : row + 1]) for row in range(B)]
    alone = [compute(network, row, SUPERVISED._replace(label_smoothing=smoothing)).supervised.total for row in rows]
    expected = sum(weight * loss for weight, loss in zip(weight_B, alone, strict=True))
    torch.testing.assert_close(weighted.supervised.total, expected)
    assert int(weighted.supervised.num_tokens) == B
    assert torch.equal(weighted.auxiliary.total, plain.auxiliary.total)
    ones = compute(network, batch._replace(weight_B=torch.ones_like(weight_B)), terms)
    torch.testing.assert_close(gradients(network, ones.supervised.total), gradients(network, plain.supervised.total))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_loss_that_does_not_count_is_none(objective):
    network, batch = make_network(objective), make_batch()
    supervised, auxiliary = compute(network, batch, SUPERVISED), compute(network, batch, AUXILIARY)
    assert supervised.auxiliary is None
    assert auxiliary.supervised is None
    assert auxiliary.num_correct is None


@pytest.mark.parametrize("weight", [1.0, 0.25, 0.0])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_joint_training_adds_the_weighted_losses_and_their_gradients(objective, weight):
    network, batch = make_network(objective), make_batch(first_B=torch.tensor([0, 3, 11, 18]))
    supervised = compute(network, batch, SUPERVISED).combine(1.0)
    auxiliary = compute(network, batch, AUXILIARY).combine(1.0)
    joint = compute(network, batch, JOINT).combine(weight)
    torch.testing.assert_close(joint, supervised + weight * auxiliary, rtol=1e-12, atol=1e-13)
    separate = [gradients(network, loss) for loss in (supervised, auxiliary)]
    for name, actual in gradients(network, joint).items():
        zero = torch.zeros_like(actual)
        one, two = (zero if part[name] is None else part[name] for part in separate)
        torch.testing.assert_close(actual, one + weight * two, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sums_are_divided_once_by_their_own_counts(objective):
    network, batch = make_network(objective), make_batch(first_B=torch.tensor([0, 3, 11, 18]))
    losses = compute(network, batch, JOINT)
    lengths = [min(6, length - 1) for length in (20, 17, 9, 2)]
    num_tokens = 2 * sum(lengths)
    assert (int(losses.supervised.num_tokens), int(losses.auxiliary.num_tokens)) == (B, num_tokens)
    expected = losses.supervised.total / B + 0.5 * losses.auxiliary.total / num_tokens
    torch.testing.assert_close(losses.combine(0.5), expected, rtol=1e-14, atol=0)


def test_combining_divides_each_sum_by_its_count():
    supervised, auxiliary = (
        LossSum(torch.tensor(total), torch.tensor(count)) for total, count in ((6.0, 3), (40.0, 8))
    )
    assert float(Losses(supervised, auxiliary, torch.tensor(0)).combine(0.1)) == pytest.approx(2.5)
    assert float(Losses(None, auxiliary, None).combine(0.1)) == pytest.approx(5.0)
    assert float(Losses(supervised, None, torch.tensor(0)).combine(0.1)) == 2.0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_window_0_leaves_the_encoder_without_gradient_when_only_labels_count(objective):
    network = make_network(objective)
    grads = gradients(network, compute(network, make_batch(), SUPERVISED._replace(supervised_window=0)).combine(1.0))
    assert all(grad is None for name, grad in grads.items() if not name.startswith("classifier"))
    assert all(bool(grad.any()) for name, grad in grads.items() if name.startswith("classifier"))


@pytest.mark.parametrize("is_joint", [False, True])
@pytest.mark.parametrize("window", [1, 4, T - 1, T])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_supervised_gradient_reaches_exactly_the_last_inputs(objective, window, is_joint):
    network, batch = make_network(objective), make_batch()
    batch.x_BT.requires_grad_()
    task = LossTerms(True, is_joint, window)
    (grad_BTD,) = torch.autograd.grad(compute(network, batch, task).supervised.mean(), batch.x_BT)
    assert (grad_BTD.abs().sum(dim=(0, 2)) > 0).tolist() == [t >= T - window for t in range(T)]


def test_every_parameter_that_a_joint_step_trains_gets_a_gradient():
    for objective in OBJECTIVES:
        network = make_network(objective)
        grads = gradients(network, compute(network, make_batch(), JOINT).combine(1.0))
        assert all(grad is not None and bool(grad.any()) for grad in grads.values())


@pytest.mark.parametrize("clip_norm", [0.01, 1e-4, 1e6, 0.0])
def test_gradients_are_clipped_by_their_global_norm_and_0_clips_nothing(clip_norm):
    network, batch = make_network(), make_batch()
    plain = gradients(network, compute(network, batch, JOINT).combine(1.0))
    norm = torch.sqrt(sum(grad.square().sum() for grad in plain.values()))
    given = back_propagate(network, compute(network, batch, JOINT).combine(1.0), clip_norm=clip_norm)
    torch.testing.assert_close(given, norm, rtol=1e-12, atol=0)
    scale = 1.0 if clip_norm in (0.0, 1e6) else clip_norm / float(norm)
    for name, parameter in network.named_parameters():
        # torch adds 1e-6 to the norm that it divides by.
        torch.testing.assert_close(parameter.grad, scale * plain[name], rtol=2e-6 / float(norm), atol=1e-15)


def test_gradients_of_the_step_before_do_not_linger():
    network, batch = make_network(), make_batch()
    first = gradients(network, compute(network, batch, JOINT).combine(1.0))
    gradients(network, compute(network, batch, SUPERVISED).combine(1.0))
    assert all(parameter.grad is None for parameter in network.objective.parameters())
    again = gradients(network, compute(network, batch, JOINT).combine(1.0))
    assert all(torch.equal(again[name], grad) for name, grad in first.items())


def test_a_step_depends_on_its_draws_and_not_on_the_global_generator():
    network, batch = make_network(), make_batch()
    first = compute(network, batch, JOINT).combine(1.0)
    torch.manual_seed(99)
    assert torch.equal(compute(network, batch, JOINT).combine(1.0), first)
    other = network.losses(batch, terms=JOINT, draws=DRAWS._replace(step=8), true_probability=0.7)
    assert not torch.equal(other.combine(1.0), first)
