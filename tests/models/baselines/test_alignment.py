"""Rows that end together are moved to begin together; nothing of the padding survives."""

import pytest
import torch

from auxrnn.models.baselines.layers import align_left, average_real, clear_padding, find_real, fix_length

FIRST = [0, 3, 6]
B, T, D = 3, 7, 2
PADDING = 9


def make_steps(shape):
    x_BT = torch.randn(B, T, *shape, dtype=torch.float64)
    for b, first in enumerate(FIRST):
        x_BT[b, :first] = float("nan")
    return x_BT


@pytest.mark.parametrize("shape", [(), (D,)], ids=["tokens", "vectors"])
def test_each_row_begins_at_column_0(shape):
    x_BT = make_steps(shape)
    aligned = align_left(x_BT, torch.tensor(FIRST))
    assert aligned.length_B.tolist() == [T - first for first in FIRST]
    assert aligned.x_BT.shape == x_BT.shape
    for b, first in enumerate(FIRST):
        assert torch.equal(aligned.x_BT[b, : T - first], x_BT[b, first:])


def test_what_stands_behind_a_row_is_finite_whatever_the_padding_held():
    assert bool(align_left(make_steps((D,)), torch.tensor(FIRST)).x_BT.isfinite().all())


def test_without_a_first_column_nothing_is_copied():
    x_BTD = torch.randn(B, T, D)
    aligned = align_left(x_BTD, None)
    assert aligned.x_BT is x_BTD
    assert aligned.length_B.tolist() == [T] * B


def test_gradients_go_back_to_where_a_step_came_from():
    x_BT = torch.randn(B, T, dtype=torch.float64, requires_grad=True)
    aligned = align_left(x_BT, torch.tensor(FIRST))
    weight_BT = torch.randn(B, T, dtype=torch.float64)
    (aligned.x_BT * weight_BT)[find_real(aligned.length_B, T)].sum().backward()
    for b, first in enumerate(FIRST):
        assert torch.equal(x_BT.grad[b, first:], weight_BT[b, : T - first])
        assert bool((x_BT.grad[b, :first] == 0).all())


def test_the_first_columns_of_a_row_are_real():
    assert find_real(torch.tensor([1, 3]), 4).int().tolist() == [[1, 0, 0, 0], [1, 1, 1, 0]]


def test_padding_is_cleared_and_left_out_of_the_mean():
    x_BTD = torch.randn(B, T, D, dtype=torch.float64)
    length_B = torch.tensor([T, 4, 1])
    real_BT = find_real(length_B, T)
    garbage_BTD = x_BTD.masked_fill(~real_BT.unsqueeze(2), float("nan"))
    cleared_BTD = clear_padding(garbage_BTD, real_BT)
    for b, length in enumerate(length_B.tolist()):
        assert torch.equal(cleared_BTD[b, :length], x_BTD[b, :length])
        assert bool((cleared_BTD[b, length:] == 0).all())
        expected_D = x_BTD[b, :length].mean(dim=0)
        torch.testing.assert_close(average_real(garbage_BTD, real_BT)[b], expected_D, rtol=1e-12, atol=1e-14)


def test_without_a_mask_all_steps_are_real():
    x_BTD = torch.randn(B, T, D, dtype=torch.float64)
    assert clear_padding(x_BTD, None) is x_BTD
    torch.testing.assert_close(average_real(x_BTD, None), x_BTD.sum(dim=1) / T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("num_steps", [1, 3, 5, 8])
def test_rows_hold_their_first_tokens_and_padding_behind(num_steps):
    x_BT = torch.tensor([[7, 7, 1, 2, 3], [1, 2, 3, 4, 5], [7, 7, 7, 7, 6]])
    text_BT, length_B = fix_length(x_BT, torch.tensor([2, 0, 4]), num_steps=num_steps, padding=PADDING)
    rows = [row[:num_steps] for row in ([1, 2, 3], [1, 2, 3, 4, 5], [6])]
    assert text_BT.tolist() == [row + [PADDING] * (num_steps - len(row)) for row in rows]
    assert length_B.tolist() == [len(row) for row in rows]


def test_rows_without_first_columns_are_whole():
    x_BT = torch.tensor([[1, 2, 3], [4, 5, 6]])
    text_BT, length_B = fix_length(x_BT, None, num_steps=4, padding=PADDING)
    assert text_BT.tolist() == [[1, 2, 3, PADDING], [4, 5, 6, PADDING]]
    assert length_B.tolist() == [3, 3]


def test_the_tokens_that_came_in_stay_as_they_are():
    x_BT = torch.tensor([[7, 1], [2, 3]])
    fix_length(x_BT, torch.tensor([1, 0]), num_steps=2, padding=PADDING)
    assert x_BT.tolist() == [[7, 1], [2, 3]]
