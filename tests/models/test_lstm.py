"""The LSTM equals torch's, in values and gradients, and idle columns of a row leave no trace at all."""

import pytest
import torch
from torch import nn

from auxrnn.models.cells.lstm import LSTM
from auxrnn.structs import RNNState

B, T, NUM_INPUTS, H = 4, 9, 3, 5
BEGIN_B = torch.tensor([0, 3, 8, 9])
END_B = torch.tensor([9, 4, 1, 0])
MIDDLE_BEGIN_B, MIDDLE_END_B = torch.tensor([-4, 2, 5, 12]), torch.tensor([9, 6, 6, 3])


def make_lstm(num_layers=2, dtype=torch.float64):
    """Build an LSTM whose biases are not zero, so that an idle step that is merely blank would be noticed."""
    cell = LSTM(NUM_INPUTS, hidden_size=H, num_layers=num_layers)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return cell.to(dtype)


def as_nn_lstm(cell):
    lstm = nn.LSTM(NUM_INPUTS, H, cell.num_layers, batch_first=True).double()
    for layer in range(cell.num_layers):
        for name, parameters in (("weight_ih", cell.weight_ih), ("weight_hh", cell.weight_hh), ("bias_ih", cell.bias)):
            getattr(lstm, f"{name}_l{layer}").data.copy_(parameters[layer])
        getattr(lstm, f"bias_hh_l{layer}").data.zero_()
    return lstm


def make_state(num_layers, dtype=torch.float64, requires_grad=True):
    return RNNState(*(torch.randn(num_layers, B, H, dtype=dtype, requires_grad=requires_grad) for _ in range(2)))


def measure(h_BTH, h_LBH, c_LBH):
    """Turn all that a run gives into one number that depends on each entry in its own way."""
    return sum(
        (part * torch.arange(1, part.numel() + 1).reshape(part.shape).sin()).sum() for part in (h_BTH, h_LBH, c_LBH)
    )


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_a_run_equals_torch_in_values_and_gradients(num_layers):
    cell, state = make_lstm(num_layers), make_state(num_layers)
    lstm, x_BTI = as_nn_lstm(cell), torch.randn(B, T, NUM_INPUTS, dtype=torch.float64, requires_grad=True)
    run = cell(x_BTI, state)
    h_BTH, (h_LBH, c_LBH) = lstm(x_BTI, tuple(state))
    torch.testing.assert_close((run.h_BTH, *run.state), (h_BTH, h_LBH, c_LBH), rtol=1e-12, atol=1e-13)
    inputs = [x_BTI, *state]
    ours = torch.autograd.grad(measure(run.h_BTH, *run.state), [*inputs, *cell.weight_ih, *cell.weight_hh, *cell.bias])
    names = [f"{name}_l{layer}" for name in ("weight_ih", "weight_hh", "bias_ih") for layer in range(num_layers)]
    weights = [getattr(lstm, name) for name in names]
    theirs = torch.autograd.grad(measure(h_BTH, h_LBH, c_LBH), [*inputs, *weights])
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def run_idle(cell, x_BTI, state, begin_B, end_B):
    """Give the final state and all gradients of a run whose loss looks at the final state alone."""
    x_BTI = x_BTI.clone().requires_grad_()
    run = cell(x_BTI, state, begin_B=begin_B, end_B=end_B)
    loss = measure(x_BTI.new_zeros(1), *run.state)
    return run.state, torch.autograd.grad(loss, [x_BTI, *cell.parameters()])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("begin_B", "end_B"), [(BEGIN_B, None), (None, END_B), (MIDDLE_BEGIN_B, MIDDLE_END_B)])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_what_stands_in_idle_columns_changes_not_one_bit(num_layers, begin_B, end_B, dtype):
    cell, x_BTI = make_lstm(num_layers, dtype), torch.randn(B, T, NUM_INPUTS, dtype=dtype)
    state = make_state(num_layers, dtype, requires_grad=False) if begin_B is None else cell.initial_state(B)
    step_1T = torch.arange(T)[None]
    is_late_BT = step_1T < (0 if begin_B is None else begin_B[:, None])
    idle_BT = is_late_BT | (step_1T >= (T if end_B is None else end_B[:, None]))
    other_BTI = torch.where(idle_BT[:, :, None], 30 * torch.randn_like(x_BTI), x_BTI)
    first_state, first_grads = run_idle(cell, x_BTI, state, begin_B, end_B)
    other_state, other_grads = run_idle(cell, other_BTI, state, begin_B, end_B)
    assert all(torch.equal(one, two) for one, two in zip(first_state, other_state, strict=True))
    assert all(torch.equal(one, two) for one, two in zip(first_grads, other_grads, strict=True))
    assert not first_grads[0][idle_BT].any()
    assert bool(first_grads[0][~idle_BT].any(dim=1).all())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("side", ["late", "early"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_late_and_early_rows_equal_runs_of_their_own_steps(num_layers, side, dtype, tolerance):
    cell, x_BTI = make_lstm(num_layers, dtype), torch.randn(B, T, NUM_INPUTS, dtype=dtype)
    is_late = side == "late"
    state = cell.initial_state(B) if is_late else make_state(num_layers, dtype, requires_grad=False)
    begin_B, end_B = (BEGIN_B, None) if is_late else (None, END_B)
    together, grads = run_idle(cell, x_BTI, state, begin_B, end_B)
    alone = [
        cell(x_BTI[b : b + 1, slice(BEGIN_B[b], T) if is_late else slice(0, END_B[b])], state.select(torch.tensor([b])))
        for b in range(B)
    ]
    h_LBH, c_LBH = (torch.cat([run.state[part] for run in alone], dim=1) for part in range(2))
    torch.testing.assert_close(tuple(together), (h_LBH, c_LBH), rtol=tolerance, atol=tolerance)
    expected = torch.autograd.grad(measure(x_BTI.new_zeros(1), h_LBH, c_LBH), list(cell.parameters()))
    torch.testing.assert_close(grads[1:], expected, rtol=10 * tolerance, atol=10 * tolerance)


def test_a_row_without_any_step_keeps_its_state():
    cell, state = make_lstm(), make_state(2, requires_grad=False)
    x_BTI = torch.randn(B, T, NUM_INPUTS, dtype=torch.float64)
    after = cell(x_BTI, state, end_B=torch.zeros(B, dtype=torch.long)).state
    assert torch.equal(after.h_LBH, state.h_LBH)
    assert torch.equal(after.c_LBH, state.c_LBH)


def test_a_run_of_no_columns_gives_back_its_state_and_no_outputs():
    cell, state = make_lstm(), make_state(2)
    run = cell(torch.randn(B, 0, NUM_INPUTS, dtype=torch.float64), state)
    assert run.state is state
    assert run.h_BTH.shape == (B, 0, H)


def test_weights_start_glorot_uniform_and_biases_zero_but_the_forget_gates():
    cell = LSTM(30, hidden_size=40, num_layers=2)
    for weight in [*cell.weight_ih, *cell.weight_hh]:
        bound = (6 / sum(weight.shape)) ** 0.5
        assert 0.99 * bound < float(weight.detach().abs().max()) <= bound
    for bias_G in cell.bias:
        assert bias_G.reshape(4, 40).tolist() == [[0.0] * 40, [1.0] * 40, [0.0] * 40, [0.0] * 40]


def test_chrono_starts_forget_gates_at_the_log_of_uniform_spans_and_input_gates_at_their_negative():
    num_units, num_steps = 300, 100
    cell = LSTM(1, hidden_size=num_units, num_layers=2)
    cell.initialize_gates("chrono", longest=num_steps)
    for bias_G in cell.bias:
        input_H, forget_H, cell_H, output_H = bias_G.detach().reshape(4, num_units)
        assert torch.equal(input_H, -forget_H)
        assert not cell_H.any()
        assert not output_H.any()
        span_H = forget_H.exp().double().sort().values
        assert 1 <= float(span_H[0]) <= float(span_H[-1]) <= num_steps - 1 + 1e-3
        # Kolmogorov-Smirnov against U(1, T-1); 1.95 / sqrt(n) is the 99.9% quantile.
        uniform_H = (span_H - 1) / (num_steps - 2)
        assert float((uniform_H - (torch.arange(num_units) + 0.5) / num_units).abs().max()) < 1.95 / num_units**0.5


@pytest.mark.parametrize("num_steps", [1, 2])
def test_chrono_of_the_shortest_sequences_remembers_one_step(num_steps):
    cell = LSTM(1, hidden_size=4, num_layers=1)
    cell.initialize_gates("chrono", longest=num_steps)
    assert not cell.bias[0].any()


def test_uniform_gates_keep_evenly_spread_parts_of_their_cells():
    num_units = 300
    cell = LSTM(1, hidden_size=num_units, num_layers=2)
    cell.initialize_gates("uniform", longest=1)
    for bias_G in cell.bias:
        input_H, forget_H, cell_H, output_H = bias_G.detach().reshape(4, num_units)
        assert torch.equal(input_H, -forget_H)
        assert not cell_H.any()
        assert not output_H.any()
        kept_H = forget_H.sigmoid().double().sort().values
        assert 1 / num_units - 1e-6 <= float(kept_H[0]) <= float(kept_H[-1]) <= 1 - 1 / num_units + 1e-6
        # Kolmogorov-Smirnov against U(0, 1); 1.95 / sqrt(n) is the 99.9% quantile.
        assert float((kept_H - (torch.arange(num_units) + 0.5) / num_units).abs().max()) < 1.95 / num_units**0.5
