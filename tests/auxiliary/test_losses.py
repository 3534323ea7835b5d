"""Token losses are sums over tokens and channels, so that any batch's loss is the token-weighted mean of its parts."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from auxrnn.auxiliary import TokenLoss, find_targets
from auxrnn.structs import LossSum, Segments

V = 5
SQUARED, CROSS_ENTROPY = TokenLoss(is_token=False), TokenLoss(is_token=True)


def make_segments(lengths):
    zeros_M = torch.zeros(len(lengths), dtype=torch.long)
    return Segments(zeros_M, zeros_M, zeros_M, torch.tensor(lengths))


def make_tokens(kind, num_segments, num_steps):
    output_MSO = torch.randn(num_segments, num_steps, V, dtype=torch.float64)
    if kind == "squared":
        return SQUARED, output_MSO, torch.randn_like(output_MSO)
    return CROSS_ENTROPY, output_MSO, torch.randint(V, (num_segments, num_steps))


@pytest.mark.parametrize("kind", ["squared", "cross_entropy"])
@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(0, 7), min_size=2, max_size=6).filter(any), data=st.data())
def test_a_batch_loss_is_the_token_weighted_mean_of_its_parts(kind, lengths, data):
    token_loss, output_MSO, target_MS = make_tokens(kind, len(lengths), max(lengths))
    is_target_MS = find_targets(make_segments(lengths))
    whole = token_loss(output_MSO, target_MS, is_target_MS)
    cut = data.draw(st.integers(1, len(lengths) - 1))
    parts = [
        token_loss(output_MSO[rows], target_MS[rows], is_target_MS[rows]) for rows in (slice(cut), slice(cut, None))
    ]
    counts = [sum(lengths[:cut]), sum(lengths[cut:])]
    assert [int(part.num_tokens) for part in parts] == counts
    weighted = sum(count * part.mean() for count, part in zip(counts, parts, strict=True)) / sum(lengths)
    torch.testing.assert_close(whole.mean(), weighted, rtol=1e-12, atol=1e-12)


def test_squared_error_is_summed_over_channels_and_tokens():
    output_MSD = torch.tensor([[[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]])
    target_MSD = torch.tensor([[[0.0, 4.0, 3.0], [0.0, 3.0, 0.0]]])
    loss = SQUARED(output_MSD, target_MSD, torch.ones(1, 2, dtype=torch.bool))
    assert float(loss.total) == (1 + 4) + (9 + 1)
    assert int(loss.num_tokens) == 2
    assert float(loss.mean()) == 7.5


def test_cross_entropy_equals_torch_on_the_flattened_tokens():
    _, output_MSV, target_MS = make_tokens("cross_entropy", 3, 4)
    loss = CROSS_ENTROPY(output_MSV, target_MS, torch.ones(3, 4, dtype=torch.bool))
    expected = F.cross_entropy(output_MSV.reshape(12, V), target_MS.reshape(12), reduction="sum")
    torch.testing.assert_close(loss.total, expected, rtol=1e-12, atol=1e-12)
    assert int(loss.num_tokens) == 12


@pytest.mark.parametrize("bad", [1e6, math.inf, math.nan])
@pytest.mark.parametrize("kind", ["squared", "cross_entropy"])
def test_masked_tokens_count_nothing_in_value_and_gradient(kind, bad):
    token_loss, output_MSO, target_MS = make_tokens(kind, 2, 4)
    is_target_MS = find_targets(make_segments([4, 1]))
    expected = token_loss(output_MSO, target_MS, is_target_MS)
    changed_MSO = output_MSO.clone()
    changed_MSO[1, 1:] = bad
    changed_MSO.requires_grad_()
    loss = token_loss(changed_MSO, target_MS, is_target_MS)
    assert torch.equal(loss.total, expected.total)
    assert int(loss.num_tokens) == 5
    if math.isfinite(bad):
        (grad_MSO,) = torch.autograd.grad(loss.total, changed_MSO)
        assert torch.equal(grad_MSO.any(dim=2), is_target_MS)


def test_a_shorter_segment_has_targets_only_at_its_first_steps():
    assert find_targets(make_segments([3, 0, 1])).tolist() == [[True] * 3, [False] * 3, [True, False, False]]


def test_a_mean_over_no_tokens_is_zero():
    assert float(LossSum(torch.tensor(0.0), torch.tensor(0)).mean()) == 0.0


def test_what_stands_in_a_gap_has_no_influence_as_a_target():
    output_MSO, target_MSO = torch.randn(2, 3, V, dtype=torch.float64), torch.randn(2, 3, V, dtype=torch.float64)
    is_target_MS, is_there_MSO = find_targets(make_segments([3, 2])), torch.rand(2, 3, V) > 0.4
    loss = SQUARED(output_MSO, target_MSO, is_target_MS, is_there_MSO)
    changed = SQUARED(output_MSO, torch.where(is_there_MSO, target_MSO, 1e30), is_target_MS, is_there_MSO)
    assert torch.equal(loss.total, changed.total)
    assert float(loss.num_tokens) == pytest.approx(int(is_there_MSO[is_target_MS].sum()) / V)


def test_where_all_is_there_a_loss_is_the_one_without_gaps():
    _, output_MSO, target_MSO = make_tokens("squared", 2, 3)
    is_target_MS, all_MSO = find_targets(make_segments([3, 1])), torch.ones(2, 3, V, dtype=torch.bool)
    whole = SQUARED(output_MSO, target_MSO, is_target_MS)
    masked = SQUARED(output_MSO, target_MSO, is_target_MS, all_MSO)
    torch.testing.assert_close(masked.total, whole.total)
    assert float(masked.num_tokens) == int(whole.num_tokens)
