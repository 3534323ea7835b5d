"""Accuracy curves with their final figures beside the ends of the lines."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from auxrnn.report import theme
from auxrnn.report.labels import spread_labels
from auxrnn.report.panel import Box, Panel
from auxrnn.report.records import Curve

NARROW_BELOW = 500
FONT_SIZE = 13.0
LINE_HEIGHT = 1.4 * FONT_SIZE
LETTER_WIDTH = 0.64 * FONT_SIZE
LEADER_LENGTH = 20.0


class Label(NamedTuple):
    """A text beside the right end of the axes, and the accuracy it belongs to."""

    text: str
    height: float
    color: str


def draw_curves(panel: Panel, curves: Sequence[Curve], *, chance: float) -> None:
    """Fill the panel with test accuracy against updates; `chance` is the accuracy of guessing, in percent.

    A run without any evaluation has no line, and keeps its color.
    """
    is_narrow = panel.box.width < NARROW_BELOW
    labels = _labels(curves, chance=chance, separator="\n" if is_narrow else "  ")
    letters = max(len(line) for label in labels for line in label.text.split("\n"))
    left, top, bottom = 48.0, LINE_HEIGHT * (2.6 if is_narrow else 1.6), 52.0
    width = panel.box.width - left - LEADER_LENGTH - LETTER_WIDTH * letters
    frame = Box(left, top, width, panel.box.height - top - bottom)

    axes = panel.add_axes(frame)
    _style_axes(axes, is_narrow=is_narrow)
    axes.set_xlim(0, max([1, *(step for curve in curves for step in curve.steps)]))
    axes.set_ylim(0, 100)
    axes.axhline(chance, color=theme.color("muted"), linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    _draw_lines(axes, curves)
    _mark_pretraining(axes, curves, is_narrow=is_narrow)
    _draw_labels(axes, labels, frame=frame)


def _labels(curves: Sequence[Curve], *, chance: float, separator: str) -> list[Label]:
    labels = [Label(f"chance{separator}{chance:.0f} %", chance, theme.color("muted"))]
    for index, curve in enumerate(curves):
        if curve.steps:
            color, accuracy = theme.color(theme.series(index)), curve.accuracies[-1]
            labels.append(Label(f"{curve.title}{separator}{accuracy:.1f} %", accuracy, color))
    return labels


def _style_axes(axes: Axes, *, is_narrow: bool) -> None:
    axes.patch.set_visible(False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(theme.color("muted"))
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"])
    axes.xaxis.set_major_locator(MaxNLocator(3 if is_narrow else 6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    axes.tick_params(colors=theme.color("muted"), labelsize=FONT_SIZE - 1, length=0, pad=6)
    axes.tick_params(axis="x", length=4)
    axes.grid(axis="y", color=theme.color("rule"), linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel("updates, pretraining included", size=FONT_SIZE, color=theme.color("muted"), labelpad=6)


def _draw_lines(axes: Axes, curves: Sequence[Curve]) -> None:
    for index, curve in enumerate(curves):
        color = theme.color(theme.series(index))
        axes.plot(curve.steps, curve.accuracies, color=color, linewidth=2, solid_joinstyle="round", zorder=3)
        axes.plot(curve.steps[-1:], curve.accuracies[-1:], "o", color=color, markersize=6, zorder=4, clip_on=False)


def _mark_pretraining(axes: Axes, curves: Sequence[Curve], *, is_narrow: bool) -> None:
    pretrained = [curve for curve in curves if curve.pretrain_steps]
    if not pretrained:
        return
    for num_steps in sorted({curve.pretrain_steps for curve in pretrained}):
        axes.axvspan(0, num_steps, facecolor=theme.color("band"), edgecolor="none", zorder=0)
        axes.axvline(num_steps, color=theme.color("muted"), linewidth=0.8, zorder=1)
    names = " and ".join(curve.title for curve in pretrained)
    separator = "\n" if is_narrow else " "
    axes.annotate(
        f"{names}:{separator}pretraining, no labels",
        xy=(0, 1),
        xycoords="axes fraction",
        xytext=(0, 8),
        textcoords="offset points",
        size=FONT_SIZE - 1,
        color=theme.color("muted"),
        parse_math=False,
    )


def _draw_labels(axes: Axes, labels: Sequence[Label], *, frame: Box) -> None:
    """Write each label to the right of the axes, as near its height as the others let it."""
    percent_per_pixel = 100 / frame.height
    num_lines = max(label.text.count("\n") + 1 for label in labels)
    line = LINE_HEIGHT * percent_per_pixel
    places = spread_labels([label.height for label in labels], gap=num_lines * line, low=-line, high=100 + line)
    ends = [1 + pixels / frame.width for pixels in (6, LEADER_LENGTH - 4, LEADER_LENGTH)]
    transform = axes.get_yaxis_transform()
    for label, place in zip(labels, places, strict=True):
        leader = [label.height, place]
        axes.plot(ends[:2], leader, color=label.color, linewidth=0.8, transform=transform, clip_on=False)
        text = axes.text(ends[2], place, label.text, size=FONT_SIZE, color=label.color, transform=transform)
        text.set(va="center", parse_math=False)
