import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from auxrnn.report.charts import NARROW, WIDE, to_png, to_svg
from auxrnn.report.memory import memory_figure, overview_figure
from auxrnn.report.records import Reconstructions
from auxrnn.report.results import Line, LineChart, Point


def make_shown(*anchors, length, height=6, width=3):
    """Blank images with segments of `length` steps before each anchor."""
    image_KT, predicted_KS = np.zeros((len(anchors), height * width)), np.zeros((len(anchors), length))
    return Reconstructions(image_KT, np.array(anchors), predicted_KS, True, height, width)


def pictures_of(figure):
    """The pixels of each picture of the first example: digit, segment, reconstruction and error."""
    columns = len(figure.axes) // 4
    return [np.ma.filled(figure.axes[part * columns].images[0].get_array(), np.nan) for part in range(4)]


@pytest.mark.parametrize(("is_reversed", "given"), [(True, (2, 1)), (False, (1, 1))])
def test_each_strip_has_its_pixels_at_their_places_and_nothing_elsewhere(reconstructions, is_reversed, given):
    _, truth, rebuilt, error = pictures_of(memory_figure(reconstructions._replace(is_reversed=is_reversed), width=WIDE))
    image_YX = reconstructions.image_KT[0].reshape(5, 4).astype(float)
    is_segment_YX = np.isin(np.arange(20), range(5, 10)).reshape(5, 4)
    np.testing.assert_array_equal(truth, np.where(is_segment_YX, image_YX, np.nan))
    wanted_YX, is_predicted_YX = np.full((5, 4), np.nan), is_segment_YX.copy()
    is_predicted_YX[given] = False
    wanted_YX[is_predicted_YX] = np.float32([0.5, 0.6, 0.7, 0.8])
    np.testing.assert_array_equal(error, np.abs(wanted_YX - image_YX))
    wanted_YX[given] = image_YX[given]
    np.testing.assert_array_equal(rebuilt, wanted_YX)


def test_pixels_after_the_anchor_are_paler(reconstructions):
    digit = pictures_of(memory_figure(reconstructions, width=WIDE))[0]
    assert (digit[..., 3].ravel() == 1).tolist() == [step <= 9 for step in range(20)]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 11])
def test_the_outline_encloses_the_segment_and_strips_show_all_its_rows(length):
    anchors = [start + length for start in (0, 1, 2, 4, 5, 6)]
    figure = memory_figure(make_shown(*anchors, length=length), width=WIDE)
    num_rows = max(anchor // 3 - (anchor - length) // 3 + 1 for anchor in anchors)
    for column, anchor in enumerate(anchors):
        digit, strip = figure.axes[column], figure.axes[8 + column]
        path = digit.patches[0].get_path()
        is_inside = [path.contains_point((step % 3, step // 3)) for step in range(18)]
        assert is_inside == [anchor - length <= step <= anchor for step in range(18)]
        bottom, top = strip.get_ylim()
        assert bottom - top == num_rows
        assert -0.5 <= top <= (anchor - length) // 3 - 0.5
        assert anchor // 3 + 0.5 <= bottom <= 5.5


def test_a_narrow_figure_wraps_examples_and_keeps_pixels_square():
    figure = memory_figure(make_shown(*[10] * 6, length=6), width=NARROW)
    figure.draw(FigureCanvasAgg(figure).get_renderer())
    shown = [axes for axes in figure.axes if axes.images]
    assert len(shown) == 6 * 4
    digits = [axes.get_window_extent() for axes in shown if axes.get_title()]
    assert digits[0].y0 == digits[3].y0 > digits[4].y1
    for axes in shown:
        (left, right), (bottom, top) = axes.transData.transform([(0, 0), (1, 1)]).T
        assert right - left == pytest.approx(bottom - top)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_texts_overlap_neither_each_other_nor_the_edge(reconstructions, width):
    figure = memory_figure(reconstructions, width=width)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    texts = list(figure.legends[0].get_texts())
    for axes in (axes for axes in figure.axes if axes.axison):
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()]
    assert [(one[0], other[0]) for one, other in combinations(boxes, 2) if one[1].overlaps(other[1])] == []
    assert [text for text, box in boxes if box.x0 < 0 or box.x1 > width] == []


def test_every_color_of_an_svg_follows_the_page(reconstructions):
    svg = to_svg(memory_figure(reconstructions, width=WIDE), name="memory")
    assert {"muted", "mark"} <= set(re.findall(r"var\(--([\w-]+), ", svg))
    assert set(re.findall(r"(?:fill|stroke): (#\w+)", svg)) == {"#d98aa8"}


def test_the_overview_has_both_charts_under_their_titles(reconstructions):
    chart = LineChart("Accuracy", "updates", "%", (Line("LSTM", (Point(1, 5.0, 5.0, 5.0), Point(2, 6.0, 6.0, 6.0))),))
    figure = overview_figure(chart, reconstructions)
    assert [part.get_suptitle() for part in figure.subfigs] == [
        "Accuracy",
        "What r-LSTM remembers of the pixels it read",
    ]
    assert to_png(figure).startswith(b"\x89PNG")
