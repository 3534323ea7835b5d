"""Rates and probabilities: the paper's values, and never out of range."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxrnn.training.optimizers import Phase, true_token_probability

STEPS = st.integers(0, 10**7)
RATES = st.floats(1e-6, 1.0)


def pretrain_lr(step, *, num_steps, lr):
    return Phase("pretrain", num_steps, False, True, lr, 1.0).lr_at(step)


def train_lr(step, *, halving_steps, lr):
    return Phase("joint", 1, True, True, lr, halving_steps).lr_at(step)


def cosine_lr(step, *, num_steps, warmup_steps, lr):
    return Phase("joint", num_steps, True, True, lr, 1.0, warmup_steps, "cosine").lr_at(step)


def warmup_lr(step, *, warmup_steps, lr):
    return Phase("joint", 1, True, True, lr, 1.0, warmup_steps, "inverse-sqrt").lr_at(step)


def test_pretraining_halves_the_papers_rate_once_halfway():
    rates = [pretrain_lr(step, num_steps=100, lr=1e-3) for step in range(100)]
    assert rates == [1e-3] * 50 + [5e-4] * 50


def test_pretraining_of_an_odd_length_halves_after_its_middle():
    assert [pretrain_lr(step, num_steps=3, lr=1e-3) for step in range(3)] == [1e-3, 1e-3, 5e-4]


def test_training_halves_the_papers_rate_every_300_epochs():
    steps_per_epoch = 391
    rates = [train_lr(epoch * steps_per_epoch, halving_steps=300.0 * steps_per_epoch, lr=1e-3) for epoch in range(1000)]
    assert rates == [1e-3] * 300 + [5e-4] * 300 + [2.5e-4] * 300 + [1.25e-4] * 100
    assert train_lr(300 * steps_per_epoch - 1, halving_steps=300.0 * steps_per_epoch, lr=1e-3) == 1e-3


def test_true_tokens_get_rarer_in_a_line_over_100000_steps():
    expected = {0: 1.0, 1: 0.99999, 25_000: 0.75, 50_000: 0.5, 99_999: 1e-5, 100_000: 0.0, 391_000: 0.0}
    for step, probability in expected.items():
        assert abs(true_token_probability(step, sampling_steps=100_000) - probability) < 1e-12


@given(step=STEPS)
def test_without_sampling_steps_tokens_are_always_true(step):
    assert true_token_probability(step, sampling_steps=0) == 1.0


@given(step=STEPS, more=STEPS, sampling_steps=st.integers(0, 10**6))
def test_the_probability_stays_a_probability_and_never_rises(step, more, sampling_steps):
    first, later = (true_token_probability(at, sampling_steps=sampling_steps) for at in (step, step + more))
    assert 0 <= later <= first <= 1


@given(step=STEPS, more=STEPS, num_steps=st.integers(1, 10**7), lr=RATES)
def test_the_rate_of_pretraining_stays_in_range_and_never_rises(step, more, num_steps, lr):
    first, later = (pretrain_lr(at, num_steps=num_steps, lr=lr) for at in (step, step + more))
    assert lr / 2 <= later <= first <= lr


@given(step=STEPS, more=STEPS, halving_steps=st.floats(1, 1e9), lr=RATES)
def test_the_rate_of_training_stays_in_range_and_never_rises(step, more, halving_steps, lr):
    first, later = (train_lr(at, halving_steps=halving_steps, lr=lr) for at in (step, step + more))
    assert 0 <= later <= first <= lr


def test_a_warm_up_is_tensor2tensors():
    peak = 2.0 * (128 * 8000) ** -0.5
    for step in (0, 1, 500, 7_999, 8_000, 100_000):
        published = 2.0 * 128**-0.5 * min((step + 1) * 8000**-1.5, (step + 1) ** -0.5)
        assert warmup_lr(step, warmup_steps=8000, lr=peak) == pytest.approx(published, rel=1e-12)


@given(STEPS, st.integers(1, 10**5), RATES)
def test_a_warm_up_never_exceeds_its_rate_and_reaches_it_once(step, warmup_steps, lr):
    assert 0 < warmup_lr(step, warmup_steps=warmup_steps, lr=lr) <= lr
    assert warmup_lr(warmup_steps - 1, warmup_steps=warmup_steps, lr=lr) == lr


@given(step=STEPS, num_steps=st.integers(1, 10**6), warmup_steps=st.integers(0, 10**4), lr=RATES)
def test_a_cosine_rises_in_its_warm_up_and_falls_to_nearly_zero(step, num_steps, warmup_steps, lr):
    step %= num_steps
    rate, following, last = (
        cosine_lr(at, num_steps=num_steps, warmup_steps=warmup_steps, lr=lr) for at in (step, step + 1, num_steps - 1)
    )
    warmup = min(warmup_steps, num_steps // 10)
    assert 0 < rate <= lr
    assert rate < following if step + 1 < warmup else step + 1 >= num_steps or following <= rate
    assert num_steps < 100 or last < 1e-3 * lr


def test_a_cosine_is_at_half_its_rate_halfway_after_the_warm_up():
    assert cosine_lr(550, num_steps=1000, warmup_steps=100, lr=2.0) == pytest.approx(1.0)
    assert [cosine_lr(step, num_steps=1000, warmup_steps=100, lr=2.0) for step in (0, 99, 100)] == [0.02, 2.0, 2.0]
