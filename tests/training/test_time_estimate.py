"""The time of an update is that of warm steps, and of rows that share what a step takes for itself."""

import time

import pytest
import torch

from auxrnn.structs import SequenceBatch
from auxrnn.training import cost

A_STEP, A_ROW = 0.2, 0.004


def make_batch(num_rows, num_steps=100):
    x_BT = torch.arange(num_rows * num_steps).reshape(num_rows, num_steps)
    return SequenceBatch(x_BT, torch.zeros(num_rows, dtype=torch.long))


class Sleeper:
    """Takes the time of a step and of its rows; the first step of each size takes more, the first of all much more."""

    def __init__(self):
        self.sizes = []

    def __call__(self, batch):
        rows = len(batch.label_B)
        cold = 0.5 if not self.sizes else 0.1 if rows not in self.sizes else 0.0
        self.sizes.append(rows)
        time.sleep(A_STEP + A_ROW * rows + cold)


def test_a_batch_that_is_not_tried_whole_takes_what_its_further_rows_add(monkeypatch):
    monkeypatch.setattr(cost, "LONGEST_TRIALS", 0.6)
    use = Sleeper()
    seconds = cost._time_rows(use, make_batch(64))
    assert max(use.sizes) == 8
    assert seconds == pytest.approx(A_STEP + 64 * A_ROW, rel=0.3)


def test_the_first_use_of_anything_is_not_counted():
    use = Sleeper()
    seconds = cost._time_rows(use, make_batch(8))
    assert seconds == pytest.approx(A_STEP + 8 * A_ROW, rel=0.3)


def test_a_step_that_is_slow_row_by_row_is_tried_on_one_row_alone(monkeypatch):
    monkeypatch.setattr(cost, "LONGEST_ROW", 0.1)
    use = Sleeper()
    cost._time_rows(use, make_batch(64))
    assert set(use.sizes) == {1}


def test_the_last_steps_of_a_batch_begin_where_its_rows_do():
    batch = make_batch(3, num_steps=10)._replace(first_B=torch.tensor([0, 4, 8]))
    tail = batch.tail(4)
    assert tail.x_BT.tolist() == batch.x_BT[:, 6:].tolist()
    assert tail.length_B.tolist() == [4, 4, 2]
    assert batch.tail(20).length_B.tolist() == batch.length_B.tolist()
