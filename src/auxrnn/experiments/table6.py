"""Table 6: n segments of length l at a fixed cost (CIFAR10).

The r-LSTM reconstructs n segments of l steps, with the same n x l in all rows, and one step of supervised
back-propagation or none. The auxiliary loss is back-propagated through l steps.
"""

import itertools
from collections.abc import Iterator

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Shown
from auxrnn.experiments.scales import CIFAR10, Scale, shown_as

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
        yield Job(row, window, scale.config("r-LSTM", CIFAR10, seed=seed, shape=shape, **windows))


def _find_shape(scale: Scale, row: str) -> tuple[int, int]:
    """Return n and l of a row, with fewer segments where a shrunk l is rounded up to one step: n times l stays."""
    num_segments, length = map(int, row.split(" x "))
    shrink = scale.datasets[CIFAR10].shrink
    return max(1, min(num_segments, round(num_segments * length / shrink / scale.span(length, CIFAR10)))), length


def show(results: Results) -> Shown:
    """Return the table as the paper prints it; rows are named by its n and l, with ours where they differ."""
    titles = {}
    for row in PAPER:
        num_segments, length = _find_shape(results.scale, row)
        titles[row] = shown_as(row, ours=f"{num_segments} x {results.scale.span(length, CIFAR10)}", paper=row)
    grid = results.grid("n x l, by supervised window", PAPER, WINDOWS, title=titles.__getitem__)
    grid = grid._replace(columns=tuple(f"window {window}" for window in WINDOWS))
    claims = [
        results.claim(f"With a supervised window of {window}, {BEST} beats {other}", (BEST, window), (other, window))
        for window, other in itertools.product(WINDOWS, WORSE)
    ]
    return Shown([grid], claims=claims, finding=_tell(results, titles))


def _tell(results: Results, titles: dict[str, str]) -> str:
    """Return the best and the worst shape with one step of supervised back-propagation."""
    scores = {titles[row]: score for row in PAPER if (score := results.score(row, WINDOWS[0])) is not None}
    if len(scores) < len(PAPER):
        return ""
    worst, *_, best = sorted(scores, key=lambda title: scores[title].mean)
    high, low = (f"{scores[title].describe()} with {title}" for title in (best, worst))
    return f"Highest test accuracy in % with a supervised window of 1: {high}; lowest: {low}."
