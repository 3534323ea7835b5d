import pytest

from auxrnn.bench.ratios import GOALS, Goal, compute_ratios
from auxrnn.bench.results import Case, Entry


def test_each_ratio_divides_the_right_measurements(results):
    assert compute_ratios(results) == pytest.approx(
        {
            "reading_vs_nn_lstm": 0.25 / 0.1,
            "reading_share_of_gemm": 12e9 / 16e9,
            "window_vs_nn_lstm": 0.4 / 0.2,
            "step_20x30_vs_full_bptt": 12 / 2,
            "step_1x600_vs_full_bptt": 12 / 3,
            "memory_growth": 330 / 300,
            "memory_vs_full_bptt": 8_000 / 510,
            "streaming_vs_lstm_cell": 35 / 10,
            "reading_vs_nn_lstm_busy": 1.2 / 0.2,
        }
    )


def test_every_ratio_has_a_goal(results):
    assert compute_ratios(results).keys() == GOALS.keys()


@pytest.mark.parametrize(("ratio", "is_reached"), [(1.04, True), (1.05, True), (1.06, False)])
def test_memory_may_grow_by_five_percent(ratio, is_reached):
    assert GOALS["memory_growth"].is_reached(ratio) == is_reached
    assert GOALS["memory_growth"].describe() == "<= 1.05"


@pytest.mark.parametrize(("ratio", "is_reached"), [(2.1, False), (2.2, True), (2.3, True)])
def test_speed_must_be_at_least_the_goal(ratio, is_reached):
    assert Goal(2.2).is_reached(ratio) == is_reached
    assert Goal(2.2).describe() == ">= 2.2"


def test_who_was_not_measured_has_neither_a_speed_up_nor_a_rate():
    case = Case("Reading", "theirs", [Entry("ours", None, 1e9, "not installed"), Entry("theirs", 1.0, 1e9)])
    assert case.speed_up("ours") is None
    assert case.entry("ours").gflops is None
    assert case.speed_up("theirs") == 1
    assert case.entry("theirs").gflops == 1
