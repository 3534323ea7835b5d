"""Whatever people write can be drawn, and is no wider than its place."""

import unicodedata
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from auxrnn.report.lettering import BOX, ELLIPSIS, clean, clean_step, fit, measure, wrap
from auxrnn.report.panel import new_figure

ODD = (
    "\u6f22\u5b57 \U0001f600 \x00\x1b[31m\t\n \u0645\u0631\u062d \u202eback \ud800 \ufeff\u200b $x^2$ "
    "z\u0302\u0335\u0322 \ufdfd"
)
texts = st.text(st.one_of(st.characters(), st.sampled_from("aW i.$_^\\\n\u0301\u0645\u05d0")), max_size=60)


def drawn_width(text, *, size, is_bold=False):
    """How wide a text really comes out on a fine screen, in pixels of a plain one; warnings are errors."""
    figure = new_figure(100.0, 100.0)
    figure.dpi = 144
    weight = "bold" if is_bold else "normal"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        artist = figure.text(0, 0, text, size=size, weight=weight, parse_math=False)
        renderer = FigureCanvasAgg(figure).get_renderer()
        artist.draw(renderer)
        return artist.get_window_extent(renderer).width / 2


@settings(max_examples=60)
@given(texts, st.booleans())
@example(ODD, False)
@example("fi ffl AVAVAV To Te \u2019", True)
def test_any_text_is_drawn_without_a_warning_and_as_wide_as_measured(text, is_bold):
    cleaned = clean(text, is_bold=is_bold)
    width = drawn_width(cleaned, size=13.0, is_bold=is_bold)
    assert width <= 1.02 * measure(cleaned, size=13.0, is_bold=is_bold) + 3
    assert "\n" not in cleaned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, $5 and \u00e9", "plain text, $5 and \u00e9"),
        ("line\nline\ttab\u00a0blank", "line line tab blank"),
        ("\u6f22\x00\ud800\u202e\ufeff", BOX * 5),
        ("e\u0301\u0302\u0303!", "e\u0301!"),
        ("\u0301e", "e"),
    ],
)
def test_what_cannot_be_drawn_becomes_a_box(text, expected):
    assert clean(text) == expected


def test_a_blank_step_can_be_seen():
    assert [clean_step(character) for character in " \n\t"] == ["\u2423", "\u21b5", "\u21e5"]
    assert [clean_step(character) for character in "a\u0301\x00\u6f22"] == ["a", BOX, BOX, BOX]


@settings(max_examples=60)
@given(texts, st.floats(30, 300))
@example("W" * 60, 100.0)
def test_a_text_is_cut_to_its_place(text, width):
    fitted = fit(text, width, size=13.0)
    assert measure(fitted, size=13.0) <= width
    if measure(clean(text), size=13.0) <= width:
        assert fitted == clean(text)
    else:
        assert fitted.endswith(ELLIPSIS)
        assert clean(text).startswith(fitted.removesuffix(ELLIPSIS))


@settings(max_examples=60)
@given(texts, st.floats(30, 300), st.integers(1, 4))
@example("W" * 60, 100.0, 2)
@example("one two three four five six seven", 60.0, 3)
@example("", 60.0, 1)
def test_lines_are_no_wider_than_their_place_and_no_more_than_allowed(text, width, max_lines):
    lines = wrap(text, width, size=13.0, max_lines=max_lines)
    assert 1 <= len(lines) <= max_lines
    assert all(measure(line, size=13.0) <= width for line in lines)
    written = "".join(lines).replace(" ", "")
    whole = clean(text).replace(" ", "")
    if lines[-1].endswith(ELLIPSIS) and not whole.endswith(ELLIPSIS):
        assert whole.startswith(written.removesuffix(ELLIPSIS))
    else:
        assert written == whole


def test_lines_break_between_words():
    lines = wrap("the quick brown fox jumps over the lazy dog", 100.0, size=13.0, max_lines=9)
    assert len(lines) > 2
    assert " ".join(lines) == "the quick brown fox jumps over the lazy dog"


def test_a_very_long_text_is_not_looked_at_to_its_end():
    assert wrap("a\u6f22 " * 10**6, 300.0, size=13.0, max_lines=2)[-1].endswith(ELLIPSIS)
    assert fit("b" * 10**6, 300.0, size=13.0).endswith(ELLIPSIS)


def test_every_assigned_letter_is_clean_once_it_is_cleaned():
    letters = [chr(code) for code in range(0x3000) if unicodedata.category(chr(code)) != "Mn"]
    cleaned = clean("".join(letters))
    assert clean(cleaned) == cleaned
    assert len(cleaned) == len(letters)
