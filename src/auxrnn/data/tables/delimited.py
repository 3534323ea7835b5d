"""CSV and TSV: rows of cells with a comma, a semicolon or a tab between them, quoted where they need it."""

import csv
import io
import os
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from auxrnn.data.examples import Problems
from auxrnn.data.tables.lines import Lines, open_text
from auxrnn.data.tables.rows import MOST_CHARACTERS, Layout, Row, Sample, take_sample
from auxrnn.errors import RunError

TAIL_BYTES = 2**18
QUOTED_CELL = re.compile(r'(?:^|(?<=[,;\t]))"(?:[^"]++|"")*+(?:"|$)')
QUOTE_CURE = "close it, and write a quote inside of a quoted text twice"

Cells = list[str]


def sample_delimited(path: Path, *, delimiters: str) -> Sample:
    """Give the first rows, and some of the last ones: many tables are sorted by their labels.

    Of rows that cannot be read only the first is refused, since it says how many columns there are.
    """
    noted = Problems(is_patient=True)
    delimiter = _find_delimiter(path, delimiters)
    with closing(_parse(path, delimiter, noted, num_columns=None)) as rows:
        _, first = next(rows, (0, None))
        if noted.refused:
            raise RunError(noted.refused[0])
        if first is None:
            return Sample(None, [])
        below = take_sample(cells for _, cells in rows)
        is_cut = next(rows, None) is not None
    tail = _sample_tail(path, delimiter, len(first)) if is_cut else []
    return Sample(None, [first, *below, *tail], noted.refused[0] if noted.refused else None)


def read_delimited(path: Path, layout: Layout, problems: Problems, *, delimiters: str) -> Iterator[Row]:
    """Give the texts and the label of each row below the header; blank lines are passed over."""
    rows = _parse(path, _find_delimiter(path, delimiters), problems, num_columns=len(layout.names))
    for number, cells in islice(rows, int(layout.has_header), None):
        label = None if layout.label is None else cells[layout.label]
        yield Row(number, [cells[index] for index in layout.text], label)


def _find_delimiter(path: Path, delimiters: str) -> str:
    """Give the delimiter that occurs most often in the first line outside of quotes; the first of them if none does."""
    with open_text(path) as file:
        lines = Lines(file, path, Problems(is_patient=True))
        for line in lines:
            if line.strip():
                return max(delimiters, key=QUOTED_CELL.sub("", line).count)
            lines.start_row()
    return delimiters[0]


def _parse(
    path: Path, delimiter: str, problems: Problems, *, num_columns: int | None
) -> Generator[tuple[int, Cells], None, None]:
    """Give the rows that have so many columns, or as many as the first, each with the line it begins on."""
    for number, cells in _parse_any(path, delimiter, problems):
        num_columns = num_columns or len(cells)
        if len(cells) == num_columns:
            yield number, cells
        else:
            found = f"has {len(cells)} column{'s' * (len(cells) != 1)} where the first row has {num_columns}"
            problems.refuse(f"{path}, line {number}", found, f"give it {num_columns}, and quotes around its texts")


def _parse_any(path: Path, delimiter: str, problems: Problems) -> Iterator[tuple[int, Cells]]:
    # The limit holds for the whole process; it is raised, never lowered, so that other users of csv are not cut short.
    csv.field_size_limit(max(csv.field_size_limit(), MOST_CHARACTERS))
    with open_text(path) as file:
        lines = Lines(file, path, problems)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            lines.start_row()
            number = lines.number + 1
            try:
                cells = next(reader, None)
            except csv.Error:
                if _refuse_row(path, number, lines.row, delimiter, problems):
                    continue
                return
            if cells is None:
                return
            if lines.is_clean and not _is_blank(cells, lines.row):
                yield number, cells


def _is_blank(cells: Cells, lines: list[str]) -> bool:
    return len(cells) < 2 and not lines[0].strip()


def _refuse_row(path: Path, number: int, lines: list[str], delimiter: str, problems: Problems) -> bool:
    """Say what is wrong with a row that csv cannot read, and whether the rows after it can still be read."""
    opened, closed = _find_broken_quote("".join(lines), delimiter)
    if opened is None:
        problems.refuse(f"{path}, line {number}", f"has a field of {MOST_CHARACTERS:,} characters or more", "cut it")
        return True
    first = number + _count_lines(lines, opened)
    if closed is None:
        is_cut = sum(map(len, lines)) - opened >= MOST_CHARACTERS
        found = f"not closed within {MOST_CHARACTERS:,} characters" if is_cut else "never closed"
        problems.refuse(f"{path}, line {first}", f"opens a quote that is {found}", QUOTE_CURE)
        return False
    last = number + _count_lines(lines, closed)
    where = "" if last == first else f" on line {last}"
    found = f"opens a quote that is closed{where} in the middle of a text"
    problems.refuse(f"{path}, line {first}", found, "write a quote inside of a quoted text twice")
    return True


def _find_broken_quote(text: str, delimiter: str) -> tuple[int | None, int | None]:
    """Give where the quote opens that breaks a row, and where it closes; None for what does not happen."""
    cell = re.compile(rf'"(?:[^"]++|"")*+(?P<end>"?)|[^{delimiter}\r\n]*+')
    position = 0
    while match := cell.match(text, position):
        if match["end"] == "":
            return position, None
        end = match.end()
        if end == len(text) or text[end] in "\r\n":
            break
        if text[end] != delimiter:
            return position, end - 1
        position = end + 1
    return None, None


def _count_lines(lines: list[str], position: int) -> int:
    """Give how many lines end before a position of their text."""
    for index, line in enumerate(lines):
        if position < len(line):
            return index
        position -= len(line)
    return max(len(lines) - 1, 0)


def _sample_tail(path: Path, delimiter: str, num_columns: int) -> list[Cells]:
    """Give the last rows of a large file, or none where the place at which they are cut off is not between rows."""
    with open_text(path) as file:
        buffer = file.buffer
        if buffer.seek(0, os.SEEK_END) <= TAIL_BYTES:
            return []
        buffer.seek(-TAIL_BYTES, os.SEEK_END)
        tail = buffer.read().decode("utf-8", "replace").partition("\n")[2]
    try:
        rows = [cells for cells in csv.reader(io.StringIO(tail, newline=""), delimiter=delimiter, strict=True) if cells]
    except csv.Error:
        return []
    return rows if all(len(cells) == num_columns for cells in rows) else []
