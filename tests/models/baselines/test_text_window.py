"""Texts of any length as rows of one length: cut behind, padded behind, nothing else."""

import pytest
import torch

from auxrnn.models.baselines.text_window import fix_length

PADDING = 9


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
