"""`auxrnn bench`: what is compared agrees, takes turns, and is printed."""

import json

import numpy as np
import pytest
import torch

from auxrnn import bench
from auxrnn.bench import SpeedSizes, check_agreement, measure_speed, time_in_turns
from auxrnn.errors import RunError
from command import call

TINY = SpeedSizes(batch_size=4, hidden_size=8, reading_length=30, window_length=20, stream_steps=5, rounds=2)


class Machine:
    """A clock that only work moves, and contenders whose work takes the seconds written down for each round."""

    def __init__(self, **seconds):
        self.now = 0.0
        self.turns = []
        self.seconds = {name: iter(values) for name, values in seconds.items()}

    def clock(self):
        return self.now

    def contender(self, name):
        def work():
            self.turns.append(name)
            self.now += next(self.seconds[name])

        return work


def test_contenders_take_turns_and_the_best_round_of_each_counts():
    machine = Machine(ours=[9.0, 1.0, 2.0], theirs=[4.0, 6.0, 3.0])
    contenders = {name: machine.contender(name) for name in ("ours", "theirs")}
    assert time_in_turns(contenders, rounds=3, clock=machine.clock) == {"ours": 1.0, "theirs": 3.0}
    assert machine.turns == ["ours", "theirs"] * 3


def test_short_work_is_repeated_and_its_time_divided():
    machine = Machine(ours=[1.0, 3.0, 2.0, 1.0])
    contenders = {"ours": machine.contender("ours")}
    assert time_in_turns(contenders, rounds=2, repeats=2, clock=machine.clock) == {"ours": 1.5}


def test_answers_that_differ_by_rounding_agree():
    check_agreement({"ours": [1.0, -100.0], "theirs": [1.005, -100.005]}, of="the outputs")


@pytest.mark.parametrize("theirs", [[1.0, -100.1], [np.nan, -100.0]])
def test_answers_that_differ_by_more_are_refused_in_one_sentence(theirs):
    with pytest.raises(RunError, match=r"^theirs and ours differ by .* in the outputs; please report"):
        check_agreement({"ours": [1.0, -100.0], "theirs": theirs}, of="the outputs")


def test_the_command_prints_tables_or_one_object(monkeypatch):
    monkeypatch.setattr(bench, "SpeedSizes", lambda: TINY)
    result = call("bench", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found["cases"].keys() == {"reading", "window", "streaming"}
    for case in found["cases"].values():
        ours, baseline = case["contenders"]
        assert (ours["contender"], baseline["contender"], baseline["speed_up"]) == ("auxrnn", case["baseline"], 1.0)
        assert ours["speed_up"] == baseline["seconds"] / ours["seconds"]
    assert found["environment"]["lstm"]
    printed = call("bench")
    assert printed.code == 0
    assert "nn.Linear + nn.LSTMCell" in printed.out


def test_denormal_numbers_count_as_zero_only_while_measuring(monkeypatch):
    tiny, products = torch.tensor(1e-38), []
    monkeypatch.setattr(
        bench, "time_in_turns", lambda calls, **_: products.append(tiny * 1e-3) or dict.fromkeys(calls, 1.0)
    )
    measure_speed(TINY)
    assert [product.item() for product in products] == [0.0] * 3
    assert (tiny * 1e-3).item() > 0
