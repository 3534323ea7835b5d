"""The char-CNN against its published table, and against a slow one: one-hot vectors and plain convolutions."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from auxrnn.models.baselines.char_cnn import CharCNN, convolve_one_hot, count_frames, count_steps

V, T = 11, 231
# The frames at 1014 steps behind each convolution and its pool, as in the authors' own configuration.
PUBLISHED_FRAMES = [336, 110, 108, 106, 104, 34]
POOL_AFTER = [True, True, False, False, False, True]


def make(num_steps=T, size="small", dropout=0.5):
    return CharCNN(V, size=size, num_steps=num_steps, dropout=dropout).double()


def draw(num_rows=4, num_columns=T):
    return torch.randint(0, V, (num_rows, num_columns))


def convolve_slowly(model, x_BT):
    """Give the frames behind every convolution, for tokens of which V is padding."""
    h_BHW = F.one_hot(x_BT, V + 1)[..., :V].to(model.first.weight).transpose(1, 2)
    frames = []
    for convolution, has_pool in zip([model.first, *model.others], POOL_AFTER, strict=True):
        h_BHW = F.relu(F.conv1d(h_BHW, convolution.weight, convolution.bias))
        h_BHW = F.max_pool1d(h_BHW, 3) if has_pool else h_BHW
        frames.append(h_BHW)
    return frames


def test_frames_are_those_of_the_published_table():
    model = CharCNN(V, size="small", num_steps=1014, dropout=0.5)
    with torch.no_grad():
        frames = convolve_slowly(model, draw(1, 1014))
        assert model.convolve(draw(1, 1014)).shape == frames[-1].shape
    assert [tuple(h_BHW.shape[1:]) for h_BHW in frames] == [(256, num_frames) for num_frames in PUBLISHED_FRAMES]
    assert model.dense[0].in_features == 34 * 256 == 8704


@pytest.mark.parametrize(("size", "num_filters", "dense_size"), [("small", 256, 1024), ("large", 1024, 2048)])
def test_parameters_are_those_of_the_published_layers(size, num_filters, dense_size):
    with torch.device("meta"):
        model = CharCNN(71, size=size, num_steps=1014, dropout=0.5)
    weights = 71 * 7 * num_filters + (7 + 3 + 3 + 3 + 3) * num_filters**2 + (34 * num_filters + dense_size) * dense_size
    biases = 6 * num_filters + 2 * dense_size
    assert sum(parameter.numel() for parameter in model.parameters()) == weights + biases
    assert model.output_size == dense_size


def test_a_convolution_of_tokens_is_that_of_their_one_hot_vectors():
    convolution = nn.Conv1d(V, 6, 7).double()
    x_BT = torch.randint(0, V + 1, (3, 40))
    expected_BHW = convolution(F.one_hot(x_BT, V + 1)[..., :V].double().transpose(1, 2))
    actual_BHW = convolve_one_hot(x_BT, convolution)
    torch.testing.assert_close(actual_BHW, expected_BHW, rtol=1e-12, atol=1e-12)
    direction_BHW = torch.randn_like(expected_BHW)
    expected = torch.autograd.grad((expected_BHW * direction_BHW).sum(), list(convolution.parameters()))
    actual = torch.autograd.grad((actual_BHW * direction_BHW).sum(), list(convolution.parameters()))
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("length", [1, 26, 27, 28, 100, 203, 204, T - 1, T])
def test_features_are_those_of_a_slow_network_that_reads_all_padding(length):
    model = make().eval()
    text_BT = draw(2)
    text_BT[:, length:] = V
    expected_BF = model.dense(convolve_slowly(model, text_BT)[-1].flatten(1))
    x_BT = torch.cat([torch.zeros(2, 3, dtype=torch.long), text_BT[:, :length]], dim=1)
    torch.testing.assert_close(model(x_BT, torch.tensor([3, 3])), expected_BF, rtol=1e-10, atol=1e-10)


def test_gradients_are_those_of_a_slow_network_that_reads_all_padding():
    model = make(dropout=0.0)
    text_BT = draw(2)
    text_BT[:, 60:] = V
    direction_BF = torch.randn(2, model.output_size, dtype=torch.float64)
    slow_BF = model.dense(convolve_slowly(model, text_BT)[-1].flatten(1))
    expected = torch.autograd.grad((slow_BF * direction_BF).sum(), list(model.parameters()))
    actual = torch.autograd.grad((model(text_BT[:, :60]) * direction_BF).sum(), list(model.parameters()))
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)


def test_what_stands_before_a_row_changes_nothing():
    model, x_BT, first_B = make().eval(), draw(), torch.tensor([0, 1, 90, 200])
    other_BT = torch.where(torch.arange(T) < first_B.unsqueeze(1), (x_BT + 1) % V, x_BT)
    assert torch.equal(model(x_BT, first_B), model(other_BT, first_B))
    assert not torch.equal(model(x_BT), model(other_BT))


def test_a_longer_text_is_cut_to_its_first_steps():
    model, x_BT = make().eval(), draw(num_columns=T + 30)
    assert torch.equal(model(x_BT), model(x_BT[:, :T]))


def test_the_shortest_text_has_one_frame_and_a_shorter_one_is_refused():
    assert next(num_steps for num_steps in range(60, 200) if count_frames(num_steps) >= 1) == 123 == count_steps(1)
    assert make(123)(draw()).shape == (4, 1024)
    with pytest.raises(ValueError, match=r"num_steps is 122, too short .* must be at least 123"):
        make(122)


@pytest.mark.parametrize("num_steps", [123, 149, 150, T, 1014])
def test_frames_and_steps_are_counted_alike(num_steps):
    num_frames = count_frames(num_steps)
    assert count_steps(num_frames) <= num_steps < count_steps(num_frames + 1)


@pytest.mark.parametrize(("size", "std"), [("small", 0.05), ("large", 0.02)])
def test_weights_are_drawn_with_the_published_spread(size, std):
    model = CharCNN(V, size=size, num_steps=123, dropout=0.5)
    for module in [model.first, *model.others, model.dense[0], model.dense[3]]:
        # Four standard errors of a spread estimated from n draws: 4 / sqrt(2 n), at least 19,712 draws.
        assert float(module.weight.detach().std()) == pytest.approx(std, rel=0.0202)


def test_dropout_is_on_in_training_and_off_at_evaluation():
    model, x_BT = make(), draw()
    assert not torch.equal(model(x_BT), model(x_BT))
    model.eval()
    assert torch.equal(model(x_BT), model(x_BT))
    # Without dropout about half of the rectified features are zero; with half of those dropped, three quarters.
    share_trained, share_evaluated = ((model.train(mode)(x_BT) == 0).double().mean() for mode in (True, False))
    assert float((1 - share_trained) / (1 - share_evaluated)) == pytest.approx(0.5, abs=0.1)


def test_training_is_the_same_from_the_same_seed():
    results = []
    for _ in range(2):
        torch.manual_seed(5)
        model, x_BT = CharCNN(V, size="small", num_steps=T, dropout=0.5), draw()
        model(x_BT, torch.tensor([0, 30, 60, 90])).square().sum().backward()
        results.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(first, second) for first, second in zip(*results, strict=True))


def test_gradients_reach_every_parameter():
    model = make()
    model(draw()).sum().backward()
    assert all(bool((parameter.grad != 0).any()) for parameter in model.parameters())
