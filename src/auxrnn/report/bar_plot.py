"""Bars with the range of their seeds, and the paper's number as a mark on the same axis."""

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from auxrnn.report import theme
from auxrnn.report.axis_style import FONT_SIZE, LETTER_WIDTH, style_axes
from auxrnn.report.panel import Box, Panel, new_figure
from auxrnn.report.plot_key import KeyEntry, draw_key, key_height
from auxrnn.report.results import Bar, BarChart, describe_number, describe_score

NARROW_BELOW = 500
BAR_HEIGHT = 16.0
HEADER_HEIGHT = 26.0
AXIS_HEIGHT = 60.0
LINE_HEIGHT = 1.3 * FONT_SIZE
COLUMN_GAP = 16.0
TITLE_LETTERS = 34


class Layout(NamedTuple):
    """Where things stand: the height of a row, of a bar's middle in it, and the columns of titles, bars and numbers."""

    row_height: float
    bar_middle: float
    title_middle: float
    title_letters: int
    bars_left: float
    bars_width: float
    ours_right: float


def bar_figure(chart: BarChart, *, width: float) -> Figure:
    """Draw one bar a row with its numbers at the right; a narrow figure has the titles above the bars."""
    numbers = _numbers(chart)
    layout = _lay_out(chart, numbers, width=width)
    rows_height = layout.row_height * len(chart.bars)
    key = _key(chart)
    key_top = HEADER_HEIGHT + rows_height + AXIS_HEIGHT
    figure = new_figure(width, key_top + key_height(key, width=width))
    panel = Panel(figure, Box(0, 0, width, figure.bbox.height))
    axes = panel.add_axes(Box(layout.bars_left, HEADER_HEIGHT, layout.bars_width, rows_height))
    _scale_axes(axes, chart, rows_height=rows_height)
    for index, bar in enumerate(chart.bars):
        _draw_bar(axes, bar, middle=index * layout.row_height + layout.bar_middle, is_first=index == 0)
    _draw_reference(axes, chart.bars[0])
    _write_titles(panel, chart.bars, layout)
    _write_numbers(panel, numbers, layout)
    draw_key(panel, key, top=key_top)
    return figure


def _numbers(chart: BarChart) -> list[tuple[str, str]]:
    """Give the texts of both sides of each bar, with a decimal less where numbers are large."""
    largest = max([0.0, *(abs(value) for bar in chart.bars for value in _values(bar))])
    decimals = 1 if largest >= 10 else 2
    ours = [describe_score(bar.ours, decimals=decimals) if bar.ours else "not run" for bar in chart.bars]
    paper = ["-" if bar.paper is None else f"{bar.paper:.{decimals}f}" for bar in chart.bars]
    return list(zip(ours, paper, strict=True))


def _values(bar: Bar) -> list[float]:
    paper = () if bar.paper is None else (bar.paper,)
    return [float(value) for value in (*(bar.ours.values if bar.ours else ()), *paper)]


def _lay_out(chart: BarChart, numbers: Sequence[tuple[str, str]], *, width: float) -> Layout:
    ours_width, paper_width = (
        LETTER_WIDTH * max(len(header), *(len(text) for text in texts))
        for header, texts in zip(("ours", "paper"), zip(*numbers, strict=True), strict=True)
    )
    right = width - paper_width - COLUMN_GAP
    bars_right = right - ours_width - COLUMN_GAP
    if width < NARROW_BELOW:
        return Layout(56.0, 40.0, 16.0, int(width / LETTER_WIDTH), 4.0, bars_right - 4.0, right)
    titles = [textwrap.wrap(bar.title, TITLE_LETTERS) for bar in chart.bars]
    left = COLUMN_GAP + LETTER_WIDTH * max(len(line) for lines in titles for line in lines)
    row_height = max(38.0, 12.0 + LINE_HEIGHT * max(map(len, titles)))
    return Layout(row_height, row_height / 2, row_height / 2, TITLE_LETTERS, left, bars_right - left, right)


def _scale_axes(axes: Axes, chart: BarChart, *, rows_height: float) -> None:
    """Let heights count pixels from the top, and lengths begin at 0, so that bars can be compared by eye."""
    style_axes(axes, x_label=chart.x_label)
    values = [value for bar in chart.bars for value in _values(bar)]
    low, high = min([0.0, *values]), max([0.0, *values]) or 1.0
    axes.set(xlim=(low * 1.04, high * 1.04), ylim=(rows_height, 0))
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: describe_number(value)))
    axes.grid(axis="x", color=theme.color("rule"), linewidth=0.8)


def _draw_bar(axes: Axes, bar: Bar, *, middle: float, is_first: bool) -> None:
    color = theme.color("series-1" if is_first else "series-3")
    if bar.ours:
        axes.barh([middle], [bar.ours.mean], height=BAR_HEIGHT, color=color, alpha=0.45)
    if bar.ours and len(bar.ours.values) > 1:
        ends = [min(bar.ours.values), max(bar.ours.values)]
        axes.plot(ends, [middle, middle], "|-", color=color, markersize=0.7 * BAR_HEIGHT, markeredgewidth=2, zorder=3)
    if bar.paper is not None:
        edge = theme.color("paper")
        axes.plot([bar.paper], [middle], "D", color=theme.color("mark"), markeredgecolor=edge, markersize=8, zorder=4)


def _draw_reference(axes: Axes, first: Bar) -> None:
    if first.ours:
        axes.axvline(first.ours.mean, color=theme.color("muted"), linewidth=1, linestyle=(0, (4, 3)), zorder=1)


def _write_titles(panel: Panel, bars: Sequence[Bar], layout: Layout) -> None:
    for index, bar in enumerate(bars):
        title = "\n".join(textwrap.wrap(bar.title, layout.title_letters))
        place = (0.0, HEADER_HEIGHT + index * layout.row_height + layout.title_middle)
        text = panel.add_text(place, title, size=FONT_SIZE, color=theme.color("ink"), is_bold=index == 0)
        text.set(va="center", parse_math=False)
        # In a narrow figure the grid runs below the titles.
        text.set_bbox({"facecolor": theme.color("paper"), "edgecolor": "none", "pad": 1.0})


def _write_numbers(panel: Panel, numbers: Sequence[tuple[str, str]], layout: Layout) -> None:
    ink, muted, right = theme.color("ink"), theme.color("muted"), panel.box.width
    panel.add_text((layout.ours_right, 12.0), "ours", size=FONT_SIZE, color=muted, align="right")
    panel.add_text((right, 12.0), "paper", size=FONT_SIZE, color=muted, align="right")
    for index, (ours, paper) in enumerate(numbers):
        height = HEADER_HEIGHT + index * layout.row_height + layout.bar_middle
        panel.add_text((layout.ours_right, height), ours, size=FONT_SIZE, color=ink, align="right")
        panel.add_text((right, height), paper, size=FONT_SIZE, color=muted, align="right")


def _key(chart: BarChart) -> list[KeyEntry]:
    entries = []
    if any(bar.ours and len(bar.ours.values) > 1 for bar in chart.bars):
        entries.append(KeyEntry("lowest to highest seed", theme.color("series-3"), mark="|"))
    if any(bar.paper is not None for bar in chart.bars):
        entries.append(KeyEntry("the paper", theme.color("mark"), line="", mark="D"))
    if chart.bars[0].ours:
        entries.append(KeyEntry(f"ours: {chart.bars[0].title}", theme.color("muted"), line=(0, (4, 3)), line_width=1.0))
    return entries
