"""What series are scaled by does not depend on how they come, and a channel without change is not blown up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from auxrnn.data.formats import SeriesFormat, fit_scale

DOUBLE = 2.0**-52
"""The distance from 1 to the next double."""
BLOCKS = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=2, max_side=20),
    elements=st.floats(-(2.0**126), 2.0**126, width=32),
)


def fit(*blocks, num_channels=None):
    return fit_scale(SeriesFormat(num_channels or blocks[0].shape[1], max_length=5), blocks)


@given(value_KD=BLOCKS, cuts=st.lists(st.integers(0, 20), max_size=5))
def test_any_division_into_blocks_gives_mean_and_deviation(value_KD, cuts):
    found = fit(*np.split(value_KD, sorted(cuts)))
    double_KD = value_KD.astype(np.float64)
    size_D = np.abs(double_KD).max(axis=0)
    # Each of at most 20 values, and of 6 blocks, may round a sum once or twice.
    np.testing.assert_array_less(np.abs(found.mean - double_KD.mean(axis=0)), 64 * DOUBLE * size_D + 1e-300)
    is_changing_D = (value_KD != value_KD[0]).any(axis=0)
    expected_D = np.where(is_changing_D, double_KD.std(axis=0), 1)
    np.testing.assert_array_less(np.abs(found.deviation - expected_D), 64 * DOUBLE * (size_D + expected_D) + 1e-300)
    assert found.max_length == 5


@given(
    value=st.floats(-(2.0**126), 2.0**126, width=32),
    lengths=st.lists(st.integers(0, 50), min_size=1, max_size=5).filter(any),
)
def test_a_channel_that_never_changes_is_moved_to_zero_exactly(value, lengths):
    found = fit(*(np.full((length, 1), value, dtype=np.float32) for length in lengths))
    assert found.mean == (value,)
    assert found.deviation == (1.0,)


def test_a_small_change_of_a_large_value_counts():
    found = fit(np.array([[2.0**100], [np.nextafter(np.float32(2.0**100), np.float32(np.inf))]], dtype=np.float32))
    assert found.deviation == (2.0**76,)
    found = fit(np.array([[0.0], [2.0**-149]], dtype=np.float32))
    assert found.deviation == (2.0**-150,)


def test_channels_are_counted_apart():
    value_KD = np.array([[1, 5, 0], [3, 5, 4]], dtype=np.float32)
    assert fit(value_KD) == SeriesFormat(3, (2.0, 5.0, 2.0), (1.0, 1.0, 2.0), max_length=5)


@pytest.mark.parametrize("blocks", [[], [np.zeros((0, 2), dtype=np.float32)]])
def test_without_any_step_nothing_is_scaled(blocks):
    assert fit(*blocks, num_channels=2) == SeriesFormat(2, (0.0, 0.0), (1.0, 1.0), max_length=5)
