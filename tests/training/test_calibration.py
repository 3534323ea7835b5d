import pytest
import torch

from auxrnn.training.calibration import expected_calibration_error, fit_temperature, measure_reliability


def draw_answers(num_examples: int = 20_000, num_classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits whose probabilities are right, and labels drawn from them."""
    rng = torch.Generator().manual_seed(0)
    logits_NC = 2 * torch.randn(num_examples, num_classes, generator=rng, dtype=torch.float64)
    return logits_NC, torch.multinomial(logits_NC.softmax(dim=1), 1, generator=rng)[:, 0]


@pytest.mark.parametrize("factor", [0.3, 1.0, 5.0])
def test_the_temperature_undoes_a_factor_on_the_logits(factor):
    logits_NC, label_N = draw_answers()
    assert fit_temperature(factor * logits_NC, label_N) == pytest.approx(factor, rel=0.05)


def test_the_temperature_is_the_minimum_of_the_cross_entropy():
    logits_NC, label_N = draw_answers(500)
    best = fit_temperature(3 * logits_NC, label_N)
    losses = [torch.nn.functional.cross_entropy(3 * logits_NC / t, label_N) for t in (0.99 * best, best, 1.01 * best)]
    assert losses[1] < min(losses[0], losses[2])


def test_being_right_on_a_few_sequences_does_not_make_a_classifier_sure():
    logits_NC, label_N = 4 * torch.eye(3)[[0, 1, 2, 0, 1]], torch.tensor([0, 1, 2, 0, 1])
    temperature = fit_temperature(logits_NC, label_N, smoothing=2 / 7)
    confidence = float((logits_NC / temperature).softmax(dim=1).max(dim=1).values.mean())
    assert confidence == pytest.approx(1 - 2 / 7 + 2 / 21, abs=1e-3)


def test_the_temperature_of_a_perfect_classifier_is_bounded():
    label_N = torch.arange(10)
    assert 0.04 < fit_temperature(torch.eye(10), label_N) < 0.06


def test_calibration_error_is_small_for_right_probabilities_and_large_for_sharpened_ones():
    logits_NC, label_N = draw_answers()
    assert expected_calibration_error(logits_NC.softmax(dim=1), label_N) < 1.5
    assert expected_calibration_error((5 * logits_NC).softmax(dim=1), label_N) > 5


def test_calibration_error_of_two_answers_by_hand():
    probability_NC = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]], dtype=torch.float64)
    label_N = torch.tensor([0, 1, 1])
    # Bins: two answers at 0.9 of which half are right, one at 0.6 that is right.
    assert expected_calibration_error(probability_NC, label_N) == pytest.approx(100 * (2 * 0.4 + 0.4) / 3)
    found = measure_reliability(probability_NC, label_N)
    assert [each.num_answers for each in found] == [1, 2]
    assert found[1].accuracy == 0.5


def test_a_probability_of_one_is_in_the_last_bin():
    (found,) = measure_reliability(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    assert found == (1, 1.0, 1.0)
