"""Text of any kind made fit to be drawn: in the letters that the font has, and no wider than its place.

A user's texts hold whatever people write. What the font lacks, and what would be invisible or turn a line around, is
drawn as a small empty box.
"""

import unicodedata
from collections import deque
from functools import cache
from typing import Any

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import FT2Font

from auxrnn.report.panel import PIXELS_PER_INCH

FINENESS = 2
"""Pixels of a fine screen, as figures are drawn for, to one of a plain one."""
NARROWEST = 0.2
"""How wide letters are at least, for a size of 1."""
BOX = "\u25af"
ELLIPSIS = "\u2026"
VISIBLE = {" ": "\u2423", "\n": "\u21b5", "\r": "\u21b5", "\t": "\u21e5"}
"""What stands for a step that is a blank, the end of a line or a tabulator."""


def clean(text: str, *, is_bold: bool = False) -> str:
    """Give a text on one line, in letters that the font has; of several accents on a letter the first stays."""
    letters: list[str] = []
    was_accent = True
    for character in text:
        is_accent = unicodedata.category(character) == "Mn"
        if not (is_accent and was_accent):
            letters.append(_drawable(character, is_bold))
        was_accent = is_accent
    return "".join(letters)


def clean_step(character: str) -> str:
    """Give one character as a step of its own: blanks can be seen, and what has no shape of its own is a box."""
    if character in VISIBLE:
        return VISIBLE[character]
    is_accent = unicodedata.category(character) in ("Mn", "Me", "Mc")
    return BOX if is_accent else _drawable(character, False)


def measure(text: str, *, size: float, is_bold: bool = False) -> float:
    """Give how wide a clean text is drawn, in pixels of a plain screen."""
    return sum((_advance(letter, size, is_bold) for letter in text), start=0.0)


def fit(text: str, width: float, *, size: float, is_bold: bool = False) -> str:
    """Give a text clean and cut to a width, with an ellipsis where something is left out."""
    cleaned = clean(text[: _most_letters(width, size)], is_bold=is_bold)
    if measure(cleaned, size=size, is_bold=is_bold) <= width:
        return cleaned
    room = width - measure(ELLIPSIS, size=size, is_bold=is_bold)
    return _cut(cleaned, room, size=size, is_bold=is_bold).rstrip() + ELLIPSIS


def wrap(text: str, width: float, *, size: float, max_lines: int) -> list[str]:
    """Give a text clean and broken into lines of a width, between words where that can be; the last may be cut."""
    words = deque(clean(text[: max_lines * _most_letters(width, size)]).split(" "))
    lines = [""]
    while words and len(lines) <= max_lines:
        longer = f"{lines[-1]} {words[0]}" if lines[-1] else words[0]
        if measure(longer, size=size) <= width:
            lines[-1] = longer
            words.popleft()
        elif lines[-1]:
            lines.append("")
        else:
            lines[-1] = _cut(words[0], width, size=size) or words[0][0]
            words[0] = words[0][len(lines[-1]) :]
    if words:
        rest = " ".join([lines[max_lines - 1], *words])
        lines = [*lines[: max_lines - 1], fit(rest, width, size=size)]
    return lines


def _most_letters(width: float, size: float) -> int:
    """Give more letters than can fit: of a long text the rest need not be looked at."""
    return 2 + int(width / (NARROWEST * size))


def _cut(text: str, width: float, *, size: float, is_bold: bool = False) -> str:
    for end, letter in enumerate(text):
        width -= _advance(letter, size, is_bold)
        if width < 0:
            return text[:end]
    return text


def _drawable(character: str, is_bold: bool) -> str:
    if character in "\n\r\t" or unicodedata.category(character) in ("Zl", "Zp", "Zs"):
        return " "
    # Categories of C are controls, marks that turn the direction of a line, halves of pairs and what is not assigned.
    is_shapeless = unicodedata.category(character).startswith("C")
    return BOX if is_shapeless or not _font(is_bold).get_char_index(ord(character)) else character


@cache
def _font(is_bold: bool) -> FT2Font:
    return get_font(findfont(FontProperties(weight="bold" if is_bold else "normal")))


@cache
def _advance(letter: str, size: float, is_bold: bool) -> float:
    """Give how far a letter moves the pen; measured between others, as blanks have no edges."""
    bare, filled = (_draw_width(text, size, is_bold) for text in ("||", f"|{letter}|"))
    return max(0.0, filled - bare)


@cache
def _draw_width(text: str, size: float, is_bold: bool) -> float:
    """Give the width of a text as it is drawn on a fine screen, where letters begin at whole pixels."""
    renderer: Any = RendererAgg(1, 1, FINENESS * PIXELS_PER_INCH)  # type: ignore[no-untyped-call]  # untyped
    font = FontProperties(size=size, weight="bold" if is_bold else "normal")
    return float(renderer.get_text_width_height_descent(text, font, ismath=False)[0]) / FINENESS
