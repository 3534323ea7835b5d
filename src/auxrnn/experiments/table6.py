"""Table 6: many short segments against one long one, at the same cost (CIFAR10)."""

import itertools
from collections.abc import Iterator

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results
from auxrnn.experiments.scales import CIFAR10, Scale, shown_as
from auxrnn.report.results import Claim, Grid, LineChart, describe_score

TITLE = "Table 6: n segments of length l at a fixed cost (CIFAR10)"
SUMMARY = (
    "The r-LSTM reconstructs n segments of l steps, with the same n x l in all rows, and one step of supervised"
    " back-propagation or none. The auxiliary loss is back-propagated through l steps."
)
WINDOWS = ("1", "0")
PAPER = {
    "1 x 600": (46.0, 37.4),
    "10 x 60": (46.0, 40.6),
    "20 x 30": (48.0, 41.6),
    "50 x 12": (47.7, 41.0),
    "100 x 6": (47.2, 40.1),
    "200 x 3": (46.2, 37.9),
}
BEST, WORSE = "20 x 30", ("1 x 600", "200 x 3")


def runs(scale: Scale) -> Iterator[Job]:
    """Yield one run for each row and column of the table."""
    for seed, row, window in itertools.product(scale.fewer_seeds, PAPER, WINDOWS):
        shape = _find_shape(scale, row)
        windows = {"supervised_window": int(window), "auxiliary_window": scale.span(shape[1], CIFAR10)}
        config = scale.with_auxiliary(CIFAR10, "r-LSTM", seed=seed, shape=shape, **windows)
        yield Job(row, window, config)


def _find_shape(scale: Scale, row: str) -> tuple[int, int]:
    """Return n and l of a row, with fewer segments where a shrunk l is rounded up to one step: n times l stays."""
    num_segments, length = map(int, row.split(" x "))
    shrink = scale.datasets[CIFAR10].shrink
    return max(1, min(num_segments, round(num_segments * length / shrink / scale.span(length, CIFAR10)))), length


def _title(scale: Scale, row: str) -> str:
    """Return the paper's n and l, with ours where they differ."""
    num_segments, length = _find_shape(scale, row)
    return shown_as(row, ours=f"{num_segments} x {scale.span(length, CIFAR10)}", paper=row)


def claims(results: Results) -> list[Claim]:
    """Judge that 20 segments of 30 beat one of 600 and 200 of 3."""
    return [
        results.claim(f"With a supervised window of {window}, {BEST} beats {other}", (BEST, window), (other, window))
        for window in WINDOWS
        for other in WORSE
    ]


def conclude(results: Results) -> str:
    """Return the best and the worst shape with one step of supervised back-propagation."""
    scores = {row: score for row in PAPER if (score := results.score(row, WINDOWS[0])) is not None}
    if len(scores) < len(PAPER):
        return ""
    worst, *_, best = sorted(scores, key=lambda row: scores[row].mean)
    high, low = (
        f"{describe_score(scores[row], decimals=1)} with {_title(results.scale, row)}" for row in (best, worst)
    )
    return f"Highest test accuracy in % with a supervised window of 1: {high}; lowest: {low}."


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Return the table as the paper prints it; the rows are named by the paper's n and l."""
    rows = results.rows(PAPER, WINDOWS, title=lambda row: _title(results.scale, row))
    columns = tuple(f"window {window}" for window in WINDOWS)
    return [Grid("n x l, by supervised window", "test accuracy, %", columns, rows)], []
