"""Line and bar charts: ours solid with the range over seeds, the paper's dashed or as a mark.

Where the paper's x counts something else than ours, each side has axes of its own; a system has the same color in both.
"""

import io
import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator

from auxrnn.report import theme
from auxrnn.report.results import BarChart, Cell, Line, LineChart, describe_number

WIDE, NARROW = 960.0, 370.0
"""Widths of charts in pixels, on a desk and on a phone."""
NARROW_BELOW, BESIDE_FROM = 500, 800
LEGEND_LINE, LEGEND_COLUMN = 21.0, 320.0
MARKS = ("o", "s", "^", "D", "v", "P")
# More points than these run into each other: a band instead of whiskers, and no marks.
MOST_MARKED = 12
# From this factor between its ends on, a logarithmic axis has enough of 1, 2, 5, 10 to be marked by them.
WIDE_RANGE = 5.0
DASHES, DOTS, DASHES_AND_DOTS = (0, (4, 3)), (0, (1, 2.5)), (0, (6, 2, 1, 2))


@matplotlib.rc_context(theme.STYLE)
def chart_figure(chart: LineChart | BarChart, *, width: float, has_title: bool = False) -> Figure:
    """Draw a chart `width` pixels wide; on pages its title is a heading above it."""
    is_narrow = width < NARROW_BELOW
    if isinstance(chart, BarChart):
        figure = new_figure(width, 110.0 + (58.0 if is_narrow else 44.0) * len(chart.bars))
        draw_bars(figure, chart)
    else:
        num_columns = _count_legend_columns(chart, width)
        num_legend_lines = math.ceil((len(chart.lines) + 4) / num_columns) if num_columns else 0
        num_rows = 2 if is_narrow and chart.paper_x_label is not None else 1
        figure = new_figure(width, num_rows * (260.0 if is_narrow else 380.0) + LEGEND_LINE * num_legend_lines)
        draw_lines(figure, chart)
    if has_title:
        add_title(figure, chart.title)
    return figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in pixels."""
    size = (width / theme.PIXELS_PER_INCH, height / theme.PIXELS_PER_INCH)
    return Figure(figsize=size, dpi=theme.PIXELS_PER_INCH, layout="constrained")


def add_title(figure: Figure | SubFigure, title: str) -> None:
    """Write a title above everything else, at the left."""
    figure.suptitle(title, x=0.005, ha="left")


Place = Literal["outside right upper", "outside lower left", "outside lower right"]


def add_legend(figure: Figure | SubFigure, place: Place, *, num_columns: int) -> None:
    """Explain everything that has a label, each label once."""
    found = {one.get_label(): one for axes in figure.axes for one in axes.get_legend_handles_labels()[0]}
    if found:
        figure.legend(handles=list(found.values()), loc=place, ncols=num_columns)


def to_svg(figure: Figure, *, name: str) -> str:
    """Return a figure as an `<svg>` element; `name` tells its ids from those of the page's other figures."""
    buffer = io.StringIO()
    figure.patch.set_visible(False)
    with matplotlib.rc_context(theme.STYLE | {"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    # Equal images have equal ids, which nothing refers to.
    svg = re.sub(r'(<image [^>]*?) id="[^"]*"', r"\1", buffer.getvalue())
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg[svg.index("<svg") :])
    return theme.follow_scheme(svg)


def to_png(figure: Figure) -> bytes:
    """Return a figure on white, twice as fine as a plain screen."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(theme.STYLE):
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _count_legend_columns(chart: LineChart, width: float) -> int:
    """Return the number of columns of the legend below the lines; 0 if there is room for it beside them."""
    return 0 if width >= BESIDE_FROM and chart.paper_x_label is None else max(1, int(width // LEGEND_COLUMN))


def draw_lines(figure: Figure | SubFigure, chart: LineChart) -> None:
    """Fill a figure with the lines of a chart and their legend."""
    width, num_panels = float(figure.bbox.width), 1 if chart.paper_x_label is None else 2
    shape = (num_panels, 1) if width < NARROW_BELOW else (1, num_panels)
    panels = figure.subplots(*shape, squeeze=False).ravel()
    ours, paper = panels[0], panels[-1]
    for place, line in sorted(enumerate(chart.lines), key=lambda pair: -_end(chart, pair[1])):
        _draw_line(ours, paper, chart, place=place, line=line)
    _explain_lines(ours, chart)
    ours.set(title=chart.y_label, xlabel=chart.x_label)
    if paper is not ours:
        ours.set_title(f"Ours: {chart.y_label}")
        paper.set(title=f"The paper: {chart.y_label}", xlabel=chart.paper_x_label)
    for axes in panels:
        _finish_panel(axes, chart, is_ours=axes is ours)
    num_columns = _count_legend_columns(chart, width)
    add_legend(figure, "outside lower left" if num_columns else "outside right upper", num_columns=num_columns or 1)


def _draw_line(ours: Axes, paper: Axes, chart: LineChart, *, place: int, line: Line) -> None:
    color, mark = theme.color(theme.series(place)), MARKS[place % len(MARKS)]
    is_marked = max(len(points) for each in chart.lines for points in (each.ours, each.paper)) <= MOST_MARKED
    if line.paper:
        (published,) = paper.plot(*zip(*line.paper, strict=True), color=color, linewidth=1.6, linestyle=DASHES)
        published.set(marker=mark if is_marked else "", markersize=5, markerfacecolor=theme.color("paper"))
        published.set_label("" if line.ours else f"{line.title} (paper only)")
    if line.ours:
        x, y, low, high = zip(*line.ours, strict=True)
        label = f"{line.title}: {describe_number(_end(chart, line))}"
        # One point, or two beside each other, would not be seen without marks.
        has_mark = is_marked or len(line.ours) <= 2
        ours.plot(x, y, marker=mark if has_mark else "", markersize=6, color=color, zorder=3, label=label)
        if not is_marked:
            ours.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
        elif low != high:
            reach = np.abs(np.subtract([low, high], y))
            ours.errorbar(x, y, yerr=reach, fmt="none", color=color, elinewidth=1.4, zorder=3)


def _end(chart: LineChart, line: Line) -> float:
    """Return the height of a line at its right end."""
    points = [(point.x, point.y) for point in line.ours] or list(line.paper) or [(0.0, 0.0)]
    return (min(points) if chart.is_reversed else max(points))[1]


def _explain_lines(axes: Axes, chart: LineChart) -> None:
    """Add to the legend what solid and dashed lines are, where both are shown or solid ones have ranges."""
    has_range = any(point.low < point.high for line in chart.lines for point in line.ours)
    has_paper = any(line.paper for line in chart.lines)
    look: dict[str, Any] = {"color": theme.color("ink"), "linewidth": 1.6}
    if any(line.ours for line in chart.lines) and (has_range or has_paper):
        what = "mean and range over seeds" if has_range else ""
        axes.plot([], [], **look, label=": ".join(filter(None, ["ours" if has_paper else "", what])))
    if has_paper:
        axes.plot([], [], **look, linestyle=DASHES, label="the paper")


def _finish_panel(axes: Axes, chart: LineChart, *, is_ours: bool) -> None:
    """Add what lines are compared with; axes are marked at measured lengths if logarithmic, else at round numbers."""
    xs: list[float] = sorted({x for line in axes.lines for x in np.asarray(line.get_xdata(), dtype=float).tolist()})
    if not xs:
        axes.text(0.5, 0.5, "No run of this chart is done yet.", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    muted = theme.color("muted")
    if chart.level is not None:
        title, level = chart.level
        has_paper = not is_ours or chart.paper_x_label is None
        height = level.ours.mean if is_ours and level.ours else level.paper if has_paper else None
        if height is not None:
            axes.axhline(height, color=muted, linewidth=1.2, linestyle=DASHES_AND_DOTS, label=title)
    if chart.chance is not None and is_ours:
        label = f"chance: {describe_number(chart.chance)}"
        axes.axhline(chart.chance, color=muted, linewidth=1.2, linestyle=DOTS, label=label)
        axes.set_ylim(bottom=0)
    if chart.pretraining:
        axes.axvspan(0, chart.pretraining, facecolor=theme.color("band"), zorder=0, label="pretraining without labels")
    _scale_axes(axes, chart, xs)


def _scale_axes(axes: Axes, chart: LineChart, xs: Sequence[float]) -> None:
    most_ticks = max(4, int(axes.bbox.width // 75))
    # Counts are marked at whole numbers; minutes need not be.
    is_whole = all(x.is_integer() for x in xs)
    axes.xaxis.set_major_locator(MaxNLocator(most_ticks, integer=is_whole, steps=[1, 2, 2.5, 5, 10]))
    if len(xs) == 1:
        axes.set_xticks(xs)
    if chart.is_log or chart.is_log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(xs, nbins=most_ticks))
    if chart.is_log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if high / low >= WIDE_RANGE else MaxNLocator(5))
    # Beside numbers that are close to each other, three digits may be too few to tell them apart.
    low, high = sorted(axes.get_ylim())
    digits = max(3, 2 + math.ceil(math.log10(max(abs(low), abs(high)) / (high - low))))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: describe_number(float(value), digits))
        axis.minorticks_off()
    if chart.is_reversed:
        axes.invert_xaxis()


def draw_bars(figure: Figure, chart: BarChart) -> None:
    """Fill a figure with one bar per row, its range over seeds, the paper's value and both in numbers."""
    is_narrow = figure.bbox.width < NARROW_BELOW
    axes, rows, bars = figure.subplots(), range(len(chart.bars)), list(chart.bars.values())
    _draw_bars(axes, bars, first=next(iter(chart.bars)))
    axes.set_xlabel(chart.x_label)
    axes.xaxis.set_major_locator(MaxNLocator(3 if is_narrow else 6))
    axes.xaxis.set_major_formatter(lambda value, _: describe_number(float(value)))
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    titles = [textwrap.fill(title, 16 if is_narrow else 34) for title in chart.bars]
    axes.set_yticks(rows, titles, color=theme.color("ink"))
    axes.set_ylim(len(chart.bars) - 0.4, -0.6)
    numbers = axes.secondary_yaxis("right")
    numbers.set_yticks(rows, [_describe_bar(bar) for bar in bars], color=theme.color("ink"))
    numbers.spines["right"].set_visible(False)
    add_legend(figure, "outside lower left", num_columns=1 if is_narrow else 3)


def _draw_bars(axes: Axes, bars: Sequence[Cell], *, first: str) -> None:
    colors = [theme.color("series-1" if row == 0 else "series-3") for row in range(len(bars))]
    means = [bar.ours.mean if bar.ours else 0.0 for bar in bars]
    axes.barh(range(len(bars)), means, height=0.45, color=colors, alpha=0.45)
    ranges = {row: bar.ours for row, bar in enumerate(bars) if bar.ours and len(bar.ours.values) > 1}
    if ranges:
        middles = [score.mean for score in ranges.values()]
        reach = [[score.mean - min(score.values), max(score.values) - score.mean] for score in ranges.values()]
        look: dict[str, Any] = {"fmt": "none", "color": theme.color("ink"), "capsize": 5, "label": "range over seeds"}
        axes.errorbar(middles, list(ranges), xerr=list(zip(*reach, strict=True)), **look)
    if published := [(bar.paper, row) for row, bar in enumerate(bars) if bar.paper is not None]:
        (marks,) = axes.plot(*zip(*published, strict=True), "D", color=theme.color("mark"), label="the paper")
        marks.set(markeredgecolor=theme.color("paper"), markersize=8, zorder=4)
    if bars[0].ours:
        look = {"color": theme.color("muted"), "linewidth": 1, "linestyle": DASHES, "label": f"ours: {first}"}
        axes.axvline(bars[0].ours.mean, **look)


def _describe_bar(bar: Cell) -> str:
    ours = bar.ours.describe() if bar.ours else "not run"
    return ours if bar.paper is None else f"{ours}\npaper {bar.paper:.1f}"
