"""The iRNN equals torch's ReLU network, in values and gradients, and starts as its paper says."""

import pytest
import torch
from torch import nn

from auxrnn.models.cells.irnn import INPUT_DEVIATION, IRNN

B, T, NUM_INPUTS, H = 4, 9, 3, 5


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_a_run_equals_torch_in_values_and_gradients(num_layers):
    cell = IRNN(NUM_INPUTS, hidden_size=H, num_layers=num_layers).double()
    rnn = nn.RNN(NUM_INPUTS, H, num_layers, nonlinearity="relu", batch_first=True).double()
    our_parameters, their_parameters = [], []
    for layer in range(num_layers):
        for name, parameters in (("weight_ih", cell.weight_ih), ("weight_hh", cell.weight_hh), ("bias_ih", cell.bias)):
            nn.init.normal_(parameters[layer], std=0.4)
            getattr(rnn, f"{name}_l{layer}").data.copy_(parameters[layer])
            our_parameters.append(parameters[layer])
            their_parameters.append(getattr(rnn, f"{name}_l{layer}"))
        getattr(rnn, f"bias_hh_l{layer}").data.zero_()
    x_BTI = torch.randn(B, T, NUM_INPUTS, dtype=torch.float64, requires_grad=True)
    start_LBH = torch.randn(num_layers, B, H, dtype=torch.float64, requires_grad=True)
    run = cell(x_BTI, cell.initial_state(B)._replace(h_LBH=start_LBH))
    h_BTH, h_LBH = rnn(x_BTI, start_LBH)
    torch.testing.assert_close((run.h_BTH, run.state.h_LBH), (h_BTH, h_LBH), rtol=1e-12, atol=1e-13)
    loss, expected_loss = run.h_BTH.sin().sum() + run.state.h_LBH.cos().sum(), h_BTH.sin().sum() + h_LBH.cos().sum()
    ours = torch.autograd.grad(loss, [x_BTI, start_LBH, *our_parameters])
    theirs = torch.autograd.grad(expected_loss, [x_BTI, start_LBH, *their_parameters])
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_it_starts_by_copying_its_state():
    cell = IRNN(NUM_INPUTS, hidden_size=H, num_layers=1)
    start = cell.initial_state(B)._replace(h_LBH=torch.rand(1, B, H))
    after = cell(torch.zeros(B, 200, NUM_INPUTS), start).state
    assert torch.equal(after.h_LBH, start.h_LBH)


def test_input_weights_start_gaussian_with_the_deviation_of_the_paper_and_biases_zero():
    cell = IRNN(50, hidden_size=200, num_layers=2)
    for weight_HI, weight_HH, bias_H in zip(cell.weight_ih, cell.weight_hh, cell.bias, strict=True):
        # The deviation of n draws is off by 1 / sqrt(2 n), at most 0.7% here: five times that is never met.
        assert float(weight_HI.detach().std()) == pytest.approx(INPUT_DEVIATION, rel=0.035)
        assert abs(float(weight_HI.detach().mean())) < 5 * INPUT_DEVIATION / weight_HI.numel() ** 0.5
        assert torch.equal(weight_HH.detach(), torch.eye(200))
        assert not bias_H.any()


def test_the_published_size_has_the_published_number_of_parameters():
    cell, readout = IRNN(1, hidden_size=100, num_layers=1), nn.Linear(100, 10)
    num_parameters = sum(p.numel() for p in [*cell.parameters(), *readout.parameters()])
    assert round(num_parameters, -3) == 11_000
