import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from auxrnn.report.canvas import lay_out_all
from auxrnn.report.charts import NARROW, WIDE, to_png, to_svg
from auxrnn.report.memory_chart import memory_figure, overview_figure
from auxrnn.report.results import LineChart, to_exact_line


@pytest.fixture
def canvases(reconstructions):
    return lay_out_all(reconstructions, most=8)


def test_the_reconstructed_strip_shows_predicted_pixels_and_leaves_the_rest_neutral(reconstructions):
    predicted = np.zeros_like(reconstructions.reconstruction_KS)
    predicted[0, 1] = 1.0
    blank = np.zeros_like(reconstructions.image_KT)
    blank[1, 0] = 1.0
    shown = reconstructions._replace(image_KT=blank, reconstruction_KS=predicted)
    figure = memory_figure(lay_out_all(shown, most=1), width=WIDE)
    cells = figure.axes[0].images[2].get_array()[::8, ::8]
    is_painted = cells[..., 3] > 0
    assert is_painted.tolist() == [[False, True, True, True], [True, True, False, False]]
    is_dark = is_painted & (cells[..., :3].sum(axis=2) < 1)
    assert np.argwhere(is_dark).tolist() == [[0, 2]]


def test_a_narrow_figure_wraps_examples_and_keeps_pixels_square(canvases):
    figure = memory_figure([*canvases, *canvases], width=NARROW)
    figure.draw(FigureCanvasAgg(figure).get_renderer())
    shown = [axes for axes in figure.axes if axes.images]
    assert len(shown) == 6
    boxes = [axes.get_window_extent() for axes in shown]
    assert boxes[0].y0 == boxes[3].y0 > boxes[4].y1
    for axes in shown:
        (left, right), (bottom, top) = axes.transData.transform([(0, 0), (1, 1)]).T
        assert right - left == pytest.approx(bottom - top)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_texts_overlap_neither_each_other_nor_the_edge(canvases, width):
    figure = memory_figure(canvases, width=width)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    texts = list(figure.legends[0].get_texts())
    for axes in (axes for axes in figure.axes if axes.axison):
        texts += [axes.title, axes.xaxis.label, *axes.get_yticklabels()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()]
    assert [(one[0], other[0]) for one, other in combinations(boxes, 2) if one[1].overlaps(other[1])] == []
    assert [text for text, box in boxes if box.x0 < 0 or box.x1 > width] == []


def test_every_color_of_an_svg_follows_the_page(canvases):
    svg = to_svg(memory_figure(canvases, width=WIDE), name="memory")
    assert {"muted", "mark"} <= set(re.findall(r"var\(--([\w-]+), ", svg))
    assert set(re.findall(r"(?:fill|stroke): (#\w+)", svg)) == {"#d98aa8"}


def test_the_overview_has_both_charts_under_their_titles(canvases):
    chart = LineChart("Accuracy", "updates", "%", (to_exact_line("LSTM", {1: 5.0, 2: 6.0}),))
    figure = overview_figure(chart, canvases)
    assert [part.get_suptitle() for part in figure.subfigs] == [
        "Accuracy",
        "What r-LSTM remembers of the pixels it read",
    ]
    assert to_png(figure).startswith(b"\x89PNG")
