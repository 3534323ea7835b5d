"""Charts of lines and of bars: ours solid with the range over seeds, the paper's dashed or as a mark.

Where the paper's axis counts something else than ours, both have axes of their own, with the same color for one system.
"""

import io
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator

from auxrnn.report import theme
from auxrnn.report.results import Bar, BarChart, Line, LineChart, describe_number, describe_score

WIDE, NARROW = 960.0, 370.0
"""Widths of charts in pixels, on a desk and on a phone."""
NARROW_BELOW, BESIDE_FROM = 500, 800
LEGEND_LINE = 21.0
MARKS = ("o", "s", "^", "D", "v", "P")
# More points than these run into each other: a band instead of whiskers, and no marks.
MOST_MARKED = 12
# From this factor between its ends on, a logarithmic axis has enough of 1, 2, 5, 10 to be marked by them.
WIDE_RANGE = 5.0
DASHES, DOTS, DASHES_AND_DOTS = (0, (4, 3)), (0, (1, 2.5)), (0, (6, 2, 1, 2))


@matplotlib.rc_context(theme.STYLE)
def chart_figure(chart: LineChart | BarChart, *, width: float, has_title: bool = False) -> Figure:
    """Draw a chart `width` pixels wide; on pages its title is a heading above it."""
    if isinstance(chart, BarChart):
        num_lines = max(title.count("\n") + 1 for title in _wrap_titles(chart, width))
        figure = new_figure(width, 110.0 + max(44.0, 12.0 + 15.0 * num_lines) * len(chart.bars))
        draw_bars(figure, chart)
    else:
        num_rows = max(1, len(_panels(chart))) if width < NARROW_BELOW else 1
        rest = 0.0 if _is_beside(chart, width) else LEGEND_LINE * _count_legend_lines(chart, width)
        figure = new_figure(width, num_rows * (260.0 if width < NARROW_BELOW else 380.0) + rest)
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


def to_svg(figure: Figure, *, name: str) -> str:
    """Return a figure as an `<svg>` element; `name` tells its ids from those of the page's other figures."""
    buffer = io.StringIO()
    figure.patch.set_visible(False)
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context(theme.STYLE | {"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=no_metadata)
    svg = buffer.getvalue()
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg[svg.index("<svg") :])
    return theme.follow_scheme(svg)


def to_png(figure: Figure) -> bytes:
    """Return a figure on white, twice as fine as a plain screen."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(theme.STYLE):
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def draw_lines(figure: Figure | SubFigure, chart: LineChart) -> None:
    """Fill a figure with the lines of a chart and their legend."""
    panels, width = _panels(chart), float(figure.bbox.width)
    if not panels:
        figure.text(0.5, 0.5, "No run of this chart is done yet.", ha="center", color=theme.color("muted"))
        return
    shape = (len(panels), 1) if width < NARROW_BELOW else (1, len(panels))
    for axes, panel in zip(figure.subplots(*shape, squeeze=False).flat, panels, strict=True):
        _draw_panel(axes, panel, most_ticks=max(4, int(axes.bbox.width // 75)))
    handles = _legend(chart)
    if _is_beside(chart, width):
        figure.legend(handles=handles, loc="outside right upper")
    else:
        num_columns = -(-len(handles) // _count_legend_lines(chart, width))
        figure.legend(handles=handles, loc="outside lower left", ncols=num_columns)


def _panels(chart: LineChart) -> list[LineChart]:
    """Return the chart, or ours and the paper's side where their axes are not the same; none without points.

    Lines without points keep their place, and so the others their colors.
    """
    panels = [chart]
    if chart.paper_x_label is not None:
        ours = tuple(line._replace(paper=()) for line in chart.lines)
        paper = tuple(line._replace(ours=()) for line in chart.lines)
        our_level = chart.level and chart.level._replace(paper=None)
        their_level = chart.level and chart.level._replace(ours=None)
        theirs = chart._replace(lines=paper, x_label=chart.paper_x_label, chance=None, level=their_level)
        panels = [
            chart._replace(lines=ours, y_label=f"Ours: {chart.y_label}", level=our_level),
            theirs._replace(y_label=f"The paper: {chart.y_label}"),
        ]
    return [panel for panel in panels if any(line.ours or line.paper for line in panel.lines)]


def _is_beside(chart: LineChart, width: float) -> bool:
    """Return whether there is room for the legend beside the lines."""
    return width >= BESIDE_FROM and chart.paper_x_label is None


def _count_legend_lines(chart: LineChart, width: float) -> int:
    handles = _legend(chart)
    column_width = 52.0 + 7.4 * max([0, *(len(str(handle.get_label())) for handle in handles)])
    return -(-len(handles) // max(1, int(width // column_width)))


def _draw_panel(axes: Axes, chart: LineChart, *, most_ticks: int) -> None:
    axes.set_title(chart.y_label)
    axes.set_xlabel(chart.x_label)
    for index, line in enumerate(chart.lines):
        _draw_line(axes, line, color=theme.color(theme.series(index)), mark=_mark(chart, index))
    if chart.chance is not None:
        axes.axhline(chart.chance, color=theme.color("muted"), linewidth=1.2, linestyle=DOTS, zorder=1)
    level = chart.level and (chart.level.paper if chart.level.ours is None else chart.level.ours)
    if level is not None:
        axes.axhline(level, color=theme.color("muted"), linewidth=1.2, linestyle=DASHES_AND_DOTS, zorder=1)
    if chart.band is not None:
        axes.axvspan(0, chart.band.end, facecolor=theme.color("band"), edgecolor="none", zorder=0)
    if chart.chance is not None:
        axes.set_ylim(bottom=0)
    _scale_axes(axes, chart, most_ticks=most_ticks)


def _scale_axes(axes: Axes, chart: LineChart, *, most_ticks: int) -> None:
    """Mark the lengths that were measured on a logarithmic x, and round numbers elsewhere."""
    axes.xaxis.set_major_locator(MaxNLocator(most_ticks, integer=True, steps=[1, 2, 2.5, 5, 10]))
    if chart.is_log or chart.is_log_x:
        axes.set_xscale("log")
        measured = {point.x for line in chart.lines for point in line.ours} or {
            x for line in chart.lines for x, _ in line.paper
        }
        axes.xaxis.set_major_locator(FixedLocator(sorted(measured), nbins=most_ticks))
    if chart.is_log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if high / low >= WIDE_RANGE else MaxNLocator(5))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: describe_number(float(value))))
        axis.minorticks_off()
    if chart.is_reversed:
        axes.invert_xaxis()


def _mark(chart: LineChart, index: int) -> str:
    """Return the mark of a line; none of all lines where one of them would have too many."""
    most = max(len(points) for line in chart.lines for points in (line.ours, line.paper))
    return MARKS[index % len(MARKS)] if most <= MOST_MARKED else ""


def _draw_line(axes: Axes, line: Line, *, color: str, mark: str) -> None:
    if line.paper:
        published = axes.plot(*zip(*line.paper, strict=True), marker=mark, color=color, linewidth=1.6, markersize=5)[0]
        published.set(linestyle=DASHES, markerfacecolor=theme.color("paper"), zorder=2)
    if not line.ours:
        return
    x, y, low, high = zip(*line.ours, strict=True)
    axes.plot(x, y, marker=mark, color=color, markersize=6, zorder=3)
    if not mark:
        axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0, zorder=2)
    elif low != high:
        reach = [[point.y - point.low for point in line.ours], [point.high - point.y for point in line.ours]]
        axes.errorbar(x, y, yerr=reach, fmt="none", color=color, elinewidth=1.4, zorder=3)


def _legend(chart: LineChart) -> list[Line2D | Patch]:
    """Return the lines from the highest end down, with our last value, then what kinds of lines mean."""
    ink = theme.color("ink")
    names: list[Line2D | Patch] = [
        Line2D(
            [], [], color=theme.color(theme.series(index)), marker=_mark(chart, index), label=_describe_end(chart, line)
        )
        for index, line in sorted(enumerate(chart.lines), key=lambda pair: -_end(chart, pair[1]))
        if line.ours or line.paper
    ]
    has_range = any(point.low < point.high for line in chart.lines for point in line.ours)
    has_paper = any(line.paper for line in chart.lines)
    kinds: dict[str, tuple[Any, bool]] = {
        "ours: mean and range over seeds" if has_range else "ours": ("-", has_range or has_paper),
        "the paper": (DASHES, has_paper),
        chart.level.title if chart.level else "": (DASHES_AND_DOTS, chart.level is not None),
        f"chance: {describe_number(chart.chance or 0)}": (DOTS, chart.chance is not None),
    }
    names += [
        Line2D([], [], color=ink, linewidth=1.6, linestyle=style, label=label)
        for label, (style, is_shown) in kinds.items()
        if is_shown
    ]
    return names + ([Patch(color=theme.color("band"), label=chart.band.title)] if chart.band else [])


def _end(chart: LineChart, line: Line) -> float:
    """Return the height of a line at its right end."""
    points = [(point.x, point.y) for point in line.ours] or list(line.paper) or [(0.0, 0.0)]
    return (min(points) if chart.is_reversed else max(points))[1]


def _describe_end(chart: LineChart, line: Line) -> str:
    if not line.ours:
        return f"{line.title} (paper only)"
    return f"{line.title}: {describe_number(_end(chart, line))}"


def draw_bars(figure: Figure | SubFigure, chart: BarChart) -> None:
    """Fill a figure with one bar per row, its range over seeds, the paper's value and both in numbers."""
    is_narrow = figure.bbox.width < NARROW_BELOW
    axes = figure.subplots()
    for row, bar in enumerate(chart.bars):
        _draw_bar(axes, bar, row=row)
    if chart.bars[0].ours:
        axes.axvline(chart.bars[0].ours.mean, color=theme.color("muted"), linewidth=1, linestyle=DASHES, zorder=1)
    axes.set_xlabel(chart.x_label)
    axes.xaxis.set_major_locator(MaxNLocator(3 if is_narrow else 6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: describe_number(float(value))))
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    rows = range(len(chart.bars))
    axes.set_yticks(rows, _wrap_titles(chart, float(figure.bbox.width)), color=theme.color("ink"))
    axes.set_ylim(len(chart.bars) - 0.4, -0.6)
    numbers = axes.secondary_yaxis("right")
    numbers.set_yticks(rows, _describe_bars(chart.bars), color=theme.color("ink"))
    numbers.spines["right"].set_visible(False)
    figure.legend(handles=_bar_legend(chart), loc="outside lower left", ncols=1 if is_narrow else 3)


def _wrap_titles(chart: BarChart, width: float) -> list[str]:
    return [textwrap.fill(bar.title, 16 if width < NARROW_BELOW else 34) for bar in chart.bars]


def _draw_bar(axes: Axes, bar: Bar, *, row: int) -> None:
    color = theme.color("series-3" if row else "series-1")
    mean = bar.ours.mean if bar.ours else 0.0
    axes.barh(row, mean, height=0.45, color=color, alpha=0.45)
    if bar.ours and len(bar.ours.values) > 1:
        reach = [[mean - min(bar.ours.values)], [max(bar.ours.values) - mean]]
        axes.errorbar([mean], [row], xerr=reach, fmt="none", color=color, capsize=5, zorder=3)
    if bar.paper is not None:
        edge = theme.color("paper")
        axes.plot(bar.paper, row, "D", color=theme.color("mark"), markeredgecolor=edge, markersize=8, zorder=4)


def _describe_bars(bars: Sequence[Bar]) -> list[str]:
    """Return our number and the paper's for each bar, with a decimal less where numbers are large."""
    values = [value for bar in bars for value in (bar.ours.mean if bar.ours else 0.0, bar.paper or 0.0)]
    decimals = 1 if max(map(abs, values)) >= 10 else 2
    ours = [describe_score(bar.ours, decimals=decimals) if bar.ours else "not run" for bar in bars]
    paper = ["" if bar.paper is None else f"\npaper {bar.paper:.{decimals}f}" for bar in bars]
    return [our + their for our, their in zip(ours, paper, strict=True)]


def _bar_legend(chart: BarChart) -> list[Line2D]:
    muted = theme.color("muted")
    entries = []
    if any(bar.ours and len(bar.ours.values) > 1 for bar in chart.bars):
        entries.append(Line2D([], [], color=theme.color("series-3"), marker="|", label="range over seeds"))
    if any(bar.paper is not None for bar in chart.bars):
        entries.append(Line2D([], [], color=theme.color("mark"), marker="D", linestyle="", label="the paper"))
    if chart.bars[0].ours:
        label = f"ours: {chart.bars[0].title}"
        entries.append(Line2D([], [], color=muted, linewidth=1, linestyle=DASHES, label=label))
    return entries
