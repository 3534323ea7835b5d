"""What a constant prediction costs: the unit of a normalized auxiliary loss."""

import numpy as np
import pytest

from auxrnn.data import formats
from auxrnn.data.formats import measure_constant_loss
from auxrnn.data.sequences import Encoding, Flat, Split, from_array


def make_tokens(token_K, num_sequences):
    flat = Flat(token_K, np.linspace(0, len(token_K), num_sequences + 1).astype(np.int64))
    row_N = np.arange(num_sequences)
    return Split(flat, row_N, row_N, Encoding(lambda value: value.astype(np.int64)))


def test_vectors_cost_the_sum_of_the_variances_of_their_channels():
    x_NTD = np.random.default_rng(0).normal([5.0, -2.0], [3.0, 0.5], size=(40, 30, 2)).astype(np.float32)
    expected = x_NTD.reshape(-1, 2).astype(np.float64).var(axis=0).sum()
    assert measure_constant_loss(from_array(x_NTD, np.zeros(40, np.int64))) == pytest.approx(expected, rel=1e-6)


def test_tokens_cost_the_entropy_of_their_frequencies():
    # Half, a quarter and two eighths: 1.75 bits.
    token_K = np.repeat([0, 3, 4, 9], [400, 200, 100, 100])
    assert measure_constant_loss(make_tokens(token_K, 8)) == pytest.approx(1.75 * np.log(2), rel=1e-9)


def test_data_that_never_changes_costs_one_so_that_it_can_be_divided_by():
    assert measure_constant_loss(from_array(np.full((3, 5, 1), 7.0, np.float32), np.zeros(3, np.int64))) == 1.0
    assert measure_constant_loss(make_tokens(np.zeros(10, np.int64), 2)) == 1.0


def test_many_examples_are_measured_on_some_that_are_spread_over_all(monkeypatch):
    monkeypatch.setattr(formats, "NUM_MEASURED", 3)
    x_NTD = np.arange(5, dtype=np.float32).repeat(4).reshape(5, 4, 1)
    expected = np.array([0.0, 2.0, 4.0]).var()
    assert measure_constant_loss(from_array(x_NTD, np.zeros(5, np.int64))) == pytest.approx(expected)
