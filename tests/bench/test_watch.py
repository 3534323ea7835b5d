import io

import pytest
from rich.console import Console

from auxrnn.bench import watch
from auxrnn.bench.plan import make_plan, memory_points
from auxrnn.bench.sizes import FULL, QUICK, Sizes
from auxrnn.bench.watch import Watch


@pytest.fixture
def machine(monkeypatch):
    """A clock that tests set by hand."""
    now = [0.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    return now


def test_the_time_left_follows_from_the_parts_before(machine):
    file = io.StringIO()
    shown = Watch({"reading": 10.0, "windows": 30.0, "steps": 60.0}, Console(file=file))
    with shown.part("reading"):
        machine[0] = 20.0
    with shown.part("windows"):
        machine[0] = 80.0
    with shown.part("steps"):
        pass
    assert file.getvalue().splitlines() == [
        "reading; about 2 minutes left",
        "windows; about 3 minutes left",
        "steps; about 2 minutes left",
    ]


def test_short_parts_say_nothing(machine):
    file = io.StringIO()
    shown = Watch({"first": 1.0, "second": 1.0}, Console(file=file))
    for name in shown.parts:
        with shown.part(name):
            machine[0] += 1.0
    assert file.getvalue() == "first; about 2 seconds left\n"


def test_the_quick_benchmark_is_planned_for_three_minutes_and_the_full_one_for_twenty():
    assert 100 < sum(make_plan(QUICK).values()) < 240
    assert 600 < sum(make_plan(FULL).values()) < 1500


def test_every_length_that_a_ratio_needs_is_measured():
    for sizes in (QUICK, FULL):
        assert {("full_bptt", 12_544), ("r_lstm_20x30", 1_600), ("r_lstm_20x30", 16_384)} <= set(memory_points(sizes))
        assert 12_544 in sizes.timed_lengths
    with pytest.raises(ValueError, match="step_length is 7; it must be one of the lengths that are measured"):
        Sizes(step_length=7)
