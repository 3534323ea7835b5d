"""Subsets keep their proportions, epochs hold each example once, and a batch depends on its numbers alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from auxrnn.data.batches import Batches, hold_out, in_order, take_examples, to_tensor
from auxrnn.data.datasets import Split
from auxrnn.errors import UsageError

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=80)
SEEDS = st.integers(0, 2**31)


def split_of(labels):
    """A split whose example `i` holds the number `i` in two bytes."""
    x_NTD = np.arange(len(labels), dtype="<u2").view(np.uint8).reshape(-1, 2, 1)
    return Split(x_NTD, np.array(labels, dtype=np.int64))


def numbers(split):
    return split.x_NTD.reshape(-1, 2).copy().view("<u2").ravel().tolist()


def numbers_of_batch(batch):
    low, high = (batch.x_BT[:, :, 0] * 255).round().long().unbind(dim=1)
    return (low + 256 * high).tolist()


def assert_stratified(part, whole):
    """Each class to within one example of its share; each example with its own label."""
    exact = np.bincount(whole.label_N, minlength=5) * len(part.label_N) / len(whole.label_N)
    assert (np.abs(np.bincount(part.label_N, minlength=5) - exact) < 1).all()
    assert part.label_N.tolist() == [whole.label_N[number] for number in numbers(part)]
    assert len(set(numbers(part))) == len(part.label_N)


def test_bytes_become_the_floats_of_a_division_by_255():
    x_NTD = np.arange(256, dtype=np.uint8).reshape(1, 256, 1)
    expected = np.arange(256, dtype=np.float32) / np.float32(255)
    assert to_tensor(x_NTD).dtype == torch.float32
    assert np.array_equal(to_tensor(x_NTD).numpy().ravel(), expected)
    assert np.array_equal(to_tensor(expected.reshape(1, 256, 1)).numpy().ravel(), expected)


@given(labels=LABELS, seed=SEEDS, data=st.data())
def test_a_subset_has_the_exact_size_and_the_proportions_of_the_whole(labels, seed, data):
    whole = split_of(labels)
    num_examples = data.draw(st.integers(1, len(labels)))
    part = take_examples(whole, num_examples, seed=seed)
    assert len(part.label_N) == num_examples
    assert_stratified(part, whole)
    assert numbers(part) == numbers(take_examples(whole, num_examples, seed=seed))


@given(labels=LABELS, seed=SEEDS, fraction=st.floats(0, 0.99))
def test_holding_out_divides_the_examples_and_keeps_the_proportions_in_both(labels, seed, fraction):
    whole = split_of(labels)
    num_held_out = round(fraction * len(labels))
    if fraction > 0 and not 0 < num_held_out < len(labels):
        with pytest.raises(UsageError):
            hold_out(whole, fraction, seed=seed)
        return
    train, validation = hold_out(whole, fraction, seed=seed)
    assert len(validation.label_N) == num_held_out
    assert sorted(numbers(train) + numbers(validation)) == numbers(whole)
    assert_stratified(train, whole)
    if num_held_out:
        assert_stratified(validation, whole)


def test_another_seed_draws_other_examples():
    whole = split_of([0, 1] * 100)
    assert numbers(take_examples(whole, 50, seed=0)) != numbers(take_examples(whole, 50, seed=1))
    assert numbers(hold_out(whole, 0.5, seed=0)[1]) != numbers(hold_out(whole, 0.5, seed=1)[1])


@pytest.mark.parametrize("num_examples", [0, 5])
def test_a_subset_that_cannot_be_drawn_is_wrong_usage(assert_one_sentence, num_examples):
    with pytest.raises(UsageError) as error:
        take_examples(split_of([0, 1, 2, 3]), num_examples, seed=0)
    assert_one_sentence(error, f"train_examples is {num_examples}", "from 1 to 4")


@pytest.mark.parametrize("fraction", [0.01, 0.99])
def test_holding_out_nothing_or_everything_is_wrong_usage(assert_one_sentence, fraction):
    with pytest.raises(UsageError) as error:
        hold_out(split_of([0, 1, 2, 3]), fraction, seed=0)
    assert_one_sentence(error, f"validation_fraction is {fraction}", "of 4 examples")


@given(num_examples=st.integers(1, 300), batch_size=st.integers(1, 40), epoch=st.integers(0, 3), seed=SEEDS)
def test_every_example_appears_exactly_once_an_epoch(num_examples, batch_size, epoch, seed):
    split = split_of([number % 5 for number in range(num_examples)])
    batches = Batches(split, batch_size=batch_size, seed=seed)
    first = epoch * batches.steps_per_epoch
    seen = []
    for step in range(first, first + batches.steps_per_epoch):
        batch = batches.at(step, phase="train")
        assert batch.label_B.tolist() == [number % 5 for number in numbers_of_batch(batch)]
        assert 1 <= len(batch.label_B) <= batch_size
        seen += numbers_of_batch(batch)
    assert sorted(seen) == list(range(num_examples))


def test_a_batch_depends_on_seed_phase_and_step_alone():
    split = split_of([0] * 50)
    forward, backward = Batches(split, batch_size=8, seed=3), Batches(split, batch_size=8, seed=3)
    steps = [(phase, step) for step in range(20) for phase in ("pretrain", "train")]
    there = {key: numbers_of_batch(forward.at(key[1], phase=key[0])) for key in steps}
    back = {key: numbers_of_batch(backward.at(key[1], phase=key[0])) for key in reversed(steps)}
    assert there == back


@pytest.mark.parametrize(("seed", "phase", "step"), [(4, "train", 0), (3, "pretrain", 0), (3, "train", 1)])
def test_another_seed_phase_or_epoch_is_shuffled_anew(seed, phase, step):
    split = split_of([0] * 50)
    plain = numbers_of_batch(Batches(split, batch_size=50, seed=3).at(0, phase="train"))
    other = numbers_of_batch(Batches(split, batch_size=50, seed=seed).at(step, phase=phase))
    assert plain != other
    assert plain != list(range(50))


def test_evaluation_reads_every_example_in_order():
    split = split_of([1, 2, 3, 4, 0] * 2)
    batches = list(in_order(split, 4))
    assert [len(batch.label_B) for batch in batches] == [4, 4, 2]
    assert [number for batch in batches for number in numbers_of_batch(batch)] == list(range(10))
    assert torch.cat([batch.label_B for batch in batches]).tolist() == split.label_N.tolist()
    assert all(batch.first_B is None for batch in batches)
