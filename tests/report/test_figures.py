import io
import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from PIL import Image

from auxrnn.report import theme
from auxrnn.report.canvas import lay_out_all
from auxrnn.report.figures import NARROW, WIDE, accuracy_figure, memory_figure, overview_png, to_svg
from auxrnn.report.records import Curve

TITLES = ("LSTM, full", "LSTM, truncated", "r-LSTM", "p-LSTM")


def make_curves(*ends, pretrain_steps=(0, 0, 20, 20)):
    return [
        Curve(title, [pretrained + 10, pretrained + 30], [10.0, float(end)], pretrained)
        for title, end, pretrained in zip(TITLES, ends, pretrain_steps, strict=True)
    ]


def boxes_of(figure, texts):
    renderer = FigureCanvasAgg(figure).get_renderer()
    return [text.get_window_extent(renderer) for text in texts]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("ends", [(90, 90, 90, 90), (100, 99.9, 99.8, 99.7), (10, 10, 10, 10), (0, 50, 51, 100)])
def test_labels_overlap_neither_each_other_nor_the_edge_of_the_figure(ends, width):
    figure = accuracy_figure(make_curves(*ends), chance=10.0, width=width)
    boxes = boxes_of(figure, figure.axes[0].texts)
    assert len(boxes) == len(TITLES) + 2
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= figure.bbox.height for box in boxes)


def test_each_label_carries_the_final_accuracy_in_the_color_of_its_line():
    figure = accuracy_figure(make_curves(71.26, 40, 93.6, 90.9), chance=10.0)
    colors = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    lines = [line for line in figure.axes[0].lines if line.get_ydata()[-1] == 71.26]
    assert colors["LSTM, full  71.3 %"] == theme.color("series-1") == lines[0].get_color()
    assert colors["r-LSTM  93.6 %"] == theme.color("series-3")


def test_the_band_ends_where_pretraining_does():
    axes = accuracy_figure(make_curves(50, 60, 70, 80, pretrain_steps=(0, 0, 20, 14)), chance=10.0).axes[0]
    bands = [patch for patch in axes.patches if to_hex(patch.get_facecolor()) == theme.color("band")]
    assert sorted(band.get_x() + band.get_width() for band in bands) == [14, 20]
    assert any("r-LSTM and p-LSTM: pretraining, no labels" in text.get_text() for text in axes.texts)


def test_runs_without_pretraining_have_no_band():
    axes = accuracy_figure(make_curves(50, 60, 70, 80, pretrain_steps=(0, 0, 0, 0)), chance=10.0).axes[0]
    assert not axes.patches
    assert not any("pretraining" in text.get_text() for text in axes.texts)


def test_a_run_without_evaluations_has_no_label_and_leaves_the_other_colors_alone():
    curves = [Curve("LSTM, full", [], [], 0), *make_curves(50, 60, 70, 80)[1:]]
    texts = {text.get_text(): text.get_color() for text in accuracy_figure(curves, chance=10.0).axes[0].texts}
    assert not any(text.startswith("LSTM, full") for text in texts)
    assert texts["LSTM, truncated  60.0 %"] == theme.color("series-2")


def test_an_evaluation_before_the_first_update_can_be_drawn():
    figure = accuracy_figure([Curve("LSTM", [0], [11.0], 0)], chance=10.0)
    assert "LSTM 11.0 %" in re.sub(r"\s+", " ", to_svg(figure, name="curves"))


def test_titles_are_text_in_svg_whatever_they_hold():
    figure = accuracy_figure([Curve("<b>$x$ & y", [1, 2], [10.0, 20.0], 0)], chance=10.0)
    svg = to_svg(figure, name="curves")
    assert "&lt;b&gt;$x$ &amp; y" in svg
    assert "<b>" not in svg


def test_every_color_of_an_svg_follows_the_page(reconstructions):
    figures = [
        accuracy_figure(make_curves(50, 60, 70, 80), chance=10.0),
        memory_figure(lay_out_all(reconstructions, most=8)),
    ]
    for figure in figures:
        svg = to_svg(figure, name="figure")
        used = set(re.findall(r"var\(--([\w-]+), (#\w+)\)", svg))
        assert {"muted", "mark"} & {name for name, _ in used}
        assert used <= {(name, shade.light) for name, shade in theme.SHADES.items()}
        fixed = set(re.findall(r"(?:fill|stroke): (#\w+)", svg))
        assert fixed == set()


def test_light_colors_differ_so_that_each_can_be_told_from_the_others():
    assert len({shade.light for shade in theme.SHADES.values()}) == len(theme.SHADES)


@pytest.mark.parametrize("name", ["ink", "muted", "holds", "unsure", "fails", "open", *theme.SERIES])
def test_text_can_be_read_on_light_and_dark_paper(name):
    for text, paper in zip(theme.SHADES[name], theme.SHADES["paper"], strict=True):
        light, dark = sorted((luminance(text), luminance(paper)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(color):
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_svg_is_the_same_each_time_and_its_ids_carry_the_name():
    first, second = (to_svg(accuracy_figure(make_curves(50, 60, 70, 80), chance=10.0), name="one") for _ in range(2))
    assert first == second
    ids = re.findall(r'\bid="([^"]+)"', first)
    assert ids
    assert all(each.startswith("one-") for each in ids)
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', first)) <= set(ids)


def test_the_rebuilt_strip_shows_predicted_pixels_and_leaves_the_rest_neutral(reconstructions):
    predicted = np.zeros_like(reconstructions.reconstruction_KS)
    predicted[0, 1] = 1.0
    blank = np.zeros_like(reconstructions.image_KT)
    blank[1, 0] = 1.0
    shown = reconstructions._replace(image_KT=blank, reconstruction_KS=predicted)
    figure = memory_figure(lay_out_all(shown, most=1), columns=1)
    rebuilt = figure.axes[2].images[0].get_array()
    cells = rebuilt[::8, ::8]
    is_painted = cells[..., 3] > 0
    assert is_painted.tolist() == [[False, True, True, True], [True, True, False, False]]
    is_dark = is_painted & (cells[..., :3].sum(axis=2) < 1)
    assert np.argwhere(is_dark).tolist() == [[0, 2]]


def test_a_narrow_figure_wraps_examples_and_keeps_pixels_square(reconstructions):
    canvases = lay_out_all(reconstructions, most=3)
    figure = memory_figure(canvases, width=NARROW, columns=2)
    digits = [axes.get_window_extent() for axes in figure.axes if axes.images and axes.collections]
    assert len(digits) == 3
    assert digits[0].y0 == digits[1].y0 > digits[2].y1
    assert all(digit.height / digit.width == pytest.approx(5 / 4) for digit in digits)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_texts_of_the_memory_figure_do_not_overlap(reconstructions, width):
    figure = memory_figure(lay_out_all(reconstructions, most=3), width=width, columns=4)
    boxes = boxes_of(figure, figure.texts)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(box.x0 >= 0 and box.x1 <= width for box in boxes)


def test_the_overview_is_a_wide_png_of_both_figures_or_of_the_curves_alone(reconstructions):
    curves = make_curves(50, 60, 70, 80)
    both = Image.open(io.BytesIO(overview_png(curves, lay_out_all(reconstructions, most=3), chance=10.0)))
    alone = Image.open(io.BytesIO(overview_png(curves, chance=10.0)))
    assert both.width > both.height
    assert both.width > alone.width
    orange = np.array([int(theme.color("mark")[place : place + 2], 16) for place in (1, 3, 5)])
    has_marks = [(np.asarray(image.convert("RGB")) == orange).all(axis=2).any() for image in (both, alone)]
    assert has_marks == [True, False]
