"""Figure 4: accuracy on CIFAR10 as the supervised window shrinks from 300 steps to one and none."""

from collections.abc import Iterator

from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results
from auxrnn.experiments.scales import CIFAR10, OBJECTIVES, Scale
from auxrnn.report.results import Claim, Grid, Level, LineChart, Row, to_line

TITLE = "Figure 4: a shrinking supervised window (CIFAR10)"
SUMMARY = (
    "The same r-LSTM and p-LSTM, pretrained once, with fewer and fewer steps of supervised back-propagation: at one"
    " step labels hardly change the recurrent network, at none they train only the classifier on top."
)
WINDOWS = (300, 200, 100, 50, 1, 0)
PAPER = {
    "r-LSTM": (66.0, 63.0, 60.5, 58.0, 46.1, 37.7),
    "p-LSTM": (64.7, 62.3, 60.4, 58.5, 47.0, 34.9),
}
FULL = table2.LSTM_FULL
PAPER_FULL = table2.PAPER[FULL][2]


def runs(scale: Scale) -> Iterator[Job]:
    """Yield a run for each window and objective, and the fully trained LSTM of Table 2."""
    for seed in scale.seeds:
        for row in OBJECTIVES:
            for window in WINDOWS:
                ours = scale.span(window, CIFAR10)
                yield Job(row, str(window), scale.with_auxiliary(CIFAR10, row, seed=seed, supervised_window=ours))
        yield Job(FULL, "full", scale.lstm(CIFAR10, seed=seed, window="full"))


def claims(results: Results) -> list[Claim]:
    """Judge that two thirds of the window can go, and that a single step, or none, still learns."""
    found = []
    for row in OBJECTIVES:
        text = f"The {row} with a third of the window still beats the LSTM with full back-propagation"
        found.append(results.claim(text, (row, "100"), (FULL, "full")))
        text = f"The {row} loses accuracy from one step to none"
        found.append(results.claim(text, (row, "1"), (row, "0")))
        text = f"The {row} loses accuracy from the whole window to one step"
        found.append(results.claim(text, (row, "300"), (row, "1")))
    return found


def conclude(results: Results) -> str:
    """Return what both get with the longest window, with one step and with none."""
    longest = results.scale.span(WINDOWS[0], CIFAR10)
    text = (
        f"With {longest} steps of supervised back-propagation the r-LSTM classifies {{}} % of the images correctly and"
        " the p-LSTM {} %; with one step {} and {} %, with none {} and {} %. The LSTM with full back-propagation"
        " reaches {} %."
    )
    places = [(row, str(window)) for window in (WINDOWS[0], 1, 0) for row in OBJECTIVES]
    return results.tell(text, *places, (FULL, "full"))


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Return accuracy against the window, and the same numbers as a table."""
    spans = {window: results.scale.span(window, CIFAR10) for window in WINDOWS}
    empty, full = results.cell("", "", None), results.cell(FULL, "full", PAPER_FULL)
    rows = [Row("all", (*[empty] * len(PAPER), full))]
    for place, (window, span) in enumerate(spans.items()):
        cells = (results.cell(row, str(window), numbers[place]) for row, numbers in PAPER.items())
        rows.append(Row(str(span) if span == window else f"{span} (paper {window})", (*cells, empty)))
    lines = tuple(
        to_line(
            row,
            [(spans[w], score) for w in WINDOWS if (score := results.score(row, str(w))) is not None],
            list(zip(WINDOWS, PAPER[row], strict=True)),
        )
        for row in OBJECTIVES
    )
    shrink = results.scale.datasets[CIFAR10].shrink
    chart = LineChart(
        "Accuracy as the supervised window shrinks",
        "steps of supervised back-propagation",
        table2.UNIT,
        lines,
        is_reversed=True,
        paper_x_label=f"steps in the paper, {shrink:g} times as many" if shrink != 1 else None,
        chance=10.0,
        level=Level(FULL, None if full.ours is None else full.ours.mean, PAPER_FULL),
    )
    return [Grid("By supervised window, in steps", table2.UNIT, (*PAPER, FULL), tuple(rows))], [chart]
