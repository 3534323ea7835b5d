"""Guesses of the columns that hold the texts and the labels, by their names and by what they hold."""

import re
from collections.abc import Collection, Sequence

from auxrnn.data.tables.header import (
    LABEL_NAME,
    SHORT_TEXT_NAME,
    TEXT_NAME,
    Rows,
    column,
    is_called,
    is_label_like,
    is_number,
)

Guess = tuple[int, ...]
"""The columns that could be meant: none, the one that is obvious, or several that are equally likely."""

MUCH_LONGER = 2


def guess_text_by_name(names: Sequence[str], rows: Rows, taken: Collection[int]) -> Guess:
    """Give the columns with the well-known names of texts; a title beside a longer text is in doubt."""
    known = _find_known(names, rows, TEXT_NAME, taken)
    if len(known) != 1 or not is_called(names[known[0]], SHORT_TEXT_NAME):
        return known
    labels = _find_known(names, rows, LABEL_NAME, taken)
    others = _find_texts(rows, {*taken, *known, *labels})
    least = MUCH_LONGER * _mean_length(column(rows, known[0]))
    return known + tuple(index for index in others if _mean_length(column(rows, index)) > least)


def guess_label(names: Sequence[str], rows: Rows, text: Collection[int]) -> Guess:
    """Give the columns with the well-known names of labels, or else those that repeat the fewest values."""
    known = _find_known(names, rows, LABEL_NAME, text)
    if known:
        return known
    texts = set(_find_texts(rows, text))
    like = [index for index in range(len(names)) if index not in text and is_label_like(column(rows, index))]
    # Something must be left to read.
    free = [index for index in like if text or texts - {index}]
    counts = {index: len({cell.strip() for cell in column(rows, index) if cell.strip()}) for index in free}
    fewest = min(counts.values(), default=0)
    return tuple(index for index, count in counts.items() if count == fewest)


def guess_text_by_length(rows: Rows, taken: Collection[int]) -> Guess:
    """Give the column with the longest texts on the average; a column of numbers is none."""
    lengths = {index: _mean_length(column(rows, index)) for index in _find_texts(rows, taken)}
    longest = max(lengths.values(), default=0)
    return tuple(index for index, length in lengths.items() if length == longest)


def _find_known(names: Sequence[str], rows: Rows, known: re.Pattern[str], taken: Collection[int]) -> Guess:
    found = tuple(index for index, name in enumerate(names) if index not in taken and is_called(name, known))
    filled = tuple(index for index in found if any(cell.strip() for cell in column(rows, index)))
    # A column that is empty as far as one can see is in nobody's way, but may be the only one of its kind.
    return found if len(found) == 1 else filled


def _find_texts(rows: Rows, taken: Collection[int]) -> list[int]:
    width = len(rows[0]) if rows else 0
    free = [index for index in range(width) if index not in taken]
    return [index for index in free if not all(is_number(cell) or not cell.strip() for cell in column(rows, index))]


def _mean_length(cells: Sequence[str]) -> float:
    return sum(map(len, cells)) / max(len(cells), 1)
