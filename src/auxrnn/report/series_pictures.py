"""Series of numbers as curves, all on one scale, aligned at their ends as in a batch.

Dimension letters: `T` steps, `D` channels of a step, `P` points of a curve.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from auxrnn.report import theme
from auxrnn.report.example_rows import (
    CAPTION_HEIGHT,
    HEADER_HEIGHT,
    MARGIN,
    SMALL_SIZE,
    WIDTH,
    Entry,
    Shown,
    choose,
    count_steps,
    draw_header,
    new_page,
    number_steps,
    style,
    write_caption,
)
from auxrnn.report.panel import Box

CURVES_HEIGHT = 76.0
ROW_HEIGHT = CAPTION_HEIGHT + CURVES_HEIGHT + 14.0
AXIS_HEIGHT = 36.0
LEFT = MARGIN + 30.0
MOST_CHANNELS = 8
MOST_POINTS = 4000
PADDING_WIDTH = 80.0
FEW_STEPS = 60


def series_figure(shown: Sequence[Shown], *, title: str) -> Figure:
    """Draw series of one number of channels and any lengths."""
    examples = choose(shown)
    num_channels = examples[0].value_T.shape[1]
    page = new_page(len(examples) * ROW_HEIGHT + AXIS_HEIGHT)
    draw_header(page, title, _explain(examples), _make_key(min(num_channels, MOST_CHANNELS)))
    longest, span = max(len(example.value_T) for example in examples), _find_span(examples)
    for row, example in enumerate(examples):
        top = HEADER_HEIGHT + row * ROW_HEIGHT
        write_caption(page, example.title, left=LEFT, top=top, note=count_steps(len(example.value_T)))
        axes = page.add_axes(Box(LEFT, top + CAPTION_HEIGHT, WIDTH - MARGIN - LEFT, CURVES_HEIGHT))
        style(axes)
        axes.set(xlim=(-longest, 0), ylim=span)
        _draw_values(axes)
        _draw_padding(axes, num_steps=len(example.value_T), longest=longest)
        _draw_curves(axes, example.value_T)
        if row == len(examples) - 1:
            number_steps(axes, name="steps before the end")
    return page.figure


def thin(value_T: Float32[np.ndarray, " T"], *, most: int) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    """Give the points of a curve: all values, or the least and greatest of as many stretches as make `most` points."""
    step_T = np.arange(len(value_T), dtype=np.float64)
    if len(value_T) <= most:
        return step_T, value_T.astype(np.float64)
    edges = np.linspace(0, len(value_T), most // 2 + 1).astype(np.int64)
    least, greatest = np.minimum.reduceat(value_T, edges[:-1]), np.maximum.reduceat(value_T, edges[:-1])
    return np.repeat(step_T[edges[:-1]], 2), np.stack([least, greatest], axis=1).ravel().astype(np.float64)


def _explain(examples: Sequence[Shown]) -> str:
    num_channels = examples[0].value_T.shape[1]
    values = "values" if num_channels <= MOST_CHANNELS else f"first {MOST_CHANNELS} of {num_channels} channels"
    is_padded = len({len(example.value_T) for example in examples}) > 1
    return f"The {values} that the model reads" + (", aligned on the right as in a batch" if is_padded else "")


def _make_key(num_channels: int) -> list[Entry]:
    """Name the channels, where there are several."""
    key = [Entry(f"{channel + 1}", _color(channel)) for channel in range(num_channels)]
    num_solid = len(theme.SERIES)
    if num_channels > num_solid:
        key.insert(num_solid, Entry("dashed", theme.color("muted")))
    return [Entry("channel", theme.color("muted")), *key] if num_channels > 1 else []


def _find_span(examples: Sequence[Shown]) -> tuple[float, float]:
    """Give one scale for all, with a little room at both ends."""
    low = min(float(example.value_T[:, :MOST_CHANNELS].min()) for example in examples)
    high = max(float(example.value_T[:, :MOST_CHANNELS].max()) for example in examples)
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _color(channel: int) -> str:
    return theme.color(theme.series(channel))


def _draw_values(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.grid(axis="y", color=theme.color("rule"), linewidth=0.8)
    axes.set_axisbelow(True)


def _draw_padding(axes: Axes, *, num_steps: int, longest: int) -> None:
    """Hatch what lies before the first step of a shorter series, and say so where there is room."""
    if num_steps == longest:
        return
    pale, white = theme.color("rule"), theme.color("paper")
    axes.axvspan(-longest, -num_steps, facecolor=white, hatch="////", edgecolor=pale, linewidth=0, zorder=2)
    width = (longest - num_steps) / longest * (WIDTH - MARGIN - LEFT)
    if width > PADDING_WIDTH:
        middle = (-(longest + num_steps) / 2, sum(axes.get_ylim()) / 2)
        text = axes.text(*middle, "padding", size=SMALL_SIZE, color=theme.color("muted"), ha="center", va="center")
        text.set(zorder=3, bbox={"facecolor": theme.color("paper"), "edgecolor": "none", "pad": 2})


def _draw_curves(axes: Axes, value_TD: Float32[np.ndarray, "T D"]) -> None:
    """Draw the channels; those beyond the colors of the theme begin again, dashed."""
    # A single step has no line, and of a few steps the lines alone would not show where they are.
    is_marked = len(value_TD) == 1 or axes.get_xlim()[0] >= -FEW_STEPS
    for channel in range(min(value_TD.shape[1], MOST_CHANNELS)):
        step_P, value_P = thin(value_TD[:, channel], most=MOST_POINTS)
        (line,) = axes.plot(step_P - len(value_TD) + 0.5, value_P, color=_color(channel), linewidth=1.2, zorder=4)
        line.set(
            marker="o" if is_marked else "",
            markersize=3,
            linestyle="-" if channel < len(theme.SERIES) else (0, (4, 1.5)),
        )
