"""The page of a finished run: its curves, what it answers and when, what it remembers, and how it was made."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from jaxtyping import Shaped
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from auxrnn.config import RunConfig, flatten, unflatten
from auxrnn.files import write_aside
from auxrnn.presets import AUXILIARY, MODEL_OPTIONS, PRESETS, find_recipe, name_system
from auxrnn.report import theme
from auxrnn.report.answers import Bins, confusion_figure, reliability_figure
from auxrnn.report.charts import NARROW_BELOW, add_legend, new_figure
from auxrnn.report.pages import load_template
from auxrnn.report.records import Reconstructions
from auxrnn.report.results import Line, LineChart, Picture, describe_number, find_interval, make_point

Events = Sequence[Mapping[str, Any]]
CURVES = {
    "accuracy": ("Accuracy while training", "accuracy, %", ("train_accuracy",)),
    "loss": ("Loss while training", "cross-entropy", ("train_loss", "supervised_loss")),
    "auxiliary_loss": ("Auxiliary loss while training", "loss per step", ("train_auxiliary_loss", "auxiliary_loss")),
}
"""Of each curve its title, its unit, and its names on the training split: all of it, or what was just learned from."""
SPLITS = {"train": "training", "validation": "validation", "test": "test"}
NOT_COMPARED = ("data", "data_dir", "test_data", "unlabeled", "init_from", "threads", "device", "seed")
MOST_MISTAKES, LINE_LETTERS, MOST_LETTERS, MOST_DRAWN, MOST_CHANNELS = 6, 30, 180, 4, 3


class Answers(NamedTuple):
    """How a run classifies some sequences, and how far its probabilities can be trusted."""

    names: Sequence[str]
    confusion: Sequence[Sequence[int]]
    """Counts: true classes in rows, answers in columns."""
    bins: Sequence[Bins]
    """As trained and, if the run has a temperature, with it."""
    calibration_errors: Sequence[float]
    """In percent, of the same."""
    temperature: float

    @property
    def num_examples(self) -> int:
        """Return how many sequences were classified."""
        return sum(map(sum, self.confusion))

    @property
    def mistakes(self) -> list[tuple[int, str, str]]:
        """Return the commonest mistakes: how often, the true class, and what it was taken for."""
        found = [
            (count, self.names[row], self.names[column])
            for row, counts in enumerate(self.confusion)
            for column, count in enumerate(counts)
            if row != column and count
        ]
        return sorted(found, key=lambda mistake: -mistake[0])[:MOST_MISTAKES]


class Course(NamedTuple):
    """When in the sequence a recurrent network makes up its mind."""

    accuracy: Mapping[int | float, float]
    """In percent, by the steps that were read: by their number, or in percent of each sequence."""
    num_steps: int | None
    """Length of the sequences; None if they differ."""

    def find_turn(self, num_examples: int) -> int | float | None:
        """Return where nine tenths of what is gained from the first place to the best one are reached.

        None if the best of so many sequences may be no more than chance.
        """
        first, best = next(iter(self.accuracy.values())), max(self.accuracy.values())
        if best <= find_interval(first / 100 * num_examples, num_examples)[1]:
            return None
        return next(x for x, value in self.accuracy.items() if value >= first + 0.9 * (best - first))

    def describe(self, place: int | float) -> str:
        """Return a place in words: "step 98 of 196", "50 % of the sequence"."""
        return f"{place:.0f} % of the sequence" if self.num_steps is None else f"step {place:.0f} of {self.num_steps:,}"


class ShownSegment(NamedTuple):
    """A segment as it is and as it was rebuilt: an array of numbers, or tokens, equally wide. Steps count from 1."""

    title: str
    first: int
    anchor: int
    true: Shaped[np.ndarray, "S D"] | tuple[str, ...]
    rebuilt: Shaped[np.ndarray, "S D"] | tuple[str, ...]

    @property
    def gap(self) -> str:
        """Return what stands between tokens: nothing between characters."""
        return " " if len(self.true[0]) > 1 else ""

    def split_lines(self) -> list[list[tuple[str, str]]]:
        """Return pairs of true and rebuilt tokens in short lines, those of the first steps of a long segment."""
        width = len(self.true[0] + self.gap)
        pairs, per_line = list(zip(self.true, self.rebuilt, strict=True)), max(1, LINE_LETTERS // width)
        pairs = pairs[: MOST_LETTERS // width]
        return [pairs[start : start + per_line] for start in range(0, len(pairs), per_line)]


class Remembered(NamedTuple):
    """What an r-LSTM rebuilds."""

    shown: Sequence[ShownSegment]
    images: Reconstructions | None
    """The same segments, where they can be shown as parts of images."""
    tokens: str
    """What their tokens are in words: "characters"; empty for numbers."""
    scores: tuple[float, float]
    """Of the rebuilt segments and of the best constant guess: percent of right tokens, or mean squared errors."""
    num_examples: int
    is_reversed: bool


class Findings(NamedTuple):
    """A run, how it was made, and what it shows on one of its splits."""

    folder: str
    config: RunConfig
    num_weights: int
    events: Events
    environment: Mapping[str, Any]
    split: str
    num_examples: int
    """Size of the whole split."""
    answers: Answers
    course: Course | None
    remembered: Remembered | None


def write_run_page(path: Path, *, found: Findings, command: str) -> Path:
    """Write the page of a run, which a command made, and return its path."""
    shown, config, course, remembered = found.answers, found.config, found.course, found.remembered
    result = [event for event in found.events if event["event"] in ("evaluation", "result")][-1]
    score, before = result.get(f"{found.split}_accuracy"), shown.bins[0] if len(shown.bins) > 1 else None
    pictures = {
        "confusion": Picture(lambda width: confusion_figure(shown.names, shown.confusion, width=width)),
        "reliability": Picture(lambda width: reliability_figure(shown.bins[-1], width=width, before=before)),
        "course": course and _make_course_chart(course, num_classes=len(shown.names)),
        "segments": remembered and Picture(lambda width: draw_segments(remembered.shown, width=width)),
    }
    text = load_template("run.html").render(
        found=found,
        command=command,
        system=name_system(config.model.model, config.loss.objective),
        data=Path(config.data.data).name,
        result=result,
        interval=None if score is None else find_interval(score / 100 * found.num_examples, found.num_examples),
        differences=find_differences(config),
        curves=make_curves(found.events, num_classes=len(shown.names)),
        pictures=pictures,
        num_channels=np.shape(remembered.shown[0].true)[-1] if remembered else 0,
        most_channels=MOST_CHANNELS,
    )
    write_aside(path, text)
    return path


def find_settings(config: RunConfig) -> dict[str, Any]:
    """Return the settings of a run that have an effect on its model and objective."""
    unused = MODEL_OPTIONS - set(PRESETS[config.model.model].options)
    unused |= set(AUXILIARY) - {"objective"} if config.loss.objective == "none" else set()
    return {name: value for name, value in flatten(config).items() if name not in unused}


def find_differences(config: RunConfig) -> tuple[str, list[tuple[str, Any, Any]]]:
    """Return the recipe that is nearest to a config, and each setting that differs: name, value, the recipe's value."""
    ours, candidates = find_settings(config), []
    for recipe in ("fast", "paper"):
        theirs = flatten(unflatten({"data": "", "model": config.model.model} | find_recipe(recipe, config.model.model)))
        differing = [(name, value, theirs[name]) for name, value in ours.items() if value != theirs[name]]
        candidates.append((recipe, [each for each in differing if each[0] not in NOT_COMPARED]))
    return min(candidates, key=lambda candidate: len(candidate[1]))


def find_lines(title: str, events: Events, names: Sequence[str], *, is_by_time: bool = False) -> tuple[Line, ...]:
    """Return the curve under the first of some names that there is, by updates or by minutes; none without any."""
    x_name, unit = ("seconds", 60) if is_by_time else ("total_step", 1)
    for kind in ("evaluation", "train"):
        for name in names:
            points = {e[x_name] / unit: e[name] for e in events if e["event"] == kind and name in e}
            if points:
                return (make_line(title, sorted(points.items())),)
    return ()


def make_line(title: str, points: Iterable[tuple[int | float, float]]) -> Line:
    """Return the line through some points."""
    return Line(title, tuple(make_point(x, [y]) for x, y in points))


def make_curves(events: Events, *, num_classes: int) -> list[LineChart]:
    """Return the learning curves of a run, each with all splits that there are."""
    pretraining = max((event["total_step"] for event in events if event["phase"] == "pretrain"), default=0)
    charts = []
    for kind, (title, unit, names) in CURVES.items():
        named = {split: names if split == "train" else (f"{split}_{kind}",) for split in SPLITS}
        lines = sum((find_lines(SPLITS[split], events, each) for split, each in named.items()), ())
        chance = 100 / num_classes if kind == "accuracy" else None
        charts.append(LineChart(title, "updates", unit, lines, chance=chance, pretraining=pretraining))
    rate = find_lines("learning rate", events, ("lr",))
    charts.append(LineChart("Learning rate", "updates", "learning rate", rate, pretraining=pretraining))
    return [chart for chart in charts if chart.lines]


def _make_course_chart(course: Course, *, num_classes: int) -> LineChart:
    unit = "percent of the sequence read" if course.num_steps is None else "steps read"
    line = make_line("accuracy", course.accuracy.items())
    return LineChart("Accuracy on the way", unit, "accuracy, %", (line,), chance=100 / num_classes)


@matplotlib.rc_context(theme.STYLE)
def draw_segments(shown: Sequence[ShownSegment], *, width: float) -> Figure:
    """Draw segments of numbers over their steps: paler as they are, stronger as they were rebuilt."""
    is_narrow = width < NARROW_BELOW
    drawn = shown[: MOST_DRAWN if is_narrow else 2 * MOST_DRAWN]
    num_columns = 1 if is_narrow or len(drawn) == 1 else 2
    num_rows = math.ceil(len(drawn) / num_columns)
    figure = new_figure(width, 150.0 * num_rows + 50.0)
    grid = figure.subplots(num_rows, num_columns, squeeze=False, sharey=True).ravel()
    for axes, segment in zip(grid, drawn, strict=False):
        steps = np.arange(len(segment.true)) + segment.first
        num_channels = np.shape(segment.true)[1]
        for channel in range(min(MOST_CHANNELS, num_channels)):
            color, name = theme.color(theme.series(channel + 2)), f" {channel + 1}" if num_channels > 1 else ""
            true, rebuilt = (np.asarray(part)[:, channel] for part in (segment.true, segment.rebuilt))
            # A value between two gaps is on no line.
            mark = "o" if np.isnan(true).any() else None
            axes.plot(steps, true, color=color, alpha=0.35, linewidth=3, marker=mark, markersize=3, label=f"true{name}")
            axes.plot(steps, rebuilt, color=color, linewidth=1.4, label=f"rebuilt{name}")
        axes.axvline(segment.anchor, color=theme.color("mark"), linewidth=1.2, label="anchor")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.xaxis.set_major_formatter(lambda value, _: describe_number(float(value)))
        axes.set_title(segment.title[:40], color=theme.color("ink"), size="small", pad=4)
    for axes in grid[len(drawn) :]:
        axes.set_axis_off()
    add_legend(figure, "outside lower left", num_columns=2 if is_narrow else 7)
    return figure
