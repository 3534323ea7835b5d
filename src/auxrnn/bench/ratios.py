"""The ratios that the benchmark is about, each with the goal it was given, from the measurements alone."""

from typing import NamedTuple

from auxrnn.bench.results import OURS, Case, Results
from auxrnn.bench.systems import FULL_BPTT, TITLES

# The systems whose memory and speed have a goal.
JUDGED = ("r_lstm_1x600", "r_lstm_20x30")


class Goal(NamedTuple):
    """How large a ratio should be at least or, for what should not grow, at most."""

    bound: float
    is_most: bool = False

    def is_reached(self, ratio: float) -> bool:
        """Tell whether a ratio is as good as asked for."""
        return ratio <= self.bound if self.is_most else ratio >= self.bound

    def describe(self) -> str:
        """Give the goal in a table's words."""
        return f"{'<=' if self.is_most else '>='} {self.bound:g}"


GOALS = {
    "reading_vs_nn_lstm": Goal(2.2),
    "reading_share_of_gemm": Goal(0.6),
    "window_vs_nn_lstm": Goal(1.8),
    "step_20x30_vs_full_bptt": Goal(3.3),
    "step_1x600_vs_full_bptt": Goal(3.3),
    "memory_growth": Goal(1.05, is_most=True),
    "memory_vs_full_bptt": Goal(5.0),
    "streaming_vs_lstm_cell": Goal(3.0),
    "reading_vs_nn_lstm_busy": Goal(2.0),
}


def compute_ratios(results: Results) -> dict[str, float]:
    """Give all ratios by name; but for the growth of memory, more is better."""
    sizes = results.sizes
    step = results.steps[sizes.step_length]
    shortest, longest = min(sizes.memory_lengths), max(sizes.memory_lengths)
    largest = max(_peak(results, system, longest) for system in JUDGED)
    return {
        "reading_vs_nn_lstm": _speed_up(results.reading, OURS),
        "reading_share_of_gemm": _share_of_limit(results.reading),
        "window_vs_nn_lstm": _speed_up(results.window, OURS),
        "step_20x30_vs_full_bptt": _speed_up(step, TITLES["r_lstm_20x30"]),
        "step_1x600_vs_full_bptt": _speed_up(step, TITLES["r_lstm_1x600"]),
        "memory_growth": max(_peak(results, name, longest) / _peak(results, name, shortest) for name in JUDGED),
        "memory_vs_full_bptt": _peak(results, FULL_BPTT, sizes.step_length) / largest,
        "streaming_vs_lstm_cell": _speed_up(results.streaming, OURS),
        "reading_vs_nn_lstm_busy": _speed_up(results.reading_busy, OURS),
    }


def _speed_up(case: Case, contender: str) -> float:
    speed_up = case.speed_up(contender)
    assert speed_up is not None, "what a ratio needs is always measured"
    return speed_up


def _share_of_limit(case: Case) -> float:
    assert case.limit is not None
    ours, limit = case.entry(OURS).gflops, case.limit.gflops
    assert ours is not None
    assert limit is not None
    return ours / limit


def _peak(results: Results, system: str, num_steps: int) -> int:
    peak = results.peak(system, num_steps)
    assert peak is not None, "what a ratio needs is always measured"
    return peak
