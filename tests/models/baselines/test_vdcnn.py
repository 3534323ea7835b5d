"""The very deep convolutional network against its published table, and k-max pooling against a slow one."""

import pytest
import torch
from torch import nn

from auxrnn.models.baselines.vdcnn import VDCNN, keep_largest

B, T, V, E = 4, 64, 11, 5
DEPTHS = {9: (2, 2, 2, 2), 17: (4, 4, 4, 4), 29: (10, 10, 4, 4)}
PUBLISHED_MILLIONS = {9: 2.2, 17: 4.3, 29: 4.6}


def make(depth=9, num_steps=T):
    return VDCNN(V, depth=depth, embedding_size=E, num_steps=num_steps)


def draw(num_columns=T):
    return torch.randint(0, V, (B, num_columns))


def count_convolution_weights(depth):
    with torch.device("meta"):
        model = VDCNN(71, depth=depth, embedding_size=16, num_steps=1014)
    return sum(module.weight.numel() for module in model.modules() if isinstance(module, nn.Conv1d))


@pytest.mark.parametrize("depth", DEPTHS)
def test_shapes_are_those_of_the_published_figure(depth):
    model = VDCNN(71, depth=depth, embedding_size=16, num_steps=1014).eval()
    shapes = []
    for module in [*model.modules()]:
        if isinstance(module, nn.Conv1d):
            module.register_forward_hook(lambda _, __, output: shapes.append(tuple(output.shape[1:])))
    with torch.no_grad():
        assert model(torch.randint(0, 71, (1, 1014))).shape == (1, 2048) == (1, model.output_size)
    stages = zip([(64, 1014), (128, 507), (256, 254), (512, 127)], DEPTHS[depth], strict=True)
    assert shapes == [(64, 1014)] + [shape for shape, num_convolutions in stages for _ in range(num_convolutions)]
    assert len(shapes) == depth
    assert model.dense[0].in_features == 512 * 8 == 4096


@pytest.mark.parametrize("depth", DEPTHS)
def test_convolution_weights_are_those_of_the_published_layers(depth):
    n64, n128, n256, n512 = DEPTHS[depth]
    within = n64 * 64**2 + (n128 - 1) * 128**2 + (n256 - 1) * 256**2 + (n512 - 1) * 512**2
    between = 16 * 64 + 64 * 128 + 128 * 256 + 256 * 512
    assert count_convolution_weights(depth) == 3 * (within + between)


@pytest.mark.parametrize(("shallow", "deep"), [(9, 17), (17, 29), (9, 29)])
def test_depth_costs_as_many_weights_as_published(shallow, deep):
    published = PUBLISHED_MILLIONS[deep] - PUBLISHED_MILLIONS[shallow]
    actual = (count_convolution_weights(deep) - count_convolution_weights(shallow)) / 1e6
    assert abs(actual - published) < 0.1


@pytest.mark.parametrize("depth", DEPTHS)
def test_published_totals_count_a_first_convolution_as_wide_as_the_others_of_its_stage(depth):
    # Ours are 0.6 million below the published totals at every depth: the first convolution of a stage reads the
    # channels of the stage before, half as many. Counted as if it read its own, they agree to 6 %.
    as_wide = 3 * sum(count * width**2 for count, width in zip(DEPTHS[depth], (64, 128, 256, 512), strict=True))
    assert as_wide / 1e6 == pytest.approx(PUBLISHED_MILLIONS[depth], rel=0.06)
    narrower = 3 * (64 * 128 + 128 * 256 + 256 * 512) - 3 * 16 * 64
    assert as_wide - count_convolution_weights(depth) == narrower


@pytest.mark.parametrize("num_kept", [1, 3, 8, 13])
def test_k_max_pooling_keeps_the_largest_in_the_order_of_time(num_kept):
    h_BHW = torch.randn(3, 4, 13)
    kept_BHK = keep_largest(h_BHW, num_kept=num_kept)
    for b in range(3):
        for h in range(4):
            values = h_BHW[b, h].tolist()
            smallest_kept = sorted(values)[-num_kept]
            assert kept_BHK[b, h].tolist() == [value for value in values if value >= smallest_kept]


def test_k_max_pooling_keeps_k_of_equal_values():
    assert keep_largest(torch.zeros(1, 1, 12), num_kept=8).tolist() == [[[0.0] * 8]]


def test_what_stands_before_a_row_changes_nothing():
    model, x_BT, first_B = make().eval(), draw(), torch.tensor([0, 1, 30, 63])
    other_BT = torch.where(torch.arange(T) < first_B.unsqueeze(1), (x_BT + 1) % V, x_BT)
    assert torch.equal(model(x_BT, first_B), model(other_BT, first_B))
    assert not torch.equal(model(x_BT), model(other_BT))


def test_a_longer_text_is_cut_to_its_first_steps():
    model, x_BT = make().eval(), draw(T + 9)
    assert torch.equal(model(x_BT), model(x_BT[:, :T]))


def test_the_shortest_text_has_eight_frames_and_a_shorter_one_is_refused():
    model, frames = make(num_steps=57).eval(), []
    model.stages.register_forward_hook(lambda _, __, output: frames.append(output.shape[2]))
    model(draw())
    assert frames == [8]
    with pytest.raises(ValueError, match=r"num_steps is 56, too short .* must be at least 57"):
        make(num_steps=56)


def test_batch_norm_uses_the_batch_in_training_and_what_it_has_seen_at_evaluation():
    model, x_BT = make(), draw()
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm1d)]
    assert len(norms) == 8
    assert not torch.equal(model(x_BT)[:2], model(x_BT[:2]))
    assert all(bool(norm.running_mean.any()) for norm in norms)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.eval()
    assert torch.equal(model(x_BT), model(x_BT))
    # Rows are read alone: only the sums of a product of another shape are rounded differently (single precision).
    torch.testing.assert_close(model(x_BT)[:2], model(x_BT[:2]), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_weights_are_drawn_with_the_spread_of_he_et_al():
    model = make()
    for module in model.modules():
        if isinstance(module, nn.Conv1d | nn.Linear) and module.weight.numel() > 10_000:
            expected = (2 / module.weight[0].numel()) ** 0.5
            # Four standard errors of a spread estimated from n draws: 4 / sqrt(2 n), n at least 10,000.
            assert float(module.weight.detach().std()) == pytest.approx(expected, rel=0.0283)


def test_training_is_the_same_from_the_same_seed():
    results = []
    for _ in range(2):
        torch.manual_seed(5)
        model, x_BT = make(), draw()
        model(x_BT, torch.tensor([0, 8, 16, 24])).square().sum().backward()
        results.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(first, second) for first, second in zip(*results, strict=True))


@pytest.mark.parametrize("depth", DEPTHS)
def test_gradients_reach_every_parameter(depth):
    model = make(depth)
    model(draw(), torch.tensor([0, 8, 16, 24])).sum().backward()
    assert all(bool((parameter.grad != 0).any()) for parameter in model.parameters())
    assert bool(model.embedding.weight.grad[V].any())
