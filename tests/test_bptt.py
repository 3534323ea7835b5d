"""Gradient windows: values of a plain LSTM, and gradients that reach exactly as far as they should."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from auxrnn import bptt
from auxrnn.bptt import GradientWindow
from auxrnn.models.cells.recurrence import GRID
from slow_reference import read as read_slowly
from tiny import make_encoder

B, T, D = 3, 2 * GRID + 5, 2


@pytest.fixture(params=[1, 2])
def encoder(request):
    return make_encoder(num_layers=request.param)


@pytest.fixture
def x_BTD():
    return torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)


def as_nn_lstm(encoder):
    """Give torch's own LSTM with the same weights, on embedded inputs."""
    cell = encoder.cell
    lstm = nn.LSTM(cell.weight_ih[0].shape[1], cell.hidden_size, cell.num_layers, batch_first=True).double()
    for layer in range(cell.num_layers):
        values = {"weight_ih": cell.weight_ih, "weight_hh": cell.weight_hh, "bias_ih": cell.bias}
        for name, parameters in values.items():
            getattr(lstm, f"{name}_l{layer}").data.copy_(parameters[layer])
        getattr(lstm, f"bias_hh_l{layer}").data.zero_()
    return lstm


def embed(encoder, x_BTD):
    return x_BTD @ encoder.embedding.weight_ED.T + encoder.embedding.bias_E


@pytest.mark.parametrize("window", [0, 1, 4, GRID, T - 1, T, T + 9, "full"])
def test_any_window_gives_the_values_of_a_plain_lstm(encoder, x_BTD, window):
    _, (h_LBH, c_LBH) = as_nn_lstm(encoder)(embed(encoder, x_BTD))
    state = bptt.final_states(encoder, x_BTD, window=window)
    torch.testing.assert_close(state.h_LBH, h_LBH, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(state.c_LBH, c_LBH, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("window", [T, "full"])
def test_a_full_window_gives_the_gradients_of_a_plain_lstm(encoder, x_BTD, window):
    lstm = as_nn_lstm(encoder)
    _, (h_LBH, c_LBH) = lstm(embed(encoder, x_BTD))
    (expected,) = torch.autograd.grad((h_LBH.sin() + c_LBH.cos()).sum(), x_BTD)
    state = bptt.final_states(encoder, x_BTD, window=window)
    (actual,) = torch.autograd.grad((state.h_LBH.sin() + state.c_LBH.cos()).sum(), x_BTD)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("window", [1, 4, GRID + 1, T - 1, T])
def test_gradient_reaches_exactly_the_last_steps(encoder, x_BTD, window):
    bptt.final_states(encoder, x_BTD, window=window).h_LBH.sum().backward()
    reached_T = x_BTD.grad.abs().sum(dim=(0, 2)) > 0
    assert reached_T.tolist() == [t >= T - window for t in range(T)]


def test_window_0_leaves_the_encoder_without_gradient(encoder, x_BTD):
    state = bptt.final_states(encoder, x_BTD, window=0)
    assert not state.h_LBH.requires_grad
    assert not state.c_LBH.requires_grad


@pytest.mark.parametrize("window", [0, 1, 5, 20, "full"])
def test_states_at_places_equal_the_slow_reference_in_values_and_gradients(encoder, x_BTD, window):
    row_M = torch.tensor([0, 2, 2, 1, 0, 1])
    column_M = torch.tensor([0, T - 1, GRID, GRID - 1, 7, -1])
    (state,) = bptt.states_at(encoder, x_BTD, [GradientWindow(row_M, column_M, window)])
    parameters = [x_BTD, *encoder.parameters()]
    loss = torch.zeros((), dtype=torch.float64)
    for m, (row, column) in enumerate(zip(row_M.tolist(), column_M.tolist(), strict=True)):
        expected = read_slowly(encoder, x_BTD[row], num_steps=column + 1, window=window)
        torch.testing.assert_close(state.h_LBH[:, m], torch.stack([h for h, _ in expected]), rtol=1e-11, atol=1e-12)
        torch.testing.assert_close(state.c_LBH[:, m], torch.stack([c for _, c in expected]), rtol=1e-11, atol=1e-12)
        loss = loss + (m + 1) * sum((h.sin() + c.cos()).sum() for h, c in expected)
    if window == 0:
        assert not state.h_LBH.requires_grad
        return
    weight_M1 = torch.arange(1, 7, dtype=torch.float64)[:, None]
    actual = torch.autograd.grad((weight_M1 * (state.h_LBH.sin() + state.c_LBH.cos())).sum(), parameters)
    for ours, theirs in zip(actual, torch.autograd.grad(loss, parameters), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("first_window", "second_window"), [(3, 7), (0, "full"), ("full", 4), ("full", "full")])
def test_readings_made_together_equal_readings_made_alone(encoder, x_BTD, first_window, second_window):
    anchors = GradientWindow(torch.tensor([0, 1, 2, 2]), torch.tensor([3, 20, 21, 36]), first_window)
    readings = [anchors, bptt.final_window(x_BTD, window=second_window)]
    together = bptt.states_at(encoder, x_BTD, readings)
    for reading, state in zip(readings, together, strict=True):
        (alone,) = bptt.states_at(encoder, x_BTD, [reading])
        torch.testing.assert_close(state, alone, rtol=1e-11, atol=1e-12)
        if reading.window != 0:
            (ours,) = torch.autograd.grad(state.c_LBH.sum(), x_BTD, retain_graph=True)
            (theirs,) = torch.autograd.grad(alone.c_LBH.sum(), x_BTD)
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    window=st.one_of(st.integers(0, 45), st.just("full")),
    num_layers=st.integers(1, 2),
)
def test_rows_that_begin_late_equal_sequences_of_their_own(lengths, window, num_layers):
    encoder, longest = make_encoder(num_layers=num_layers), max(lengths)
    x_BTD = torch.randn(len(lengths), longest, D, dtype=torch.float64, requires_grad=True)
    first_B = torch.tensor([longest - length for length in lengths])
    together = bptt.final_states(encoder, x_BTD, window=window, first_B=first_B)
    alone = [
        bptt.final_states(encoder, x_BTD[b : b + 1, longest - length :], window=window)
        for b, length in enumerate(lengths)
    ]
    torch.testing.assert_close(together.h_LBH, torch.cat([s.h_LBH for s in alone], dim=1), rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(together.c_LBH, torch.cat([s.c_LBH for s in alone], dim=1), rtol=1e-11, atol=1e-12)
    if window != 0:
        parameters = [x_BTD, *encoder.parameters()]
        ours = torch.autograd.grad(together.h_LBH.sin().sum(), parameters)
        theirs = torch.autograd.grad(sum(s.h_LBH.sin().sum() for s in alone), parameters)
        for our, their in zip(ours, theirs, strict=True):
            torch.testing.assert_close(our, their, rtol=1e-9, atol=1e-11)


@settings(max_examples=30, deadline=None)
@given(pieces=st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_reading_in_pieces_equals_reading_at_once(pieces):
    encoder = make_encoder()
    x_BTD = torch.randn(2, sum(pieces), D, dtype=torch.float64)
    state = encoder.initial_state(2)
    for part in x_BTD.split(pieces, dim=1):
        state = encoder(part, state).state
    torch.testing.assert_close(state, bptt.final_states(encoder, x_BTD, window="full"), rtol=1e-11, atol=1e-12)


def test_single_precision_equals_double_precision_on_late_rows():
    encoder = make_encoder(hidden_size=9, num_layers=2)
    x_BTD = torch.randn(4, 60, D, dtype=torch.float64)
    first_B = torch.tensor([0, 13, 59, 31])
    expected = bptt.final_states(encoder, x_BTD, window=20, first_B=first_B)
    actual = bptt.final_states(encoder.float(), x_BTD.float(), window=20, first_B=first_B)
    torch.testing.assert_close(actual.h_LBH.double(), expected.h_LBH, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(actual.c_LBH.double(), expected.c_LBH, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [0, 1, 4, T, "full"])
@pytest.mark.parametrize("stretch", [3, GRID, 256])
def test_the_mean_of_outputs_is_that_of_a_plain_lstm_and_reaches_exactly_the_window(
    encoder, x_BTD, window, stretch, monkeypatch
):
    monkeypatch.setattr(bptt, "CHUNK", stretch)
    h_BTH, (h_LBH, _) = as_nn_lstm(encoder)(embed(encoder, x_BTD))
    state, mean_BH = bptt.final_states_and_mean(encoder, x_BTD, window=window)
    torch.testing.assert_close(mean_BH, h_BTH.mean(dim=1), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(state.h_LBH, h_LBH, rtol=1e-12, atol=1e-12)
    if window == 0:
        assert not mean_BH.requires_grad
        return
    mean_BH.sum().backward()
    reached_T = x_BTD.grad.abs().sum(dim=(0, 2)) > 0
    assert reached_T.tolist() == [window == "full" or t >= T - window for t in range(T)]


def test_the_mean_of_outputs_passes_over_padding(encoder, x_BTD):
    first_B = torch.tensor([0, 7, T - 1])
    _, mean_BH = bptt.final_states_and_mean(encoder, x_BTD, window="full", first_B=first_B)
    for row, first in enumerate(first_B.tolist()):
        _, alone_BH = bptt.final_states_and_mean(encoder, x_BTD[row : row + 1, first:], window="full")
        torch.testing.assert_close(mean_BH[row], alone_BH[0], rtol=1e-12, atol=1e-12)
