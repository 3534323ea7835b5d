"""Figure 4: a shrinking supervised window (CIFAR10).

The same r-LSTM and p-LSTM, pretrained once, with fewer and fewer steps of supervised back-propagation: at one step
labels hardly change the recurrent network, at none they train only the classifier on top.
"""

import itertools
from collections.abc import Iterator

from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import ACCURACY, Results, Shown
from auxrnn.experiments.scales import CIFAR10, Scale
from auxrnn.report.results import Claim, LineChart

WINDOWS = (300, 200, 100, 50, 1, 0)
PAPER = {"r-LSTM": (66.0, 63.0, 60.5, 58.0, 46.1, 37.7), "p-LSTM": (64.7, 62.3, 60.4, 58.5, 47.0, 34.9)}
FULL = table2.LSTM_FULL
PAPER_FULL = table2.PAPER[FULL][2]


def runs(scale: Scale) -> Iterator[Job]:
    """Yield a run for each window and objective, and the fully trained LSTM of Table 2."""
    for seed in scale.seeds:
        for row, window in itertools.product(PAPER, WINDOWS):
            ours = scale.span(window, CIFAR10)
            yield Job(row, str(window), scale.config(row, CIFAR10, seed=seed, supervised_window=ours))
        yield Job(FULL, "full", scale.config("LSTM", CIFAR10, seed=seed, window="full"))


def show(results: Results) -> Shown:
    """Return accuracy against the window, and the same numbers as a table."""
    spans = {str(window): results.scale.span(window, CIFAR10) for window in WINDOWS}
    titles = (str(span) if span == int(window) else f"{span} (paper {window})" for window, span in spans.items())
    paper = {row: (None, *numbers) for row, numbers in PAPER.items()} | {FULL: (PAPER_FULL, *[None] * len(WINDOWS))}
    grid = results.grid("By supervised window, in steps", paper, ("full", *spans))
    grid = grid._replace(columns=("all", *titles)).transpose()
    shrink = results.scale.datasets[CIFAR10].shrink
    chart = LineChart(
        "Accuracy as the supervised window shrinks",
        "steps of supervised back-propagation",
        ACCURACY,
        tuple(results.line(row, spans, list(zip(WINDOWS, numbers, strict=True))) for row, numbers in PAPER.items()),
        is_reversed=True,
        paper_x_label=f"steps in the paper, {shrink:g} times as many" if shrink != 1 else None,
        chance=10.0,
        level=(FULL, results.cell(FULL, "full", PAPER_FULL)),
    )
    text = (
        f"With {spans['300']} steps of supervised back-propagation the r-LSTM classifies {{}} % of the images correctly"
        " and the p-LSTM {} %; with one step {} and {} %, with none {} and {} %. The LSTM with full back-propagation"
        " reaches {} %."
    )
    finding = results.tell(text, *((row, window) for window in ("300", "1", "0") for row in PAPER), (FULL, "full"))
    return Shown([grid], [chart], list(_claims(results)), finding)


def _claims(results: Results) -> Iterator[Claim]:
    """Judge that two thirds of the window can go, and that a single step, or none, still learns."""
    for row in PAPER:
        text = f"The {row} with a third of the window still beats the LSTM with full back-propagation"
        yield results.claim(text, (row, "100"), (FULL, "full"))
        yield results.claim(f"The {row} loses accuracy from one step to none", (row, "1"), (row, "0"))
        yield results.claim(f"The {row} loses accuracy from the whole window to one step", (row, "300"), (row, "1"))
