"""The convolutional recurrent network against a slow one that reads each text alone, without any padding."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from auxrnn.models.baselines.conv_rnn import ConvRNN

B, T, V, H, E = 5, 41, 11, 6, 3
FIRST_B = torch.tensor([0, 1, 2, 24, 40])


def make(num_steps=T, dropout=0.5):
    return ConvRNN(V, hidden_size=H, embedding_size=E, num_steps=num_steps, dropout=dropout).double()


def draw(num_columns=T):
    return torch.randint(0, V, (B, num_columns))


def make_bidirectional(model):
    """Give one nn.LSTM of both directions with the model's weights."""
    lstm = nn.LSTM(H, H, batch_first=True, bidirectional=True).double()
    both = model.forward_lstm.state_dict() | {
        f"{name}_reverse": value for name, value in model.backward_lstm.state_dict().items()
    }
    lstm.load_state_dict(both)
    return lstm


def read_slowly(model, x_T):
    """Give the features of one text, as long as it is."""
    h_HW = model.embedding.weight[x_T].T
    for convolution, margin in zip(model.convolutions, (2, 2, 1), strict=True):
        h_HW = F.relu(F.conv1d(h_HW, convolution.weight, convolution.bias, padding=margin))
        h_HW = torch.stack([part_HW.amax(dim=1) for part_HW in h_HW.split(2, dim=1)], dim=1)
    _, (h_2H, _) = make_bidirectional(model)(h_HW.T)
    return h_2H.flatten()


def test_features_are_those_of_each_text_alone():
    model, x_BT = make().eval(), draw()
    expected_BF = torch.stack([read_slowly(model, x_BT[b, FIRST_B[b] :]) for b in range(B)])
    torch.testing.assert_close(model(x_BT, FIRST_B), expected_BF, rtol=1e-12, atol=1e-12)


def test_features_do_not_depend_on_the_number_of_steps_a_text_could_have():
    model, longer, x_BT = make().eval(), make(1014).eval(), draw()
    longer.load_state_dict(model.state_dict())
    assert torch.equal(model(x_BT, FIRST_B), longer(x_BT, FIRST_B))


def test_frames_are_halved_three_times():
    model = ConvRNN(71, hidden_size=128, embedding_size=8, num_steps=1014, dropout=0.5)
    shapes = []
    for convolution in model.convolutions:
        convolution.register_forward_hook(lambda _, inputs, output: shapes.append((inputs[0].shape, output.shape)))
    with torch.no_grad():
        features_BF = model(torch.randint(0, 71, (1, 1014)))
    assert [(tuple(before[1:]), tuple(after[1:])) for before, after in shapes] == [
        ((8, 1014), (128, 1014)),
        ((128, 507), (128, 507)),
        ((128, 254), (128, 254)),
    ]
    assert features_BF.shape == (1, 256) == (1, model.output_size)


def test_parameters_are_those_of_three_convolutions_and_one_recurrence():
    model = ConvRNN(96, hidden_size=128, embedding_size=8, num_steps=1014, dropout=0.5)
    convolutions = (8 * 5 + 128 * 5 + 128 * 3) * 128 + 3 * 128
    # Two directions, four gates; nn.LSTM has two biases a gate.
    lstm = 2 * 4 * 128 * (128 + 128 + 2)
    assert sum(parameter.numel() for parameter in model.parameters()) == 97 * 8 + convolutions + lstm


def test_what_stands_before_a_row_changes_nothing():
    model, x_BT = make().eval(), draw()
    other_BT = torch.where(torch.arange(T) < FIRST_B.unsqueeze(1), (x_BT + 1) % V, x_BT)
    assert torch.equal(model(x_BT, FIRST_B), model(other_BT, FIRST_B))
    assert not torch.equal(model(x_BT), model(other_BT))


def test_a_longer_text_is_cut_to_its_first_steps():
    model, x_BT = make().eval(), draw(T + 9)
    assert torch.equal(model(x_BT), model(x_BT[:, :T]))


def test_every_step_of_a_text_matters_in_both_directions():
    model, x_BT = make().eval(), draw()
    forward_BH, backward_BH = model(x_BT).split(H, dim=1)
    for t in (0, T // 2, T - 1):
        other_BT = x_BT.clone()
        other_BT[:, t] = (other_BT[:, t] + 1) % V
        other_forward_BH, other_backward_BH = model(other_BT).split(H, dim=1)
        assert not torch.equal(forward_BH, other_forward_BH)
        assert not torch.equal(backward_BH, other_backward_BH)


def test_dropout_stands_before_and_behind_the_recurrence_in_training_alone():
    model, x_BT, inputs = make(), draw(), []
    model.forward_lstm.register_forward_hook(lambda _, arguments, __: inputs.append(arguments[0]))
    trained_BF = model(x_BT)
    evaluated_BF = model.eval()(x_BT)
    assert torch.equal(evaluated_BF, model(x_BT))
    # States are never exactly zero by themselves, so zeros are dropped ones: 4.5 standard errors of 60 draws.
    assert abs(float((trained_BF == 0).double().mean()) - 0.5) < 4.5 * 0.5 / 60**0.5
    assert not bool((evaluated_BF == 0).any())
    trained_BWH, evaluated_BWH, _ = inputs
    kept_BWH = (trained_BWH != 0) & (evaluated_BWH != 0)
    torch.testing.assert_close(trained_BWH[kept_BWH], 2 * evaluated_BWH[kept_BWH], rtol=1e-12, atol=0)
    assert int((trained_BWH != 0).sum()) < int((evaluated_BWH != 0).sum())


def test_training_is_the_same_from_the_same_seed():
    results = []
    for _ in range(2):
        torch.manual_seed(5)
        model, x_BT = make().float(), draw()
        model(x_BT, FIRST_B).square().sum().backward()
        results.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(first, second) for first, second in zip(*results, strict=True))


@pytest.mark.parametrize("first_B", [None, FIRST_B])
def test_gradients_reach_every_parameter_and_padding_stays_zero(first_B):
    model = make()
    model(draw(), first_B).sum().backward()
    assert all(bool((parameter.grad != 0).any()) for parameter in model.parameters())
    assert not bool(model.embedding.weight[V].any())
    assert not bool(model.embedding.weight.grad[V].any())
