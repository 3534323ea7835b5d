"""The time of an update is that of warm steps, and of rows that share what a step takes for itself."""

import time

import numpy as np
import pytest
import torch

from auxrnn.data.sequences import Batches, Encoding, Flat, Split
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


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_of_average_size_stands_for_all_of_an_epoch(seed):
    rng = np.random.default_rng(seed)
    sequences = [rng.standard_normal((length, 1)).astype(np.float32) for length in rng.integers(10, 200, 17)]
    flat = Flat(np.concatenate(sequences), np.cumsum([0, *map(len, sequences)]))
    batches = Batches(Split(flat, np.arange(17), np.zeros(17, int), Encoding(np.array)), batch_size=4, seed=seed)
    sizes = [batches.at(step, phase="train").x_BT[..., 0].numel() for step in range(batches.steps_per_epoch)]
    batch, scale = batches.find_typical("train")
    assert batch.x_BT[..., 0].numel() * scale == pytest.approx(np.mean(sizes))
    # The fifth batch of an epoch has a single row, and comes anywhere in it.
    assert len(batch.label_B) == 4
    assert min(sizes) < batch.x_BT[..., 0].numel() < max(sizes)


def test_the_last_steps_of_a_batch_begin_where_its_rows_do():
    batch = make_batch(3, num_steps=10)._replace(first_B=torch.tensor([0, 4, 8]))
    tail = batch.tail(4)
    assert tail.x_BT.tolist() == batch.x_BT[:, 6:].tolist()
    assert tail.length_B.tolist() == [4, 4, 2]
    assert batch.tail(20).length_B.tolist() == batch.length_B.tolist()
