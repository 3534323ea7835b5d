"""The page of a study of settings: the best ones, what matters, every trial and how it learned."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from auxrnn.files import write_aside
from auxrnn.report import theme
from auxrnn.report.charts import DASHES, NARROW_BELOW, add_legend, new_figure
from auxrnn.report.pages import load_template
from auxrnn.report.results import Picture, describe_number, find_interval

PANEL_HEIGHT, PANEL_WIDTH = 210.0, 230.0
TENTH = 10
"""Percent of the training with labels between two points of a curve."""

State = Literal["complete", "pruned", "failed", "unfinished"]


class TriedSettings(NamedTuple):
    """One trial: its settings, how they did, and what there is to say."""

    number: int
    state: State
    settings: Mapping[str, Any]
    curve: Mapping[int, float]
    """The best accuracy so far on the validation split, by tenths of the training with labels."""
    accuracy: float | None
    repeats: Sequence[float]
    """Its accuracies with other seeds."""
    reason: str = ""

    @property
    def mean(self) -> float | None:
        """Return its mean accuracy over all seeds."""
        return None if self.accuracy is None else fmean([self.accuracy, *self.repeats])

    @property
    def note(self) -> str:
        """Return how it ended, where that is not its accuracy."""
        stopped = f"stopped early at {max(self.curve.values(), default=0):.1f} %"
        notes = {"complete": "", "pruned": stopped, "failed": f"failed: {self.reason}", "unfinished": "not finished"}
        return "; ".join(filter(None, ["defaults" if self.number == 0 else "", notes[self.state]]))


class TestLook(NamedTuple):
    """How the network that was trained with the best settings does on the test split."""

    accuracy: float
    num_examples: int
    seconds: float

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % confidence interval of the accuracy."""
        return find_interval(self.accuracy / 100 * self.num_examples, self.num_examples)


class StudySummary(NamedTuple):
    """What a page says of a study."""

    data: str
    trials: Sequence[TriedSettings]
    best: TriedSettings
    space: Mapping[str, str]
    """What was searched, in words."""
    ranges: Mapping[str, tuple[float, float]]
    """The ends of what was searched on a logarithmic scale."""
    importances: Mapping[str, float]
    trial_seconds: float
    seconds: float
    look: TestLook | None
    num_looks: int

    def count(self, state: State) -> int:
        """Return how many trials ended so."""
        return sum(trial.state == state for trial in self.trials)


def describe_setting(value: Any) -> str:
    """Return a value as short as it can be told; None has no effect beside the others."""
    return "-" if value is None else describe_number(value) if isinstance(value, float) else str(value)


def write_tuning_page(path: Path, *, study: StudySummary, command: str) -> Path:
    """Write the page and return its path."""
    pictures = {
        "history": Picture(lambda width: history_figure(study, width=width)),
        "curves": Picture(lambda width: curves_figure(study, width=width)),
        "settings": Picture(lambda width: settings_figure(study, width=width)),
    }
    page = load_template("tune.html")
    write_aside(path, page.render(study=study, pictures=pictures, command=command, describe=describe_setting))
    return path


@matplotlib.rc_context(theme.STYLE)
def history_figure(study: StudySummary, *, width: float) -> Figure:
    """Draw the accuracy of every trial in their order, and the best one so far."""
    figure = new_figure(width, 260.0 if width < NARROW_BELOW else 340.0)
    axes = figure.subplots()
    ended = [trial for trial in study.trials if trial.curve]
    color = theme.color("series-3")
    for state, label, face in (("complete", "trained to the end", color), ("pruned", "stopped early", "none")):
        found = [(trial.number, max(trial.curve.values())) for trial in ended if trial.state == state]
        if found:
            x, y = zip(*found, strict=True)
            axes.scatter(x, y, s=36, edgecolors=color, facecolors=face, label=label)
    whole = [trial for trial in ended if trial.state == "complete"]
    if whole:
        best = np.maximum.accumulate([max(trial.curve.values()) for trial in whole])
        axes.step(
            [trial.number for trial in whole], best, where="post", color=theme.color("series-2"), label="best so far"
        )
    first = study.trials[0]
    if first.accuracy is not None:
        axes.axhline(first.accuracy, color=theme.color("muted"), linewidth=1.2, linestyle=DASHES, label="defaults")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set(title="validation accuracy, %", xlabel="trial")
    add_legend(figure, "outside lower left", num_columns=2 if width < NARROW_BELOW else 4)
    return figure


@matplotlib.rc_context(theme.STYLE)
def curves_figure(study: StudySummary, *, width: float) -> Figure:
    """Draw the validation curve of every trial; those that were stopped end early."""
    figure = new_figure(width, 260.0 if width < NARROW_BELOW else 340.0)
    axes = figure.subplots()
    looks = {"pruned": ("open", 1.0), "complete": ("series-3", 1.2)}
    for trial in study.trials:
        if trial.curve and trial.state in looks:
            name, linewidth = looks[trial.state]
            _draw_curve(axes, trial, name, linewidth, "")
    for trial, name, label in ((study.trials[0], "series-2", "defaults"), (study.best, "series-4", "best")):
        if trial.curve:
            _draw_curve(axes, trial, name, 3.0, f"{label} (trial {trial.number})")
    for (name, linewidth), label in zip(looks.values(), ("stopped early", "trained to the end"), strict=True):
        axes.plot([], [], color=theme.color(name), linewidth=linewidth, label=label)
    axes.set(title="best validation accuracy so far, %", xlabel="percent of the training with labels")
    add_legend(figure, "outside lower left", num_columns=2 if width < NARROW_BELOW else 4)
    return figure


def _draw_curve(axes: Axes, trial: TriedSettings, color: str, linewidth: float, label: str) -> None:
    x, y = [TENTH * tenth for tenth in trial.curve], list(trial.curve.values())
    mark = "o" if len(x) == 1 else ""
    axes.plot(x, y, color=theme.color(color), linewidth=linewidth, marker=mark, markersize=4, label=label)


@matplotlib.rc_context(theme.STYLE)
def settings_figure(study: StudySummary, *, width: float) -> Figure:
    """Draw the accuracies of the finished trials over the values of each setting, in a panel each."""
    num_columns = max(1, int(width // PANEL_WIDTH))
    num_rows = -(-len(study.space) // num_columns)
    figure = new_figure(width, num_rows * PANEL_HEIGHT)
    panels = figure.subplots(num_rows, num_columns, squeeze=False, sharey=True).ravel()
    whole = [trial for trial in study.trials if trial.accuracy is not None]
    for axes, name in zip(panels, study.space, strict=False):
        _draw_setting(axes, name, [trial for trial in whole if trial.settings[name] is not None], study)
    for axes in panels[len(study.space) :]:
        axes.set_axis_off()
    return figure


def _draw_setting(axes: Axes, name: str, whole: Sequence[TriedSettings], study: StudySummary) -> None:
    values = [trial.settings[name] for trial in whole]
    accuracies = np.array([trial.accuracy for trial in whole])
    if name in study.ranges:
        axes.set(xscale="log", xlim=study.ranges[name])
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.xaxis.set_major_formatter(lambda value, _place: describe_number(value))
        axes.minorticks_off()
        x = np.array(values, dtype=float)
    else:
        kinds = sorted(set(values), key=lambda value: (isinstance(value, str), value))
        x = np.array([kinds.index(value) for value in values], dtype=float)
        means = [accuracies[x == place].mean() for place in range(len(kinds))]
        axes.plot(range(len(kinds)), means, color=theme.color("muted"), linewidth=1.2)
        axes.set_xticks(range(len(kinds)), [describe_setting(kind) for kind in kinds])
        axes.set_xlim(-0.5, max(len(kinds), 1) - 0.5)
    axes.scatter(x, accuracies, s=22, color=theme.color("series-3"), alpha=0.7)
    importance = f" ({study.importances[name]:.2f})" if name in study.importances else ""
    axes.set_title(f"{name}{importance}")
