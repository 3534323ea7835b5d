"""The page that compares several runs: curves over each other, what differs, accuracies and a paired test."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from auxrnn.files import write_aside
from auxrnn.report.pages import load_template
from auxrnn.report.results import LineChart, find_interval
from auxrnn.report.run_pages import CURVES, SPLITS, Events, find_lines


class Compared(NamedTuple):
    """One run, and which sequences of a split it classifies correctly."""

    title: str
    settings: dict[str, Any]
    """Those that change what is learned."""
    num_weights: int
    events: Events
    examples: str
    """The same for runs that were tested on the same sequences with the same labels."""
    is_right: Sequence[bool]

    @property
    def accuracy(self) -> float:
        """Return the right answers in percent."""
        return 100 * sum(self.is_right) / len(self.is_right)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % confidence interval of the accuracy in percent."""
        return find_interval(sum(self.is_right), len(self.is_right))


class Pair(NamedTuple):
    """Two runs on the same sequences: how many each alone has right, and how likely that is by chance."""

    first: str
    second: str
    only_first: int
    only_second: int
    p_value: float


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p-value of McNemar's test: of a fair coin that decides who alone is right."""
    from scipy.stats import binomtest  # noqa: PLC0415 - slow to import

    number = only_first + only_second
    return float(binomtest(only_first, number).pvalue) if number else 1.0


def make_pairs(runs: Sequence[Compared]) -> list[Pair]:
    """Return every pair of runs that were tested on the same sequences."""
    pairs = []
    for one, other in itertools.combinations(runs, 2):
        if one.examples == other.examples:
            both = list(zip(one.is_right, other.is_right, strict=True))
            counts = both.count((True, False)), both.count((False, True))
            pairs.append(Pair(one.title, other.title, *counts, mcnemar(*counts)))
    return pairs


def find_differing(runs: Sequence[Compared]) -> dict[str, list[Any]]:
    """Return the settings in which runs differ, each with its value of every run; None where it has no effect."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    values = {name: [run.settings[name] for run in runs if name in run.settings] for name in names}
    differing = [name for name, found in values.items() if any(value != found[0] for value in found)]
    return {name: [run.settings.get(name) for run in runs] for name in differing}


def _make_charts(runs: Sequence[Compared]) -> list[LineChart]:
    """Return a chart for each kind of curve that any run has, and the accuracies also by time."""
    charts = []
    for kind, is_by_time in [*((kind, False) for kind in CURVES), ("accuracy", True)]:
        title, unit, training = CURVES[kind]
        # All of one split, so that they can be compared: the validation split before the test split.
        names = {"validation": (f"validation_{kind}",), "test": (f"test_{kind}",), "train": training}
        lines = {
            split: sum((find_lines(run.title, run.events, each, is_by_time=is_by_time) for run in runs), ())
            for split, each in names.items()
        }
        split = max(lines, key=lambda split: len(lines[split]))
        x_label = "minutes of training" if is_by_time else "updates"
        where = f"{title}, by time" if is_by_time else title
        charts.append(LineChart(f"{where} ({SPLITS[split]} split)", x_label, unit, lines[split]))
    return [chart for chart in charts if chart.lines]


def write_comparison_page(path: Path, *, runs: Sequence[Compared], split: str, command: str) -> Path:
    """Write the page and return its path."""
    text = load_template("compare.html").render(
        runs=runs,
        split=split,
        command=command,
        charts=_make_charts(runs),
        differing=find_differing(runs),
        pairs=make_pairs(runs),
        others=[run.title for run in runs if run.examples != runs[0].examples],
    )
    write_aside(path, text)
    return path
