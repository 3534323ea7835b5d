"""CSV and TSV: cells separated by a comma, a semicolon or a tab, with quotes where they are needed."""

import csv
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from auxrnn.data.examples import Problems
from auxrnn.data.readers.lines import Lines, measure_text_file, open_lines
from auxrnn.data.readers.rows import MOST_CHARACTERS, Columns, Layout, TableKind, TableRow
from auxrnn.errors import RunError

CLOSE_QUOTES = "close it, and double a quote inside a quoted text"

Cells = list[str]


def _read_columns(path: Path, *, delimiters: str) -> Columns:
    for _number, cells in _parse(path, Problems(), delimiters=delimiters):
        return Columns(tuple(cell.strip() for cell in cells), are_names=False)
    raise RunError(f"{path} has no rows; give it at least one")


def _read_rows(path: Path, layout: Layout, problems: Problems, *, delimiters: str) -> Iterator[TableRow]:
    num_columns = len(layout.names)
    rows = _parse(path, problems, delimiters=delimiters)
    for number, cells in islice(rows, int(layout.has_header), None):
        if len(cells) == num_columns:
            label = None if layout.label is None else cells[layout.label]
            yield TableRow(number, [cells[index] for index in layout.text], label)
            continue
        what = f"has {len(cells)} column{'s' * (len(cells) != 1)} where the first row has {num_columns}"
        problems.refuse(f"{path}, line {number}", what, f"give it {num_columns}, and quotes around its texts")


def _parse(path: Path, problems: Problems, *, delimiters: str) -> Iterator[tuple[int, Cells]]:
    """Yield the rows that are not blank, each with the line it begins on."""
    # The limit holds for the whole process; it is raised, never lowered, so that other users of csv are not cut short.
    csv.field_size_limit(max(csv.field_size_limit(), MOST_CHARACTERS))
    delimiter = _find_delimiter(path, delimiters)
    with open_lines(path, problems) as lines:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            number, lines.is_clean = lines.number + 1, True
            try:
                cells = next(reader, None)
            except csv.Error as error:
                if not _refuse_row(path, number, lines, str(error), problems):
                    return
                continue
            if cells is None:
                return
            if lines.is_clean and (len(cells) > 1 or "".join(cells).strip()):
                yield number, cells


def _find_delimiter(path: Path, delimiters: str) -> str:
    """Return the delimiter that divides the first line into the most cells."""
    with open_lines(path, Problems(is_patient=True)) as lines:
        first = next((line for line in lines if line.strip()), "")[: MOST_CHARACTERS - 1]
    return max(delimiters, key=lambda delimiter: len(next(csv.reader([first], delimiter=delimiter), [])))


def _refuse_row(path: Path, number: int, lines: Lines, error: str, problems: Problems) -> bool:
    """Refuse a row that csv cannot parse; return whether the next line begins a new row."""
    place = f"{path}, line {number}"
    if "expected after" in error:
        where = "" if lines.number == number else f" on line {lines.number}"
        problems.refuse(place, f"has text after a closing quote{where}", "double a quote inside a quoted text")
        return True
    if "field larger" in error:
        problems.refuse(place, f"has a field of {MOST_CHARACTERS:,} characters or more", f"cut it, or {CLOSE_QUOTES}")
    else:
        problems.refuse(place, "opens a quote that is never closed", CLOSE_QUOTES)
    return False


def _make_kind(title: str, delimiters: str) -> TableKind:
    read_columns, read_rows = partial(_read_columns, delimiters=delimiters), partial(_read_rows, delimiters=delimiters)
    return TableKind(title, "line", read_columns, read_rows, measure_text_file)


CSV = _make_kind("CSV", ",;\t")
TSV = _make_kind("TSV", "\t")
