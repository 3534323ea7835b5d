"""What a reader of tables gives, whatever the kind of file: the names of the columns, then the rows."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.examples import Problems

MOST_CHARACTERS = 2**24
"""How long one field of a table may be."""


class Columns(NamedTuple):
    """All columns of a file: their names, or the cells of the first row, which may be names or not."""

    names: tuple[str, ...]
    are_names: bool


class Layout(NamedTuple):
    """Where the texts and the labels of a file are, by position from 0."""

    names: tuple[str, ...]
    """Of all columns; their numbers from 1 where the file has no names."""
    is_named: bool
    has_header: bool
    """Whether the first row holds the names."""
    text: tuple[int, ...]
    label: int | None


class TableRow(NamedTuple):
    """What a row holds in the chosen columns; nothing is checked yet."""

    number: int
    """The line it begins on, or the row, from 1."""
    texts: Sequence[object]
    label: object


class TableKind(NamedTuple):
    """One kind of file, and how it is read."""

    title: str
    unit: str
    """What an error message counts: lines or rows."""
    read_columns: Callable[[Path], Columns]
    read_rows: Callable[[Path, Layout, Problems], Iterator[TableRow]]
    measure: Callable[[Path, Layout], int]
    """About how many bytes the texts have in UTF-8."""
