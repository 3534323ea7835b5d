"""The charts of reproduced tables and figures: our lines solid with the range of their seeds, the paper's dashed.

Where the paper's axis counts something else than ours, both have their own axes, with the same color for one system.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from auxrnn.report import theme
from auxrnn.report.axis_style import FONT_SIZE, LETTER_WIDTH, mark_values, scale_axis, style_axes
from auxrnn.report.bar_plot import bar_figure
from auxrnn.report.line_ends import LEADER_LENGTH, LINE_HEIGHT, LineEnd, draw_line_ends
from auxrnn.report.panel import Box, Panel, new_figure
from auxrnn.report.plot_key import KeyEntry, draw_key, key_height
from auxrnn.report.results import BarChart, Level, Line, LineChart, describe_number

NARROW_BELOW = 500
FRAME_HEIGHT = 320.0
NARROW_FRAME_HEIGHT = 230.0
TICKS_WIDTH = 50.0
AXIS_HEIGHT = 60.0
HEADING_HEIGHT = 28.0
PANEL_GAP = 36.0
DASHES = (0, (4, 3))
DOTS = (0, (1, 2.5))
DASHES_AND_DOTS = (0, (6, 2, 1, 2))
MARKS = ("o", "s", "^", "D", "v", "P")
# More points than these run into each other: a band instead of whiskers, and no marks.
MOST_MARKED = 12
NO_LEVEL = Level("", None, None)


class View(NamedTuple):
    """What one pair of axes shows; lines without points keep their place, and so the others their colors."""

    heading: str
    x_label: str
    lines: tuple[Line, ...]
    chance: float | None
    level: float | None


def chart_figure(chart: LineChart | BarChart, *, width: float) -> Figure:
    """Draw a chart without its title, at a width of `figures.WIDE` or `figures.NARROW`."""
    return bar_figure(chart, width=width) if isinstance(chart, BarChart) else _line_figure(chart, width=width)


def _line_figure(chart: LineChart, *, width: float) -> Figure:
    is_narrow = width < NARROW_BELOW
    views = _views(chart)
    if not views:
        return _empty_figure(width)
    has_labels = len(views) == 1 and not is_narrow
    names, styles = [] if has_labels else _name_key(chart), _style_key(chart)
    boxes, bottom = _place(views, width=width)
    styles_top = bottom + key_height(names, width=width)
    figure = new_figure(width, styles_top + key_height(styles, width=width))
    for view, box in zip(views, boxes, strict=True):
        _draw_view(Panel(figure, box), chart, view, has_labels=has_labels)
    whole = Panel(figure, Box(0, 0, width, figure.bbox.height))
    draw_key(whole, names, top=bottom)
    draw_key(whole, styles, top=styles_top)
    return figure


def _views(chart: LineChart) -> list[View]:
    """Give one pair of axes, or ours and the paper's where these are not the same; none without points."""
    level = chart.level or NO_LEVEL
    if chart.paper_x_label is None:
        height = level.paper if level.ours is None else level.ours
        views = [View("", chart.x_label, chart.lines, chart.chance, height)]
    else:
        ours = tuple(line._replace(paper=()) for line in chart.lines)
        paper = tuple(line._replace(ours=()) for line in chart.lines)
        views = [
            View("Ours", chart.x_label, ours, chart.chance, level.ours),
            View("The paper", chart.paper_x_label, paper, None, level.paper),
        ]
    return [view for view in views if any(line.ours or line.paper for line in view.lines)]


def _empty_figure(width: float) -> Figure:
    figure = new_figure(width, 2 * LINE_HEIGHT)
    panel = Panel(figure, Box(0, 0, width, 2 * LINE_HEIGHT))
    panel.add_text((0.0, LINE_HEIGHT), "No run of this chart is done yet.", size=FONT_SIZE, color=theme.color("muted"))
    return figure


def _place(views: Sequence[View], *, width: float) -> tuple[list[Box], float]:
    """Put the views side by side, or in a narrow figure below each other; give also where they end."""
    frame_height = NARROW_FRAME_HEIGHT if width < NARROW_BELOW else FRAME_HEIGHT
    height = _top(views[0]) + frame_height + AXIS_HEIGHT
    if width < NARROW_BELOW:
        return [Box(0, index * height, width, height) for index in range(len(views))], len(views) * height
    view_width = (width - PANEL_GAP * (len(views) - 1)) / len(views)
    return [Box(index * (view_width + PANEL_GAP), 0, view_width, height) for index in range(len(views))], height


def _top(view: View) -> float:
    """Give how far below its top the frame of a view begins: there are one or two lines above it."""
    return HEADING_HEIGHT * (2 if view.heading else 1)


def _name_key(chart: LineChart) -> list[KeyEntry]:
    return [
        KeyEntry(line.title, theme.color(theme.series(index)), mark=mark)
        for index, (line, mark) in enumerate(zip(chart.lines, _marks(chart.lines), strict=True))
        if line.ours or line.paper
    ]


def _style_key(chart: LineChart) -> list[KeyEntry]:
    """Say what solid and dashed, whiskers, bands and level lines mean, where they occur."""
    ink, entries = theme.color("ink"), []
    if any(point.low < point.high for line in chart.lines for point in line.ours):
        has_whiskers = all(len(line.ours) <= MOST_MARKED for line in chart.lines)
        entries.append(KeyEntry("ours: mean, lowest and highest seed", ink, mark="|" if has_whiskers else ""))
    elif any(line.ours for line in chart.lines):
        entries.append(KeyEntry("ours", ink))
    if any(line.paper for line in chart.lines):
        entries.append(KeyEntry("the paper", ink, line=DASHES, line_width=1.6))
    if chart.level is not None:
        entries.append(KeyEntry(chart.level.title, ink, line=DASHES_AND_DOTS, line_width=1.4))
    if chart.chance is not None:
        entries.append(KeyEntry(f"guessing: {describe_number(chart.chance)}", ink, line=DOTS, line_width=1.4))
    return entries


def _marks(lines: Sequence[Line]) -> list[str]:
    """Give every line its mark, or none to all of them where one would have too many."""
    most = max(len(points) for line in lines for points in (line.ours, line.paper))
    return [MARKS[index % len(MARKS)] if most <= MOST_MARKED else "" for index in range(len(lines))]


def _draw_view(panel: Panel, chart: LineChart, view: View, *, has_labels: bool) -> None:
    ends = list(_ends(view, is_reversed=chart.is_reversed)) if has_labels else []
    right = LEADER_LENGTH + LETTER_WIDTH * max(len(end.text) for end in ends) if ends else 14.0
    top = _top(view)
    if view.heading:
        panel.add_text((0.0, 12.0), view.heading, size=FONT_SIZE + 1, color=theme.color("ink"), is_bold=True)
    panel.add_text((0.0, top - 19.0), chart.y_label, size=FONT_SIZE, color=theme.color("muted")).set_parse_math(False)
    frame = Box(TICKS_WIDTH, top, panel.box.width - TICKS_WIDTH - right, panel.box.height - AXIS_HEIGHT - top)
    axes = panel.add_axes(frame)
    style_axes(axes, x_label=view.x_label)
    _scale_axes(axes, chart, view)
    for index, (line, mark) in enumerate(zip(view.lines, _marks(chart.lines), strict=True)):
        _draw_line(axes, line, color=theme.color(theme.series(index)), mark=mark)
    for height, style in ((view.chance, DOTS), (view.level, DASHES_AND_DOTS)):
        if height is not None:
            axes.axhline(height, color=theme.color("muted"), linewidth=1.2, linestyle=style, zorder=1)
    draw_line_ends(axes, ends, frame=frame)


def _scale_axes(axes: Axes, chart: LineChart, view: View) -> None:
    """Mark each x that was measured if they are few, else round numbers."""
    ours = [float(point.x) for line in view.lines for point in line.ours]
    paper = [float(x) for line in view.lines for x, _ in line.paper]
    heights = [float(height) for line in view.lines for point in line.ours for height in (point.low, point.high)]
    heights += [float(height) for line in view.lines for _, height in line.paper]
    heights += [float(height) for height in (view.chance, view.level) if height is not None]
    scale_axis(axes, "y", heights, is_log=chart.is_log, most_ticks=6)
    scale_axis(axes, "x", ours + paper, is_log=chart.is_log or chart.is_log_x, most_ticks=5)
    if chart.is_reversed:
        axes.invert_xaxis()
    if len(set(ours + paper)) <= MOST_MARKED:
        ends = [max(ours + paper), min(ours + paper)]
        mark_values(axes, dict.fromkeys(ends + sorted(ours, reverse=True) + sorted(paper, reverse=True)))


def _draw_line(axes: Axes, line: Line, *, color: str, mark: str) -> None:
    if line.paper:
        published = axes.plot(*zip(*line.paper, strict=True), f"{mark}--", color=color, linewidth=1.6, markersize=5)[0]
        published.set(linestyle=DASHES, markerfacecolor=theme.color("paper"), zorder=2)
    if not line.ours:
        return
    x, y, low, high = zip(*line.ours, strict=True)
    axes.plot(x, y, f"{mark}-", color=color, linewidth=2, markersize=6, solid_joinstyle="round", zorder=3)
    if not mark:
        axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0, zorder=2)
    elif any(point.low < point.high for point in line.ours):
        reach = [[point.y - point.low for point in line.ours], [point.high - point.y for point in line.ours]]
        axes.errorbar(x, y, yerr=reach, fmt="none", color=color, elinewidth=1.4, capsize=3.5, zorder=3)


def _ends(view: View, *, is_reversed: bool) -> Iterator[LineEnd]:
    """Name each line where it ends on the right: ours with its last number, or the paper's alone."""
    side = -1 if is_reversed else 1
    for index, line in enumerate(view.lines):
        color = theme.color(theme.series(index))
        if line.ours:
            point = max(line.ours, key=lambda point: side * point.x)
            yield LineEnd(f"{line.title}: {describe_number(point.y)}", point.x, point.y, color)
        elif line.paper:
            x, y = max(line.paper, key=lambda point: side * point[0])
            yield LineEnd(f"{line.title} (paper only)", x, y, color)
