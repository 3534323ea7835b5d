"""How the axes of charts look and where their ticks stand."""

from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
from matplotlib.transforms import Transform

from auxrnn.report import theme
from auxrnn.report.results import describe_number

FONT_SIZE = 13.0
LETTER_WIDTH = 0.56 * FONT_SIZE
# From this factor between its ends on, a logarithmic axis has enough of 1, 2, 5, 10 to be marked by them.
WIDE_RANGE = 5.0
# Between the outermost values and the frame, as a part of their distance.
ROOM = 0.05


def style_axes(axes: Axes, *, x_label: str) -> None:
    """Leave only the bottom line and a light grid across the heights."""
    axes.patch.set_visible(False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(theme.color("muted"))
    axes.tick_params(colors=theme.color("muted"), labelsize=FONT_SIZE - 1, length=0, pad=6)
    axes.tick_params(axis="x", length=4)
    axes.grid(axis="y", color=theme.color("rule"), linewidth=0.8)
    axes.set_axisbelow(True)
    label = axes.set_xlabel(x_label, size=FONT_SIZE, color=theme.color("muted"), labelpad=6)
    label.set_parse_math(False)


def scale_axis(axes: Axes, which: Literal["x", "y"], values: Sequence[float], *, is_log: bool, most_ticks: int) -> None:
    """Let one axis hold these values with some room around them, and mark it with round numbers.

    A logarithmic axis that must hold 0 is linear below its smallest positive value.
    """
    axis, set_scale = (axes.xaxis, axes.set_xscale) if which == "x" else (axes.yaxis, axes.set_yscale)
    low, high = min(values), max(values)
    if is_log and low > 0:
        set_scale("log")
    elif is_log:
        set_scale("symlog", linthresh=min((value for value in values if value > 0), default=1.0))
    (axes.set_xlim if which == "x" else axes.set_ylim)(*_widen(axis.get_transform(), low, high))
    is_wide = is_log and low > 0 and high / low >= WIDE_RANGE
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if is_wide else MaxNLocator(most_ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: describe_number(value)))
    axis.minorticks_off()


def mark_values(axes: Axes, values: Iterable[float]) -> None:
    """Put the ticks of x at these values, leaving out those whose numbers would touch one placed before."""
    placed: dict[float, float] = {}
    for value in values:
        place = axes.transData.transform((value, axes.get_ylim()[0]))[0]
        room = LETTER_WIDTH * (len(describe_number(value)) + 1)
        if all(
            abs(place - other) >= (room + LETTER_WIDTH * len(describe_number(key))) / 2 for key, other in placed.items()
        ):
            placed[value] = place
    ticks = sorted(placed)
    axes.set_xticks(ticks, [describe_number(tick) for tick in ticks])
    axes.xaxis.minorticks_off()


def _widen(scale: Transform, low: float, high: float) -> tuple[float, float]:
    """Give the ends of an axis with some room beyond these values, as far as the eye sees it."""
    start, end = scale.transform([low, high])
    room = ROOM * (end - start) or ROOM * max(abs(end), 1.0)
    below, above = scale.inverted().transform([start - room, end + room])
    return float(below), float(above)
