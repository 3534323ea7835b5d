import io
from itertools import combinations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from auxrnn.report import theme
from auxrnn.report.length_plot import LengthCurve, Texts, length_figure, memory_png, time_png

TITLES = ("LSTM, full BPTT", "r-LSTM 1x600", "r-LSTM 20x30", "p-LSTM")
TEXTS = Texts("Time", "Solid: measured here.", "s")


def make_curves(*ends):
    return [
        LengthCurve(title, {1_600: 1.0, 16_384: end}, {1_600: 2.0, 16_384: 20.0})
        for title, end in zip(TITLES, ends, strict=True)
    ]


def texts_of(figure):
    return {text.get_text(): text for text in figure.axes[0].texts}


@pytest.mark.parametrize("ends", [(12.5, 3.3, 3.2, 3.1), (1, 1, 1, 1), (100, 99, 98, 97), (0.01, 0.01, 1000, 1000)])
def test_labels_overlap_neither_each_other_nor_the_edge_of_the_figure(ends):
    figure = length_figure(make_curves(*ends), TEXTS)
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in texts_of(figure).values()]
    assert len(boxes) == len(TITLES)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(box.x1 <= figure.bbox.width and 0 <= box.y0 < box.y1 <= figure.bbox.height for box in boxes)


def test_the_paper_s_line_is_dashed_in_the_color_of_ours():
    axes = length_figure(make_curves(12.5, 3.3, 3.2, 3.1), TEXTS).axes[0]
    ours, theirs = ([line for line in axes.lines if list(line.get_ydata()) == ends] for ends in ([1, 3.3], [2, 20]))
    assert [line.get_linestyle() for line in ours] == ["-"]
    assert [line.get_linestyle() for line in theirs] == ["--"] * 4
    assert ours[0].get_color() == theirs[1].get_color() == theme.color("series-2")


def test_each_label_carries_the_last_cost_and_the_paper_s_at_the_same_length():
    curves = [LengthCurve("p-LSTM", {1_600: 1.0, 12_544: 2.3456}, {12_544: 6.0, 16_384: 8.0})]
    assert list(texts_of(length_figure(curves, TEXTS))) == ["p-LSTM  2.35 s, paper 6.0 s"]


def test_lengths_that_were_measured_are_marked_and_costs_are_round():
    axes = length_figure([LengthCurve("p-LSTM", {1_600: 0.9, 12_544: 21.0}, {16_384: 8.0})], TEXTS).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1,600", "12,544"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1 s", "2 s", "5 s", "10 s", "20 s"]


def test_a_system_without_points_has_no_label_and_leaves_the_other_colors_alone():
    curves = [LengthCurve("LSTM, full BPTT", {}, {}), *make_curves(1, 2, 3, 4)[1:]]
    texts = texts_of(length_figure(curves, TEXTS))
    assert len(texts) == 3
    assert texts["r-LSTM 1x600  2 s, paper 20.0 s"].get_color() == theme.color("series-2")


@pytest.mark.parametrize("draw", [time_png, memory_png])
def test_pictures_are_png(draw):
    image = Image.open(io.BytesIO(draw(make_curves(12.5, 3.3, 3.2, 3.1), num_sequences=128, num_threads=1)))
    assert image.format == "PNG"
