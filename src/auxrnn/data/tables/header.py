"""Whether the first row of a table holds the names of its columns, and what names are well known."""

import re
from collections import Counter
from collections.abc import Sequence

TEXT_NAME = re.compile(
    "texts?|(text_)?contents?|reviews?|review_?(text|body)|sentences?|documents?|body|messages?|title|headline|abstract"
    "|comments?|comment_text|description|article|tweet|post|question|utterance|sequence|e_?mail|sms"
)
"""What a column of texts is usually called."""
SHORT_TEXT_NAME = re.compile("title|headline")
"""What it is called where a longer text often stands beside it."""
LABEL_NAME = re.compile(
    "labels?|class(es)?|class_(index|label)|category|target|sentiment|polarity|stars?|rating|topic|intent|emotion|genre|y"
)
"""What a column of labels is usually called."""
MOST_NAME_CHARACTERS = 100
RARE = 0.05
"""In a column with fewer single values than this, a value that stands in the first row alone is a name."""
NUMBER = re.compile(r"\s*[-+]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][-+]?[0-9]+)?\s*")

Rows = Sequence[Sequence[str]]


def is_called(name: str, known: re.Pattern[str]) -> bool:
    """Say whether a name is a known one, however it is written: "Review Text", "review-text"."""
    return known.fullmatch(re.sub(r"[\s_-]+", "_", name.strip().lower())) is not None


def has_header(rows: Rows) -> bool:
    """Guess whether the first row holds names: by what they are, or because they differ from all that is below."""
    first, below = rows[0], rows[1:]
    if _is_counted(first) or has_known_names(first):
        return True
    if not _could_be_names(first):
        return False
    known = [index for index, cell in enumerate(first) if is_called(cell, TEXT_NAME) or is_called(cell, LABEL_NAME)]
    if any(first[index] in column(below, index) for index in known):
        return False
    return bool(known) or _differs_from_below(first, below)


def has_known_names(cells: Sequence[str]) -> bool:
    """Say whether a row holds a well-known name of texts and one of labels, which cannot be by chance."""
    return any(is_called(cell, TEXT_NAME) for cell in cells) and any(is_called(cell, LABEL_NAME) for cell in cells)


def column(rows: Rows, index: int) -> list[str]:
    """Give the cells of a column."""
    return [row[index] for row in rows]


def is_number(cell: str) -> bool:
    """Say whether a cell holds nothing but a number."""
    return NUMBER.fullmatch(cell) is not None


def is_label_like(cells: Sequence[str]) -> bool:
    """Say whether a column repeats few short values, as labels do; empty cells do not count."""
    values = [cell.strip() for cell in cells if cell.strip()]
    num_different = len(set(values))
    return 2 <= num_different <= len(values) / 2 and max(map(len, values)) <= MOST_NAME_CHARACTERS


def _could_be_names(cells: Sequence[str]) -> bool:
    names = [cell.strip() for cell in cells if cell.strip()]
    is_short = all(len(name) <= MOST_NAME_CHARACTERS and "\n" not in name for name in names)
    return bool(names) and is_short and len(set(names)) == len(names)


def _is_counted(cells: Sequence[str]) -> bool:
    """Say whether these are the names that pandas gives to columns without any, with or without its index."""
    names = cells[1:] if not cells[0] else cells
    return len(cells) >= 2 and list(names) == [str(index) for index in range(len(names))]


def _differs_from_below(first: Sequence[str], below: Rows) -> bool:
    columns = [column(below, index) for index in range(len(first))]
    repeating = [(cell.strip(), cells) for cell, cells in zip(first, columns, strict=True) if is_label_like(cells)]
    if any(cell in map(str.strip, cells) for cell, cells in repeating):
        return False
    is_above_numbers = any(_is_above_numbers(cell, cells) for cell, cells in zip(first, columns, strict=True))
    return is_above_numbers or any(_is_out_of_place(cell, cells) for cell, cells in repeating)


def _is_above_numbers(cell: str, cells: Sequence[str]) -> bool:
    values = [value for value in cells if value.strip()]
    return bool(cell.strip()) and not is_number(cell) and bool(values) and all(map(is_number, values))


def _is_out_of_place(cell: str, cells: Sequence[str]) -> bool:
    """Say whether a value that never occurs below would be a surprise there.

    The share of values that occur once is about the chance that the next value is a new one (Good, 1953).
    """
    counts = Counter(value.strip() for value in cells if value.strip())
    num_single = sum(count == 1 for count in counts.values())
    return bool(cell) and not is_number(cell) and num_single <= RARE * counts.total()
