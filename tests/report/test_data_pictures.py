"""Pictures of data show what the model reads: right pixels, right steps, right tokens, and nothing out of its place."""

import io
import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from PIL import Image

from auxrnn.report import theme
from auxrnn.report.charts import WIDE, to_png
from auxrnn.report.data_pictures import (
    BOX,
    MOST_STEPS,
    NUM_CELLS,
    NUM_LAST,
    ShownExample,
    choose_steps,
    clean,
    image_figure,
    series_figure,
    spell,
    text_figure,
)

ODD = "\u6f22\u5b57 $\\frac$ \U0001f600\x00\x1b\n\u202e\ud800" + "ab c " * 100


def make_images(count, height, width, channels=1):
    rng = np.random.default_rng(5)
    return [ShownExample(str(index), rng.random((height * width, channels), np.float32)) for index in range(count)]


def make_series(*lengths, channels=3):
    rng = np.random.default_rng(6)
    return [
        ShownExample(f"{length} steps", rng.normal(size=(length, channels)).astype(np.float32)) for length in lengths
    ]


def make_text(text, *, alphabet="abc "):
    return ShownExample("letters", np.array([alphabet.find(letter) % (len(alphabet) + 1) for letter in text]), text)


def colors_of(axes):
    (image,) = axes.images
    return np.asarray(image.get_array())


def boxes_of(figure):
    """The places of all texts that are drawn, in pixels of a plain screen from the bottom left."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        texts += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            labels = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
            texts += [label for place, label in labels if axes.axison and low <= place <= high]
            texts += [axis.label] if axes.axison else []
    return {text: text.get_window_extent(renderer) for text in texts if text.get_text().strip() and text.get_visible()}


def legend_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def assert_inside(figure):
    for text, box in boxes_of(figure).items():
        assert box.x0 >= 0, text
        assert box.x1 <= WIDE, text
        assert box.y0 >= 0, text
        assert box.y1 <= figure.bbox.height, text


PICTURES = {
    "images": lambda count: image_figure(make_images(count, 3, 4), size=(3, 4), order_T=None, title="t"),
    "texts": lambda count: text_figure([make_text("abc")] * count, title="t", unknown=4),
    "series": lambda count: series_figure(make_series(*[9] * count), title="t"),
}


@pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)
def test_at_most_eight_examples_are_drawn_and_at_least_one_twice_as_fine_as_a_plain_screen(draw):
    figures = {count: draw(count) for count in (1, 9)}
    assert len(figures[9].axes) == 8 * len(figures[1].axes)
    with Image.open(io.BytesIO(to_png(figures[1]))) as image:
        assert (image.format, image.width) == ("PNG", 2 * WIDE)
    with pytest.raises(ValueError, match="at least one"):
        draw(0)


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_stands_beside_its_pixels_in_the_order_they_are_read(channels):
    (plain,) = make_images(1, 3, 4, channels)
    order_T = np.random.default_rng(1).permutation(12)
    read = plain._replace(value_T=plain.value_T[order_T])
    expected_TC = plain.value_T.repeat(3 // channels, axis=1)
    for shown, order in ((plain, None), (read, order_T)):
        picture, curves = image_figure([shown], size=(3, 4), order_T=order, title="t").axes
        assert np.array_equal(colors_of(picture).reshape(12, 3), expected_TC)
        assert np.array_equal(colors_of(curves)[0], expected_TC if order is None else expected_TC[order_T])
        if channels == 3:
            assert np.array_equal([line.get_ydata() for line in curves.lines], shown.value_T.T)


def test_the_channels_of_a_color_image_are_drawn_in_their_colors():
    *_, curves = image_figure(make_images(1, 2, 2, 3), size=(2, 2), order_T=None, title="t").axes
    red, green, blue = (
        np.array([int(to_hex(line.get_color())[place : place + 2], 16) for place in (1, 3, 5)]) for line in curves.lines
    )
    assert (red.argmax(), green.argmax(), blue.argmax()) == (0, 1, 2)


def test_of_a_long_sequence_the_beginning_is_shown_beside_the_whole_image():
    (shown,) = make_images(1, 60, 50)
    figure = image_figure([shown], size=(60, 50), order_T=None, title="t")
    picture, curves = figure.axes
    assert colors_of(picture).shape == (60, 50, 3)
    assert curves.get_xlim() == (0, MOST_STEPS)
    assert np.array_equal(colors_of(curves)[0, :, 0], shown.value_T[:MOST_STEPS, 0])
    assert "shown are the first 2,400" in figure.get_supxlabel()


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (5, 3)])
def test_images_of_any_shape_keep_it(size):
    picture, *_ = image_figure(make_images(1, *size), size=size, order_T=None, title="t").axes
    FigureCanvasAgg(picture.figure).draw()
    box = picture.get_window_extent()
    assert box.height / box.width == pytest.approx(size[0] / size[1])


def test_series_end_together_and_what_is_missing_before_is_padding():
    figure = series_figure(make_series(40, 100, 99), title="t")
    for axes, length in zip(figure.axes, (40, 100, 99), strict=True):
        assert axes.get_xlim() == (-100, 0)
        assert [tuple(line.get_xdata()[[0, -1]]) for line in axes.lines] == [(0.5 - length, -0.5)] * 3
        spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]
        assert spans == ([] if length == 100 else [(-100, -length)])
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert legend_of(figure)[-1] == "padding"


def test_each_channel_has_a_look_of_its_own_and_a_number_in_the_legend():
    figure = series_figure(make_series(20, channels=12), title="t")
    assert legend_of(figure) == ["channel 1", *map(str, range(2, 9))]
    lines = figure.axes[0].lines
    assert {line.get_linestyle() for line in lines[:4]} == {"-"}
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 8
    assert "first 8 of 12 channels" in figure.get_supxlabel()


def test_one_channel_needs_no_legend():
    assert not series_figure(make_series(20, channels=1), title="t").legends


def test_a_long_noisy_series_can_be_drawn():
    assert to_png(series_figure(make_series(300_000, 1), title="t")).startswith(b"\x89PNG")


def test_the_first_and_last_steps_of_a_text_are_shown():
    assert choose_steps(NUM_CELLS) == list(range(NUM_CELLS))
    first, last = NUM_CELLS - 1 - NUM_LAST, range(500 - NUM_LAST, 500)
    assert choose_steps(500) == [*range(first), None, *last]
    assert len(choose_steps(500)) == NUM_CELLS


def test_characters_outside_of_the_alphabet_are_marked_and_explained():
    figure = text_figure([make_text("abXc")], title="t", unknown=4)
    colors = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert colors["X"] == colors["4"] == theme.color("mark")
    assert theme.color("mark") not in (colors["a"], colors["0"])
    assert legend_of(figure) == ["not in the alphabet"]


def test_bytes_are_spelled_where_they_are_letters():
    shown = ShownExample("x", np.frombuffer("a\u00e9 \n".encode(), np.uint8), "a\u00e9 \n")
    assert [spell(shown, step, is_bytes=True) for step in range(5)] == ["a", "\u00b7", "\u00b7", "\u2423", "\u21b5"]


@pytest.mark.parametrize(
    ("text", "letters"), [(None, ["", ""]), ("of another length", ["", ""]), ("a ", ["a", "\u2423"])]
)
def test_tokens_without_their_text_are_drawn_without_letters(text, letters):
    shown = ShownExample("x", np.array([1, 2]), text)
    assert [spell(shown, step, is_bytes=False) for step in range(2)] == letters


@settings(max_examples=8)
@given(st.text(min_size=1, max_size=80), st.text(max_size=40))
@example(ODD, ODD)
@example(" ", "")
def test_nothing_that_people_write_leaves_the_picture_or_warns(text, title):
    shown = ShownExample(title, np.arange(len(text)) % 71, text)
    figure = text_figure([shown], title=title, unknown=70)
    assert_inside(figure)


@pytest.mark.parametrize("title", ["short", ODD])
def test_titles_stay_in_their_place_in_all_pictures(title):
    (image,), series = make_images(1, 4, 4, 3), make_series(3, 90_000, channels=8)
    assert_inside(image_figure([image._replace(title=title)], size=(4, 4), order_T=None, title=title))
    assert_inside(series_figure([one._replace(title=title) for one in series], title=title))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_values_of_any_size_stay_beside_their_axes(scale):
    figure = series_figure([one._replace(value_T=one.value_T * np.float32(scale)) for one in make_series(9)], title="t")
    assert_inside(figure)


def test_no_text_lies_on_another():
    shown = [make_text("abc Xabc " * 30)._replace(title=ODD)] * 2
    boxes = list(boxes_of(text_figure(shown, title=ODD, unknown=4)).values())
    assert len(boxes) > 6
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, $5 and \u00e9", "plain text, $5 and \u00e9"),
        ("line\nline\ttab\u00a0blank", "line line tab blank"),
        ("\u6f22\x00\ud800\u202e\ufeff", BOX * 5),
    ],
)
def test_what_cannot_be_drawn_becomes_a_box(text, expected):
    assert clean(text) == expected


def test_a_very_long_text_is_cut():
    text = "a\u6f22 " * 10**6
    figure = text_figure([ShownExample("x", np.zeros(len(text), np.int64), text)], title="t", unknown=4)
    (text,) = (text.get_text() for text in figure.axes[0].texts if text.get_ha() == "left")
    lines = text.splitlines()
    assert len(lines) == 4
    assert lines[-1].endswith("\u2026")
