import re
from functools import cache
from itertools import combinations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from auxrnn.report import theme
from auxrnn.report.charts import MARKS, NARROW, WIDE, chart_figure, to_png, to_svg
from auxrnn.report.results import BarChart, Cell, Line, LineChart, Point
from made_up_results import (
    BARS,
    CHARTS,
    CURVES,
    LENGTHS,
    LOG_CHART,
    REVERSED,
    SYSTEMS,
    TWO_PANELS,
    make_lines,
    make_score,
)

SERIES = [theme.series(place) for place in range(theme.NUM_SERIES)]


@cache
def draw_by_title(title, width):
    (chart,) = [chart for chart in CHARTS if chart.title == title]
    return chart_figure(chart, width=width)


def draw(chart, width):
    return draw_by_title(chart.title, width)


def texts_of(figure):
    """All texts that are shown, those of ticks and legends among them, with their boxes in pixels."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        texts += [axes.xaxis.label, axes._left_title]
        texts += [
            label for part in (axes, *axes.child_axes) for axis in (part.xaxis, part.yaxis) for label in ticks(axis)
        ]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()]


def ticks(axis):
    low, high = sorted(axis.get_view_interval())
    return [
        label for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True) if low <= place <= high
    ]


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def lines_through(axes, heights):
    return [line for line in axes.lines if list(line.get_ydata()) == pytest.approx(list(heights))]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.title)
def test_texts_overlap_neither_each_other_nor_the_edge_of_the_figure(chart, width):
    figure = draw(chart, width)
    texts = texts_of(figure)
    touching = [(one[0], other[0]) for one, other in combinations(texts, 2) if one[1].overlaps(other[1])]
    assert touching == []
    beyond = [text for text, box in texts if box.x0 < -1 or box.x1 > width + 1 or box.y0 < -1]
    assert beyond == []
    assert max(box.y1 for _, box in texts) <= figure.bbox.height + 1


def test_ours_is_solid_and_the_paper_s_dashed_in_the_same_color():
    axes = chart_figure(LineChart("Title", "x", "y", make_lines(), is_log=False), width=WIDE).axes[0]
    for place, line in enumerate(make_lines()):
        (ours,), (paper,) = (lines_through(axes, heights) for heights in heights_of(line))
        assert (ours.get_linestyle(), paper.get_linestyle()) == ("-", "--")
        assert ours.get_color() == paper.get_color() == theme.color(f"series-{place + 1}")


def heights_of(line):
    return [point.y for point in line.ours], [height for _, height in line.paper]


def test_six_lines_differ_in_color_and_in_mark():
    axes = chart_figure(LineChart("Title", "x", "y", make_lines()), width=WIDE).axes[0]
    ours = [lines_through(axes, heights_of(line)[0])[0] for line in make_lines()]
    assert len({line.get_color() for line in ours}) == len({line.get_marker() for line in ours}) == len(SYSTEMS[:6])
    assert len(set(MARKS)) == len(set(SERIES)) == 6


def test_whiskers_reach_from_the_lowest_to_the_highest_seed():
    line = Line("LSTM", (Point(1, 5.0, 4.0, 8.0), Point(2, 6.0, 5.5, 6.5)))
    axes = chart_figure(LineChart("Title", "x", "y", (line,)), width=WIDE).axes[0]
    whiskers = [segment.tolist() for bar in axes.collections for segment in bar.get_segments()]
    assert whiskers == [[[1, 4], [1, 8]], [[2, 5.5], [2, 6.5]]]


def test_a_single_seed_has_no_whiskers_and_the_legend_promises_none():
    figure = chart_figure(LineChart("Title", "x", "y", (Line("LSTM", (Point(1, 5.0, 5.0, 5.0),)),)), width=WIDE)
    assert not figure.axes[0].collections
    assert legend_of(figure) == ["LSTM: 5"]


def test_long_curves_have_a_band_instead_of_whiskers_and_marks():
    axes = draw(CURVES, WIDE).axes[0]
    assert len(axes.collections) == len(CURVES.lines)
    assert all(to_hex(band.get_facecolor()[0]) in map(theme.color, SERIES) for band in axes.collections)
    assert {line.get_marker() for line in axes.lines} <= {"", "None"}


def test_a_band_ends_where_it_should_and_is_explained():
    chart = LineChart("Title", "x", "y", make_lines(), pretraining=4_000)
    figure = chart_figure(chart, width=WIDE)
    (band,) = figure.axes[0].patches
    assert to_hex(band.get_facecolor()) == theme.color("band")
    assert (band.get_x(), band.get_width()) == (0, 4_000)
    assert legend_of(figure)[-1] == "pretraining without labels"


def test_axes_that_cannot_be_compared_stand_side_by_side_or_below_each_other():
    for width in (WIDE, NARROW):
        texts_of(draw(TWO_PANELS, width))
    ours, paper = (axes.get_window_extent() for axes in draw(TWO_PANELS, WIDE).axes)
    assert ours.x1 < paper.x0
    assert ours.y0 == paper.y0
    ours, paper = (axes.get_window_extent() for axes in draw(TWO_PANELS, NARROW).axes)
    assert ours.y0 > paper.y1
    assert ours.x0 == paper.x0


def test_each_of_two_panels_shows_its_own_side_in_the_same_colors():
    ours, paper = draw(TWO_PANELS, WIDE).axes[:2]
    assert (ours.get_xlabel(), paper.get_xlabel()) == ("steps of ours", "steps of the paper's")
    for place, line in enumerate(TWO_PANELS.lines):
        here, there = heights_of(line)
        assert len(lines_through(ours, here)) == len(lines_through(paper, there)) == 1
        assert lines_through(ours, there) == lines_through(paper, here) == []
        colors = {lines_through(ours, here)[0].get_color(), lines_through(paper, there)[0].get_color()}
        assert colors == {theme.color(f"series-{place + 1}")}


def test_what_the_lines_are_is_called_ours_only_beside_the_paper_s():
    ours = tuple(Line(line.title, line.ours) for line in TWO_PANELS.lines)
    alone = legend_of(chart_figure(LineChart("Title", "x", "y", ours), width=WIDE))
    assert "mean and range over seeds" in alone
    assert "ours: mean and range over seeds" in legend_of(draw(TWO_PANELS, WIDE))


def test_a_single_point_is_marked_and_stands_alone_on_its_axis():
    line = Line("one", (Point(5.0, 2.0, 2.0, 2.0),))
    many = Line("many", tuple(Point(float(x), 1.0, 1.0, 1.0) for x in range(30)))
    axes = chart_figure(LineChart("Title", "updates", "y", (line,)), width=WIDE).axes[0]
    assert axes.get_xticks().tolist() == [5.0]
    axes = chart_figure(LineChart("Title", "updates", "y", (line, many)), width=WIDE).axes[0]
    assert {drawn.get_marker() for drawn in axes.lines} == {MARKS[0], ""}


@pytest.mark.parametrize(("xs", "ticks"), [((0.0, 1.0, 2.0), [0.0, 1.0, 2.0]), ((0.0, 0.5, 1.0), [0.0, 0.2, 0.4])])
def test_counts_are_marked_at_whole_numbers_and_minutes_also_between(xs, ticks):
    line = Line("line", tuple(Point(x, 1.0, 1.0, 1.0) for x in xs))
    axes = chart_figure(LineChart("Title", "x", "y", (line,)), width=WIDE).axes[0]
    assert [tick for tick in axes.get_xticks() if tick >= 0][:3] == pytest.approx(ticks)


def test_guessing_is_drawn_among_our_numbers_only():
    ours, paper = draw(TWO_PANELS, WIDE).axes[:2]
    assert len(lines_through(ours, [25, 25])) == 1
    assert lines_through(paper, [25, 25]) == []


def test_a_level_is_drawn_at_its_own_height_on_either_side_and_named_in_the_legend():
    figure, (title, level) = draw(TWO_PANELS, WIDE), TWO_PANELS.level
    ours, paper = figure.axes[:2]
    assert lines_through(ours, [level.ours.mean] * 2)
    assert lines_through(paper, [level.paper] * 2)
    assert title in legend_of(figure)


def test_a_level_above_all_lines_is_inside_the_axes():
    chart = LineChart("Title", "x", "y", make_lines(), chance=10.0, level=("LSTM", Cell(make_score(99.0), None)))
    low, high = chart_figure(chart, width=WIDE).axes[0].get_ylim()
    assert (low, high > 99) == (0, True)


def test_a_side_without_a_level_does_not_show_the_other_s():
    chart = TWO_PANELS._replace(level=("LSTM", Cell(None, 62.5)))
    ours, paper = chart_figure(chart, width=WIDE).axes
    assert [bool(lines_through(axes, [62.5] * 2)) for axes in (ours, paper)] == [False, True]


@pytest.mark.parametrize(("ours", "paper", "drawn"), [(make_score(41.0), 62.5, 41.0), (None, 62.5, 62.5)])
def test_on_axes_that_both_share_the_level_is_ours_if_there_is_one(ours, paper, drawn):
    chart = LineChart("Title", "x", "y", make_lines(), level=("LSTM", Cell(ours, paper)))
    axes = chart_figure(chart, width=WIDE).axes[0]
    assert [bool(lines_through(axes, [height] * 2)) for height in (41.0, 62.5)] == [drawn == 41.0, drawn == 62.5]


def test_logarithmic_axes_are_marked_at_the_lengths_measured_and_at_round_heights():
    axes = draw(LOG_CHART, WIDE).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert list(axes.get_xticks()) == list(LENGTHS)
    low, high = axes.get_ylim()
    assert [tick for tick in axes.get_yticks() if low <= tick <= high] == [1, 2, 5, 10]


def test_a_reversed_axis_falls_to_the_right():
    left, right = draw(REVERSED, WIDE).axes[0].get_xlim()
    assert left > 196
    assert right < 0


def test_the_legend_gives_our_last_number_of_each_line_from_the_highest_down():
    assert legend_of(draw(REVERSED, WIDE))[:2] == ["r-LSTM (paper only)", "LSTM: 32.5"]
    ends = {"low": 3.0, "high": 8.0}
    lines = (
        *(Line(title, (Point(1, 5, 5, 5), Point(2, end, end, end))) for title, end in ends.items()),
        Line("no", ()),
    )
    figure = chart_figure(LineChart("Title", "x", "y", lines), width=WIDE)
    assert legend_of(figure) == ["high: 8", "low: 3"]
    colors = [line.get_color() for line in figure.legends[0].get_lines()]
    assert colors[:2] == [theme.color("series-2"), theme.color("series-1")]


def test_a_chart_without_points_says_that_nothing_is_done():
    empty = LineChart("Title", "x", "y", (Line("LSTM", ()),))
    (axes,) = chart_figure(empty, width=NARROW).axes
    assert ([text.get_text() for text in axes.texts], axes.axison) == (["No run of this chart is done yet."], False)
    for width in (WIDE, NARROW):
        assert texts_of(chart_figure(BARS._replace(bars={"LSTM": Cell(None, None)}), width=width))


def test_bars_begin_at_0_and_end_at_the_mean():
    axes = draw(BARS, WIDE).axes[0]
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [(0, 62), (0, 58), (0, 55), (0, 0)]


def test_bars_have_the_range_of_their_seeds_and_the_paper_s_number_at_the_same_height():
    axes = draw(BARS, WIDE).axes[0]
    ranges = [segment.tolist() for bar in axes.collections for segment in bar.get_segments()]
    (marks,) = (line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "D")
    assert ranges == [[[61.5, 0], [62.5, 0]], [[57.5, 1], [58.5, 1]]]
    assert marks == [[72, 0], [66, 1], [58, 3]]


def test_bars_have_their_numbers_beside_them():
    (numbers,) = draw(BARS, WIDE).axes[0].child_axes
    texts = [label.get_text() for label in numbers.get_yticklabels()]
    assert texts == [
        "62.0 \u00b1 0.5\npaper 72.0",
        "58.0 \u00b1 0.5\npaper 66.0",
        "55.0 (one seed)",
        "not run\npaper 58.0",
    ]


def test_bars_of_negative_numbers_are_inside_the_axes():
    chart = BarChart("Title", "change", {"one": Cell(None, -3.0), "two": Cell(None, 2.0)})
    low, high = chart_figure(chart, width=WIDE).axes[0].get_xlim()
    assert low < -3 < 2 < high


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.title)
def test_every_color_follows_the_page(chart):
    svg = to_svg(draw(chart, NARROW), name="chart")
    assert re.findall(r"(?:fill|stroke): (#\w+)", svg) == []


def test_titles_are_text_whatever_they_hold():
    hostile = "<b>$x$ & y"
    line = Line(hostile, (Point(1, 5.0, 4.0, 8.0),))
    svg = to_svg(chart_figure(LineChart(hostile, hostile, hostile, (line,)), width=NARROW), name="chart")
    svg += to_svg(chart_figure(BarChart(hostile, hostile, {hostile: Cell(None, 1.0)}), width=WIDE), name="bars")
    assert svg.count("&lt;b&gt;$x$ &amp; y") == 5
    assert "<b>" not in svg


def test_a_chart_can_be_a_picture_under_its_title():
    figure = chart_figure(BARS, width=WIDE, has_title=True)
    assert BARS.title in [text for text, _ in texts_of(figure)]
    assert to_png(figure).startswith(b"\x89PNG")


def test_svg_is_the_same_each_time_and_its_ids_carry_the_name():
    first, second = (to_svg(chart_figure(BARS, width=NARROW), name="one") for _ in range(2))
    assert first == second
    ids = re.findall(r'\bid="([^"]+)"', first)
    assert ids
    assert all(each.startswith("one-") for each in ids)
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', first)) <= set(ids)


def test_light_colors_differ_so_that_each_can_be_told_from_the_others():
    assert len({light for light, _ in theme.SHADES.values()}) == len(theme.SHADES)


@pytest.mark.parametrize("name", ["ink", "muted", "holds", "unsure", "fails", "open", *SERIES])
def test_text_can_be_read_on_light_and_dark_paper(name):
    for text, paper in zip(theme.SHADES[name], theme.SHADES["paper"], strict=True):
        light, dark = sorted((luminance(text), luminance(paper)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(color):
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(share * value for share, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("heights", [(2.3012, 2.3026, 2.3031), (0.00100001, 0.00100002), (0.0, 100.0), (-5.0, 3.0)])
def test_numbers_along_an_axis_differ(heights):
    line = Line("ours", tuple(Point(x, y, y, y) for x, y in enumerate(heights)))
    figure = chart_figure(LineChart("Loss", "updates", "loss", (line,)), width=NARROW)
    figure.draw(FigureCanvasAgg(figure).get_renderer())
    found = [label.get_text() for label in ticks(figure.axes[0].yaxis)]
    assert len(set(found)) == len(found) > 1
