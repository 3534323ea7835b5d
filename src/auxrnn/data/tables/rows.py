"""Rows of a table, whatever the kind of its file: what its readers are told, and what they give."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.examples import Problems

MOST_CHARACTERS = 2**24
"""How long one field of a table may be."""
MOST_SAMPLED_ROWS = 1000
MOST_SAMPLED_CHARACTERS = 2**22
"""Where a sample ends, so that long texts do not fill the memory."""
WHOLE_NUMBER = re.compile(r"(-?[0-9]+)\.0+")
LARGEST_EXACT = 2.0**53
"""Up to here a float holds every whole number."""


class Sample(NamedTuple):
    """Some rows of a file, from which its columns are told."""

    names: tuple[str, ...] | None
    """The names of the columns where the kind of file always has them; else the first row may hold them."""
    rows: Sequence[Sequence[str]]
    """All columns of each row; what is neither a text nor a number is empty."""
    fault: str | None = None
    """What is wrong with the first of the rows that had to be left out."""


class Layout(NamedTuple):
    """Where the texts and the labels of a file stand, by position from 0."""

    names: tuple[str, ...]
    """The names of all columns, empty where one has none; their numbers from 1 where no column has a name."""
    has_header: bool
    """Whether the first line holds the names."""
    text: tuple[int, ...]
    label: int | None


class Row(NamedTuple):
    """What a row holds in the columns that are asked for; checked by nobody yet."""

    number: int
    """The line it begins on, or the row, from 1."""
    texts: Sequence[object]
    label: object


class Size(NamedTuple):
    """How large a table is."""

    num_rows: int | None
    """None where it is not known before the end."""
    num_bytes: int
    """About how many bytes its texts have in UTF-8."""


class TableKind(NamedTuple):
    """One kind of file, and how it is read."""

    title: str
    unit: str
    """What an error message counts: lines or rows."""
    sample: Callable[[Path], Sample]
    read: Callable[[Path, Layout, Problems], Iterator[Row]]
    measure: Callable[[Path, Layout], Size]


def take_sample(rows: Iterator[Sequence[str]]) -> list[Sequence[str]]:
    """Take the first rows, as many as a sample may hold."""
    taken: list[Sequence[str]] = []
    num_characters = 0
    for row in rows:
        taken.append(row)
        num_characters += sum(map(len, row))
        if len(taken) >= MOST_SAMPLED_ROWS or num_characters >= MOST_SAMPLED_CHARACTERS:
            break
    return taken


def to_cell(value: object) -> str:
    """Give a value of JSON or Parquet as a sample shows it."""
    return str(value) if isinstance(value, str | int | float) else ""


def to_label(value: object) -> str | None:
    """Give the class that a cell names, None where it is empty; 1, 1.0 and "1" are the same class.

    Raises `TypeError` for what cannot name a class, such as a list.
    """
    if isinstance(value, str):
        return _shorten(value.strip()) or None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and abs(value) <= LARGEST_EXACT and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    raise TypeError(type(value).__name__)


def _shorten(label: str) -> str:
    # Where labels are missing, pandas turns the whole numbers of the column into floats.
    match = WHOLE_NUMBER.fullmatch(label) if label.endswith("0") else None
    return label if match is None else match[1]
