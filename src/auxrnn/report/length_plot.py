"""What a training step costs as sequences grow: time beside the paper's (the lower half of its Figure 3), and memory.

Both axes are logarithmic: a factor is the same distance everywhere, a cost in proportion to the length rises by one
decade in a decade, and one that does not depend on the length stays level.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from auxrnn.report import theme
from auxrnn.report.axis_style import FONT_SIZE, style_axes
from auxrnn.report.figures import to_png
from auxrnn.report.line_ends import LineEnd, draw_line_ends
from auxrnn.report.panel import Box, Panel, new_figure

WIDTH, HEIGHT = 960.0, 520.0
FRAME = Box(76.0, 96.0, 600.0, 350.0)
DASHES = (0, (4, 3))
# Room between the outermost points and the frame, as a factor.
MARGIN = 1.15
# Round numbers of a decade, about evenly spaced on a logarithmic axis.
ROUND_NUMBERS = (1, 2, 5)


class LengthCurve(NamedTuple):
    """One system: a cost by the length of the sequences, as measured here and as published; either may be empty."""

    title: str
    here: Mapping[int, float]
    paper: Mapping[int, float]


class Texts(NamedTuple):
    """What a figure says: its title, what its lines are, and the unit of its heights."""

    title: str
    explanation: str
    unit: str


def time_png(curves: Sequence[LengthCurve], *, num_sequences: int, num_threads: int) -> bytes:
    """Draw seconds against length; the paper's are dashed."""
    title = f"Time of one training step with {num_sequences} sequences"
    ours = f"Solid: measured here on {_count_threads(num_threads)}"
    explanation = f"{ours}. Dashed: the paper, on a P100 GPU, which full BPTT did not fit beyond 12,544."
    return to_png(length_figure(curves, Texts(title, explanation, "s")))


def memory_png(curves: Sequence[LengthCurve], *, num_sequences: int, num_threads: int) -> bytes:
    """Draw gibibytes against length."""
    title = f"Peak memory of one training step with {num_sequences} sequences"
    explanation = f"Resident memory beyond weights and input, measured here on {_count_threads(num_threads)}."
    return to_png(length_figure(curves, Texts(title, explanation, "GiB")))


def length_figure(curves: Sequence[LengthCurve], texts: Texts) -> Figure:
    """Draw all curves, with the last cost of each beside the end of its line; at least one must have a point."""
    figure = new_figure(WIDTH, HEIGHT)
    panel = Panel(figure, Box(0, 0, WIDTH, HEIGHT))
    panel.add_text((24.0, 32.0), texts.title, size=16.0, color=theme.color("ink"), is_bold=True)
    panel.add_text((24.0, 60.0), texts.explanation, size=FONT_SIZE, color=theme.color("muted"))
    axes = panel.add_axes(FRAME)
    _scale_axes(axes, curves, unit=texts.unit)
    style_axes(axes, x_label="steps of a sequence (both axes are logarithmic)")
    for index, curve in enumerate(curves):
        _draw_curve(axes, curve, color=theme.color(theme.series(index)))
    draw_line_ends(axes, _name_ends(curves, unit=texts.unit), frame=FRAME)
    return figure


def _count_threads(num_threads: int) -> str:
    return "1 thread" if num_threads == 1 else f"{num_threads} threads"


def _scale_axes(axes: Axes, curves: Sequence[LengthCurve], *, unit: str) -> None:
    """Mark the lengths that were measured here, and round costs."""
    lengths = [length for curve in curves for length in (*curve.here, *curve.paper)]
    costs = [cost for curve in curves for cost in (*curve.here.values(), *curve.paper.values())]
    low, high = min(costs) / MARGIN, max(costs) * MARGIN
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(min(lengths) / MARGIN, max(lengths))
    axes.set_ylim(low, high)
    marked = sorted({length for curve in curves for length in curve.here})
    axes.set_xticks(marked, [f"{length:,}" for length in marked])
    heights = list(_round_numbers(low, high))
    axes.set_yticks(heights, [f"{height:g} {unit}" for height in heights])
    axes.minorticks_off()


def _round_numbers(low: float, high: float) -> Iterator[float]:
    for exponent in range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1):
        for number in ROUND_NUMBERS:
            if low <= number * 10.0**exponent <= high:
                yield number * 10.0**exponent


def _draw_curve(axes: Axes, curve: LengthCurve, *, color: str) -> None:
    paper, here = sorted(curve.paper), sorted(curve.here)
    published = axes.plot(paper, [curve.paper[length] for length in paper], color=color, linewidth=1.4)[0]
    measured = axes.plot(here, [curve.here[length] for length in here], "o-", color=color, linewidth=2, markersize=5)[0]
    published.set(linestyle=DASHES, clip_on=False)
    measured.set(clip_on=False, zorder=3)


def _name_ends(curves: Sequence[LengthCurve], *, unit: str) -> list[LineEnd]:
    """Name each curve with its last cost, and with the paper's at the same length."""
    ends = []
    for index, curve in enumerate(curves):
        if curve.here:
            length, cost = max(curve.here.items())
            paper = f", paper {curve.paper[length]:.1f} {unit}" if length in curve.paper else ""
            color = theme.color(theme.series(index))
            ends.append(LineEnd(f"{curve.title}  {cost:.3g} {unit}{paper}", length, cost, color))
    return ends
