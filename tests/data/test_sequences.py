"""Epochs hold each example once, a batch depends on its numbers alone, and lengths are bucketed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from auxrnn.config import DataConfig
from auxrnn.data.datasets import load
from auxrnn.data.sequences import (
    Batches,
    Encoding,
    Flat,
    Split,
    by_length,
    draw_batches,
    from_array,
    in_order,
    to_batch,
)
from auxrnn.structs import Draws

SEEDS = st.integers(0, 2**31)


def split_of(labels):
    """A split whose example `i` holds the number `i` in two bytes."""
    x_NTD = np.arange(len(labels), dtype="<u2").view(np.uint8).reshape(-1, 2, 1)
    return from_array(x_NTD, np.array(labels, dtype=np.int64))


def numbers_of_batch(batch):
    low, high = (batch.x_BT[:, :, 0] * 255).round().long().unbind(dim=1)
    return (low + 256 * high).tolist()


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=200), batch_size=st.integers(1, 9), seed=SEEDS)
def test_batches_of_different_lengths_still_hold_every_example_once(lengths, batch_size, seed):
    length_N = np.array(lengths)
    batches = draw_batches(length_N, batch_size=batch_size, draws=Draws(seed, "train", 0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch_size)
    assert max(len(batch) for batch in batches) <= batch_size


def test_bucketing_keeps_padding_low_and_the_order_of_lengths_random():
    rng = np.random.default_rng(0)
    length_N = np.clip(rng.gamma(3, 100, 12_000).astype(np.int64), 10, 1014)
    batches = draw_batches(length_N, batch_size=128, draws=Draws(0, "train", 0))
    padded = sum(len(batch) * int(length_N[batch].max()) for batch in batches)
    assert padded < 1.1 * length_N.sum()
    means = [length_N[batch].mean() for batch in batches]
    # Neighbors in time have nothing to do with each other: a curriculum would show as a correlation.
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.4


def test_padding_on_the_real_dbpedia_is_under_ten_percent(shared_dbpedia):
    dataset = load(DataConfig(data="dbpedia", data_dir=shared_dbpedia))
    length_N = np.minimum(np.diff(dataset.flat.begin_N1), 1014)[dataset.table.part_N == 0]
    batches = draw_batches(length_N, batch_size=128, draws=Draws(0, "train", 0))
    padded = sum(len(batch) * int(length_N[batch].max()) for batch in batches)
    assert length_N.sum() > 0.9 * padded


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


def sequences_of(lengths):
    """Sequence i holds the numbers 100 i, 100 i + 1, ... as floats."""
    begins = np.cumsum([0, *lengths])
    values = np.concatenate([100 * row + np.arange(length) for row, length in enumerate(lengths)])
    flat = Flat(values.astype(np.float32)[:, None], begins)
    rows = np.arange(len(lengths))
    return Split(flat, rows, rows % 3, Encoding(lambda value: value))


def test_rows_end_together_and_say_where_they_begin():
    batch = to_batch(sequences_of([3, 1, 2]))
    assert batch.x_BT[:, :, 0].tolist() == [[0, 1, 2], [0, 0, 100], [0, 200, 201]]
    assert batch.first_B.tolist() == [0, 2, 1]
    assert batch.length_B.tolist() == [3, 1, 2]


def test_a_longest_length_keeps_the_start_also_when_it_is_read_backward():
    split = sequences_of([5, 2])
    cut = split._replace(encoding=split.encoding._replace(max_length=3))
    assert to_batch(cut).x_BT[:, :, 0].tolist() == [[0, 1, 2], [0, 100, 101]]
    backward = split._replace(encoding=split.encoding._replace(max_length=3, is_backward=True))
    assert to_batch(backward).x_BT[:, :, 0].tolist() == [[2, 1, 0], [0, 101, 100]]
    assert np.concatenate(list(cut.values())).ravel().tolist() == [0, 1, 2, 100, 101]


def test_reading_by_length_sorts_and_leaves_equal_lengths_alone():
    assert by_length(sequences_of([3, 1, 2])).tolist() == [1, 2, 0]
    assert by_length(sequences_of([4] * 9)).tolist() == list(range(9))
