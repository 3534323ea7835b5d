"""Values that are missing, and steps that are joined: what a network reads, and what is never a target."""

import numpy as np
import pytest
import torch

from auxrnn.config import DataConfig
from auxrnn.data.datasets import load
from auxrnn.data.formats import SeriesFormat, fit_scale, make_encoding, measure_constant_loss
from auxrnn.data.images import to_unit
from auxrnn.data.sequences import Encoding, Flat, Split, by_length, from_array, to_batch
from auxrnn.data.splits import divide, make_splits
from auxrnn.errors import RunError, UsageError

NAN = np.nan


def split_of(*sequences, steps_per_input=1, has_mask=False, max_length=None):
    """Make a split of sequences `[T, D]` that are read as they are."""
    begins, rows = np.cumsum([0, *map(len, sequences)]), np.arange(len(sequences))
    encoding = Encoding(np.array, max_length, steps_per_input=steps_per_input, has_mask=has_mask)
    return Split(Flat(np.concatenate(sequences).astype(np.float32), begins), rows, rows, encoding)


def test_steps_are_joined_from_the_beginning_and_the_last_input_is_filled_up():
    split = split_of([[1, 2], [3, 4], [5, 6]], [[7, 8]], steps_per_input=2)
    batch = to_batch(split)
    assert (split.length_N.tolist(), split.num_steps_N.tolist()) == ([2, 1], [3, 1])
    assert batch.first_B.tolist() == [0, 1]
    assert batch.x_BT[0].tolist() == [[1, 2, 3, 4], [5, 6, 0, 0]]
    assert batch.x_BT[1, 1].tolist() == [7, 8, 0, 0]
    assert batch.is_there_BTD[0].tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.is_there_BTD[1, 1].tolist() == [True, True, False, False]


def test_where_all_is_there_nothing_says_so():
    assert to_batch(split_of([[1, 2], [3, 4]], steps_per_input=2)).is_there_BTD is None
    assert to_batch(split_of([[1, 2]], has_mask=True)).x_BT.tolist() == [[[1, 2, 1, 1]]]
    assert to_batch(split_of([[1, 2]], has_mask=True)).is_there_BTD is None


def test_gaps_are_zeros_with_a_mask():
    batch = to_batch(split_of([[1, NAN], [NAN, 4], [5, 6]], steps_per_input=2, has_mask=True))
    assert batch.x_BT.tolist() == [[[1, 0, 0, 4, 1, 0, 0, 1], [5, 6, 0, 0, 1, 1, 0, 0]]]
    assert batch.is_there_BTD.tolist() == [[[True, False, False, True], [True, True, False, False]]]
    assert batch.head(1).to(torch.device("cpu")).is_there_BTD is not None


def test_the_length_that_is_read_counts_steps_and_not_inputs():
    split = split_of([[1], [2], [3], [4]], steps_per_input=2, max_length=3)
    assert to_batch(split).x_BT.tolist() == [[[1, 2], [3, 0]]]


def test_a_batch_reads_each_sequence_as_it_is_read_alone():
    rng = np.random.default_rng(0)
    split = split_of(*(rng.standard_normal((size, 3)) for size in (5, 12, 1, 7)), steps_per_input=4)
    batch = to_batch(split.select(by_length(split)))
    for row, index in enumerate(by_length(split)):
        alone, first = to_batch(split.select(np.array([index]))), int(batch.first_B[row])
        assert torch.equal(batch.x_BT[row, first:], alone.x_BT[0])
        there = (
            torch.ones_like(alone.x_BT[0], dtype=torch.bool) if alone.is_there_BTD is None else alone.is_there_BTD[0]
        )
        assert torch.equal(batch.is_there_BTD[row, first:], there)


def test_bytes_of_images_are_joined_too():
    split = from_array(np.array([[[255], [0], [51]]], np.uint8), np.zeros(1, np.int64))
    batch = to_batch(split._replace(encoding=Encoding(to_unit, steps_per_input=2)))
    torch.testing.assert_close(batch.x_BT, torch.tensor([[[1.0, 0.0], [0.2, 0.0]]]))
    assert batch.is_there_BTD.tolist() == [[[True, True], [True, False]]]


def test_mean_and_deviation_are_of_what_is_there():
    rng = np.random.default_rng(0)
    value_KD = (rng.standard_normal((500, 4)) * [1, 9, 2, 1] + [0, 1000, 5, 0]).astype(np.float32)
    value_KD[rng.random((500, 4)) < 0.3] = NAN
    value_KD[:, 3] = NAN
    form = fit_scale(SeriesFormat(4), [value_KD[:20], value_KD[20:21], value_KD[21:]])
    kept_KD = value_KD[:, :3].astype(np.float64)
    np.testing.assert_allclose(form.mean, [*np.nanmean(kept_KD, axis=0), 0], rtol=1e-12)
    np.testing.assert_allclose(form.deviation, [*np.nanstd(kept_KD, axis=0), 1], rtol=1e-12)
    scaled_KD = make_encoding(form).encode(value_KD)
    np.testing.assert_array_equal(np.isnan(scaled_KD), np.isnan(value_KD))


def test_the_constant_loss_is_the_variance_of_what_is_there_of_each_value_of_an_input():
    first, second = [[1.0], [2], [3], [4], [5]], [[2.0], [NAN], [9]]
    split = split_of(first, second, steps_per_input=2, has_mask=True)
    expected = np.var([1, 3, 5, 2, 9]) + np.var([2, 4])
    assert measure_constant_loss(split) == pytest.approx(expected, rel=1e-6)


def save_with_a_gap(path):
    x_NTD = np.arange(40, dtype=np.float32).reshape(10, 4, 1)
    x_NTD[3, 2] = x_NTD[7, 0] = x_NTD[7, 1] = NAN
    np.savez(path, x=x_NTD, y=np.arange(10) % 2)
    return x_NTD


def test_the_cache_keeps_gaps_and_counts_them(tmp_path):
    x_NTD = save_with_a_gap(tmp_path / "data.npz")
    for _first_and_then_from_the_cache in range(2):
        dataset = load(DataConfig(data=str(tmp_path / "data.npz")))
        np.testing.assert_array_equal(dataset.flat.value_K, x_NTD.reshape(-1, 1))
        assert (dataset.facts.num_missing, dataset.facts.num_gappy) == (3, 2)
        assert dataset.facts.describe_missing().startswith("missing values: 3, in 2 sequences; ")


def test_a_network_without_masks_is_given_no_data_with_gaps(tmp_path):
    save_with_a_gap(tmp_path / "data.npz")
    dataset = load(DataConfig(data=str(tmp_path / "data.npz")))
    division = divide(dataset.table, DataConfig(data=""), seed=0)
    with pytest.raises(UsageError, match="has gaps, and the network was trained without any; fill them in"):
        make_splits(dataset, division, SeriesFormat(1, (0.0,), (1.0,)))
    assert make_splits(dataset, division, SeriesFormat(1, (0.0,), (1.0,), has_mask=True)).train.num_examples == 8


def test_gaps_can_be_refused_by_their_place(tmp_path, assert_one_sentence):
    save_with_a_gap(tmp_path / "data.npz")
    load(DataConfig(data=str(tmp_path / "data.npz")))
    with pytest.raises(RunError) as error:
        load(DataConfig(data=str(tmp_path / "data.npz"), missing="refuse"))
    assert_one_sentence(
        error, "data.npz, x, example 3 has nan at step 2, channel 0; fill it in, or give --missing mask"
    )
