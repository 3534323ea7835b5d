"""Table 6: many short segments against one long one, at the same cost (CIFAR10)."""

from collections.abc import Iterator

from auxrnn.experiments.collected import Place, Results, claim_above
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.pixel_systems import helped, shown_as
from auxrnn.experiments.scales import CIFAR10, Scale
from auxrnn.report.results import Claim, Grid, LineChart, Row, describe_score

TITLE = "Table 6: n segments of length l at a fixed cost (CIFAR10)"
SUMMARY = (
    "The r-LSTM rebuilds n segments of l steps, n times l being the same in all rows, with one step of supervised"
    " back-propagation and with none. The auxiliary loss reaches l steps."
)
PAPER = {
    (1, 600): (46.0, 37.4),
    (10, 60): (46.0, 40.6),
    (20, 30): (48.0, 41.6),
    (50, 12): (47.7, 41.0),
    (100, 6): (47.2, 40.1),
    (200, 3): (46.2, 37.9),
}
WINDOWS = (1, 0)
BEST = (20, 30)


def runs(scale: Scale) -> Iterator[Job]:
    """Yield one run for each row and column of the table."""
    for seed in scale.fewer_seeds:
        for shape in PAPER:
            for window in WINDOWS:
                reach = scale.span(shape[1], CIFAR10)
                config = helped(
                    scale,
                    CIFAR10,
                    "reconstruct",
                    seed=seed,
                    shape=_fit(scale, shape),
                    supervised_window=window,
                    auxiliary_window=reach,
                )
                yield Job(_name(shape), str(window), config)


def _fit(scale: Scale, shape: tuple[int, int]) -> tuple[int, int]:
    """Keep n times l where a shrunk l is rounded up to one step: as many segments fewer."""
    num_segments, length = shape
    shrink = scale.readings[CIFAR10].shrink
    return max(1, min(num_segments, round(num_segments * length / shrink / scale.span(length, CIFAR10)))), length


def _name(shape: tuple[int, int]) -> str:
    return f"{shape[0]} x {shape[1]}"


def _title(scale: Scale, shape: tuple[int, int]) -> str:
    """Name a row by the paper's n and l, and ours where they are others."""
    num_segments, length = _fit(scale, shape)
    ours = _name((num_segments, scale.span(length, CIFAR10)))
    return shown_as(_name(shape), ours=ours, paper=_name(shape))


def claims(results: Results) -> list[Claim]:
    """Judge that 20 segments of 30 beat one of 600 and 200 of 3."""
    found = []
    for window in WINDOWS:
        for other in ((1, 600), (200, 3)):
            text = f"With a supervised window of {window}, {_name(BEST)} beats {_name(other)}"
            found.append(claim_above(results, text, Place(_name(BEST), str(window)), Place(_name(other), str(window))))
    return found


def conclude(results: Results) -> str:
    """Say which shape is best and which is worst, with one step of supervised back-propagation."""
    window = str(WINDOWS[0])
    scores = {shape: score for shape in PAPER if (score := results.score(_name(shape), window)) is not None}
    if len(scores) < len(PAPER):
        return ""
    worst, *_, best = sorted(scores, key=lambda shape: scores[shape].mean)
    ends = (f"{_title(results.scale, shape)} {describe_score(scores[shape], decimals=1)}" for shape in (best, worst))
    return f"Highest and lowest with one step of supervised back-propagation, in %: {', '.join(ends)}."


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Give the table as the paper prints it; the rows are named by the paper's n and l."""
    rows = tuple(
        Row(
            _title(results.scale, shape),
            tuple(results.cell(_name(shape), str(w), n) for w, n in zip(WINDOWS, numbers, strict=True)),
        )
        for shape, numbers in PAPER.items()
    )
    columns = tuple(f"window {window}" for window in WINDOWS)
    return [Grid("n x l, by supervised window", "test accuracy, %", columns, rows)], []
