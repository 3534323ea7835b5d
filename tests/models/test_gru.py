"""The GRU equals torch's, in values and gradients, and starts as it says."""

import pytest
import torch
from torch import nn

from auxrnn.models.cells.gru import GRU

B, T, NUM_INPUTS, H = 4, 9, 3, 5


def make_gru(num_layers):
    cell = GRU(NUM_INPUTS, hidden_size=H, num_layers=num_layers).double()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return cell


def pair_parameters(cell, gru):
    """Give our parameters beside torch's."""
    lists = {"weight_ih": cell.weight_ih, "weight_hh": cell.weight_hh, "bias_ih": cell.bias, "bias_hh": cell.bias_hh}
    return [
        (parameters[layer], getattr(gru, f"{name}_l{layer}"))
        for name, parameters in lists.items()
        for layer in range(cell.num_layers)
    ]


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_a_run_equals_torch_in_values_and_gradients(num_layers):
    cell, gru = make_gru(num_layers), nn.GRU(NUM_INPUTS, H, num_layers, batch_first=True).double()
    pairs = pair_parameters(cell, gru)
    for ours, theirs in pairs:
        theirs.data.copy_(ours)
    x_BTI = torch.randn(B, T, NUM_INPUTS, dtype=torch.float64, requires_grad=True)
    start_LBH = torch.randn(num_layers, B, H, dtype=torch.float64, requires_grad=True)
    run = cell(x_BTI, cell.initial_state(B)._replace(h_LBH=start_LBH))
    h_BTH, h_LBH = gru(x_BTI, start_LBH)
    torch.testing.assert_close((run.h_BTH, run.state.h_LBH), (h_BTH, h_LBH), rtol=1e-12, atol=1e-13)
    our_parameters, their_parameters = zip(*pairs, strict=True)
    loss, expected_loss = run.h_BTH.sin().sum() + run.state.h_LBH.cos().sum(), h_BTH.sin().sum() + h_LBH.cos().sum()
    ours = torch.autograd.grad(loss, [x_BTI, start_LBH, *our_parameters])
    theirs = torch.autograd.grad(expected_loss, [x_BTI, start_LBH, *their_parameters])
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_it_has_as_many_parameters_as_torch():
    ours, theirs = GRU(7, hidden_size=11, num_layers=2), nn.GRU(7, 11, 2)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


def test_weights_start_glorot_uniform_and_biases_zero():
    cell = GRU(30, hidden_size=40, num_layers=2)
    for weight in [*cell.weight_ih, *cell.weight_hh]:
        bound = (6 / sum(weight.shape)) ** 0.5
        assert 0.99 * bound < float(weight.detach().abs().max()) <= bound
    assert not any(bool(bias_G.any()) for bias_G in [*cell.bias, *cell.bias_hh])


def test_chrono_starts_update_gates_at_the_log_of_uniform_spans():
    num_units, num_steps = 300, 100
    cell = GRU(1, hidden_size=num_units, num_layers=2)
    cell.initialize_gates("chrono", longest=num_steps)
    for bias_G, bias_hh_G in zip(cell.bias, cell.bias_hh, strict=True):
        reset_H, update_H, new_H = bias_G.detach().reshape(3, num_units)
        assert not reset_H.any()
        assert not new_H.any()
        assert not bias_hh_G.any()
        span_H = update_H.exp().double().sort().values
        assert 1 <= float(span_H[0]) <= float(span_H[-1]) <= num_steps - 1 + 1e-3
        # Kolmogorov-Smirnov against U(1, T-1); 1.95 / sqrt(n) is the 99.9% quantile.
        uniform_H = (span_H - 1) / (num_steps - 2)
        assert float((uniform_H - (torch.arange(num_units) + 0.5) / num_units).abs().max()) < 1.95 / num_units**0.5


def test_after_chrono_a_blank_unit_forgets_at_the_rate_of_its_span():
    """A unit with bias log(s) keeps s / (s + 1) of its state a step: torch's update gate keeps, it does not write."""
    cell = GRU(1, hidden_size=6, num_layers=1).double()
    for weight in [*cell.weight_ih, *cell.weight_hh]:
        nn.init.zeros_(weight)
    cell.initialize_gates("chrono", longest=50)
    state = cell.initial_state(1)._replace(h_LBH=torch.ones(1, 1, 6, dtype=torch.float64))
    after_H = cell(torch.zeros(1, 1, 1, dtype=torch.float64), state).state.h_LBH[0, 0]
    span_H = cell.bias[0][6:12].exp()
    torch.testing.assert_close(after_H, span_H / (span_H + 1), rtol=1e-12, atol=0)


@pytest.mark.parametrize("num_steps", [1, 2])
def test_chrono_of_the_shortest_sequences_remembers_one_step(num_steps):
    cell = GRU(1, hidden_size=4, num_layers=1)
    cell.initialize_gates("chrono", longest=num_steps)
    assert not cell.bias[0].any()


def test_starting_with_forget_one_sets_update_gates_alone():
    cell = GRU(1, hidden_size=4, num_layers=2)
    cell.initialize_gates("forget-one", longest=1)
    for bias_G, bias_hh_G in zip(cell.bias, cell.bias_hh, strict=True):
        assert bias_G.reshape(3, 4).tolist() == [[0.0] * 4, [1.0] * 4, [0.0] * 4]
        assert not bias_hh_G.any()


def test_uniform_gates_keep_evenly_spread_parts_of_their_state():
    cell = GRU(1, hidden_size=300, num_layers=1)
    cell.initialize_gates("uniform", longest=1)
    reset_H, update_H, new_H = cell.bias[0].detach().reshape(3, 300)
    assert not reset_H.any()
    assert not new_H.any()
    kept_H = update_H.sigmoid().sort().values
    assert float((kept_H - (torch.arange(300) + 0.5) / 300).abs().max()) < 1.95 / 300**0.5
