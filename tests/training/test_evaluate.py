"""Evaluation counts what a loop over single sequences counts."""

import pytest
import torch

import slow_reference as slow
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.evaluate import Evaluation, evaluate, evaluate_auxiliary, predict_logits
from tiny_network import NUM_CLASSES, make_batch, make_network


def make_batches():
    """Three batches of unequal sizes and lengths, one of them padded."""
    padded = make_batch(3, 12, first_B=torch.tensor([0, 5, 9]), seed=3)
    return [make_batch(5, 15, seed=1), make_batch(2, 9, seed=2), padded]


def single_sequences(batches):
    for batch in batches:
        for row in range(len(batch.label_B)):
            first = 0 if batch.first_B is None else int(batch.first_B[row])
            yield batch.x_BT[row, first:], int(batch.label_B[row])


def logits_of(network, x_TD):
    """Classify one sequence step by step."""
    state = slow.read(network.encoder, x_TD, num_steps=len(x_TD), window="full")
    return slow.head(network.classifier, state[-1][0], None)


def test_loss_accuracy_confusion_and_recall_equal_a_loop_over_sequences():
    network, batches = make_network(), make_batches()
    losses, confusion = [], [[0] * NUM_CLASSES for _ in range(NUM_CLASSES)]
    with torch.no_grad():
        for x_TD, label in single_sequences(batches):
            logits_C = logits_of(network, x_TD)
            losses.append(-logits_C.log_softmax(0)[label].item())
            confusion[label][int(logits_C.argmax())] += 1
    evaluation = evaluate(network, batches)
    assert evaluation.confusion_CC.tolist() == confusion
    assert evaluation.num_examples == len(losses) == 10
    assert evaluation.loss == pytest.approx(sum(losses) / 10, rel=1e-12)
    num_right = sum(confusion[label][label] for label in range(NUM_CLASSES))
    assert evaluation.accuracy == pytest.approx(100 * num_right / 10)
    assert evaluation.recall == [
        100 * row[label] / sum(row) if sum(row) else None for label, row in enumerate(confusion)
    ]


def test_recall_is_by_true_class_and_none_for_a_class_without_examples():
    evaluation = Evaluation(0.0, torch.tensor([[3, 1, 0], [0, 0, 0], [2, 2, 4]]))
    assert evaluation.recall == [75.0, None, 50.0]
    assert evaluation.accuracy == pytest.approx(100 * 7 / 12)


def test_probabilities_equal_the_softmax_of_each_sequence():
    network, batches = make_network(), make_batches()
    actual_BC = predict_logits(network, batches).softmax(dim=1)
    expected = [logits_of(network, x_TD).softmax(0) for x_TD, _ in single_sequences(batches)]
    torch.testing.assert_close(actual_BC.clone(), torch.stack(expected).detach(), rtol=1e-12, atol=1e-13)


def test_the_size_of_batches_changes_no_result():
    network, whole = make_network(), make_batch(9, 15)
    parts = [SequenceBatch(whole.x_BT[rows], whole.label_B[rows]) for rows in (slice(4), slice(4, 5), slice(5, 9))]
    together, apart = evaluate(network, [whole]), evaluate(network, parts)
    assert torch.equal(together.confusion_CC, apart.confusion_CC)
    assert together.loss == pytest.approx(apart.loss, rel=1e-12)


@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
def test_the_auxiliary_loss_is_the_same_at_every_call(objective):
    network, batches = make_network(objective), make_batches()
    first = evaluate_auxiliary(network, batches, seed=1)
    torch.manual_seed(99)
    assert evaluate_auxiliary(network, iter(batches), seed=1) == first
    assert evaluate_auxiliary(network, batches, seed=2) != first


@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
def test_the_auxiliary_loss_is_the_mean_over_all_tokens_of_all_batches(objective):
    network, batches = make_network(objective), make_batches()
    total, num_tokens = 0.0, 0
    for index, batch in enumerate(batches):
        segments = network.objective.sample(batch.length_B, rng=Draws(1, "evaluation", index).rng("segments"))
        for row, anchor, start, length in zip(*[part.tolist() for part in segments], strict=True):
            x_TD = batch.x_BT[row, 0 if batch.first_B is None else int(batch.first_B[row]) :]
            places = {"anchor": anchor, "length": length} | ({"start": start} if objective == "reconstruct" else {})
            total += getattr(slow, objective)(network.objective, network.encoder, x_TD, **places).item()
            num_tokens += length
    assert evaluate_auxiliary(network, batches, seed=1) == pytest.approx(total / num_tokens, rel=1e-10)


def test_evaluation_leaves_no_gradient_and_no_graph():
    network, batches = make_network(), make_batches()
    evaluate(network, batches)
    evaluate_auxiliary(network, batches, seed=0)
    assert not predict_logits(network, batches).softmax(dim=1).requires_grad
    assert all(parameter.grad is None for parameter in network.parameters())
