"""Rows of a table, whatever the kind of file: CSV, TSV, JSON Lines, Parquet, or one text per line.

Rows are read one by one. A row that cannot be parsed is refused by its line, as an editor counts lines.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple, TextIO

from auxrnn.data.examples import ExampleError, Problems
from auxrnn.errors import RunError, UsageError
from auxrnn.files import cannot_read

MOST_CHARACTERS = 2**24
"""How long one field of a table may be."""
MOST_LINE_CHARACTERS = 2**26
OPEN_QUOTE = f"opens a quote that is never closed, or has a field of {MOST_CHARACTERS:,} characters or more"
NUM_SAMPLED = 100
"""How many objects are looked at for their keys: some may have no label."""
BATCH_ROWS = 256
"""How many rows of Parquet are decoded at a time."""

Record = list[str] | dict[str, object]
"""The cells of a row by position, or its values by name; an empty list for a blank line."""
Rows = Iterator[tuple[int, Record]]
"""Records with the line, or the row of Parquet, on which each begins, from 1."""


class TableKind(NamedTuple):
    """One kind of file, and how it is read."""

    title: str
    unit: str
    """What an error message counts: lines or rows."""
    read: Callable[[Path, Problems, Sequence[str] | None], Rows]
    """From the file, where problems go, and the columns that are wanted, by name; None for all."""
    packing: int = 1
    """About how many bytes of text a byte of the file holds."""


class Lines:
    """An iterator over the lines of a file, line breaks included; it continues after a line that it refuses."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.number = 0
        """The number of the last line, from 1."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(MOST_LINE_CHARACTERS)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) >= MOST_LINE_CHARACTERS:
            self._file.seek(0, 2)
            raise ExampleError(f"has more than {MOST_LINE_CHARACTERS:,} characters", "make it shorter")
        check_text(line)
        return line

    def peek(self) -> str:
        """Return the beginning of the first line that is not blank; only before any line was read."""
        beginning = self._file.read(2**16)
        self._file.seek(0)
        return next(filter(str.strip, beginning.splitlines()), "")


def check_text(text: str) -> None:
    """Refuse what no text file can hold."""
    if "\0" in text:
        raise ExampleError("has a NUL character", "remove it, or save the file as UTF-8")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ExampleError(f"is not valid UTF-8 at character {error.start + 1}", "save it as UTF-8") from None


def read_names(path: Path) -> tuple[tuple[str, ...], bool]:
    """Return the names of all columns, or the cells of the first row, and whether they are known to be names."""
    noted = Problems(is_patient=True)
    rows = KINDS[path.suffix.lower()].read(path, noted, None)
    first = next(rows, None)
    if first is None or (noted.refused and isinstance(first[1], list)):
        raise RunError(noted.refused[0] if noted.refused else f"{path} has no rows; give it at least one")
    if isinstance(first[1], list):
        return tuple(cell.strip() for cell in first[1]), False
    records = [first[1], *(record for _, record in islice(rows, NUM_SAMPLED - 1))]
    return tuple(dict.fromkeys(key for record in records for key in record)), True


def _read_text(path: Path, problems: Problems, _columns: object, *, parse: Callable[[Lines], Iterator[Record]]) -> Rows:
    """Yield the records that `parse` makes of lines, without blank ones; `parse` must continue after an error."""
    try:
        # Bytes that are not UTF-8 arrive as lone surrogates, which `Lines` refuses by line.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            lines = Lines(file)
            records = parse(lines)
            while True:
                number = lines.number + 1
                try:
                    record = next(records)
                except StopIteration:
                    return
                except ExampleError as error:
                    problems.refuse(f"{path}, line {lines.number}", error.what, error.cure)
                    continue
                except csv.Error as error:
                    is_over = "expected after" not in str(error)
                    what = OPEN_QUOTE if is_over else "has text after a closing quote"
                    problems.refuse(f"{path}, line {number}", what, "close a quote, and double one inside a text")
                    if is_over:
                        return
                    continue
                if isinstance(record, dict) or len(record) > 1 or "".join(record).strip():
                    yield number, record
    except OSError as error:
        raise cannot_read(path, error) from error


def _parse_csv(lines: Lines, *, delimiters: str) -> Iterator[Record]:
    # The limit holds for the whole process; it is raised, never lowered, so that other users of csv are not cut short.
    csv.field_size_limit(max(csv.field_size_limit(), MOST_CHARACTERS))
    unquoted = re.sub('"[^"]*("|$)', "", lines.peek())
    return csv.reader(lines, delimiter=max(delimiters, key=unquoted.count), strict=True)


def _parse_json(line: str) -> Record:
    if not line.strip():
        return []
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        at = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "it is too large"
        raise ExampleError(f"is not JSON ({at})", "write each row as one object on one line") from error
    if not isinstance(value, dict):
        raise ExampleError("is JSON but not an object", 'write it as {"text": ...}')
    return value


def _parse_line(line: str) -> Record:
    return {"text": line.rstrip("\r\n")}


def _read_parquet(path: Path, _problems: Problems, columns: Sequence[str] | None) -> Rows:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - optional
    except ImportError as error:
        raise UsageError(f"{path} is a Parquet file; to read it, pip install 'auxrnn[parquet]'") from error
    numbers = count(1)
    try:
        with path.open("rb") as content, pyarrow.parquet.ParquetFile(content) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False):
                yield from ((next(numbers), record) for record in batch.to_pylist())
    except Exception as error:  # pyarrow reports damage by many kinds of exception
        why = (isinstance(error, OSError) and error.strerror) or "it is damaged or another format"
        raise RunError(f"{path} cannot be read as Parquet ({why}); write it again") from error


def _text_kind(title: str, parse: Callable[[Lines], Iterator[Record]]) -> TableKind:
    return TableKind(title, "line", partial(_read_text, parse=parse))


PLAIN_TEXT = _text_kind("plain text", partial(map, _parse_line))
JSON_LINES = _text_kind("JSON Lines", partial(map, _parse_json))
KINDS: Mapping[str, TableKind] = {
    ".csv": _text_kind("CSV", partial(_parse_csv, delimiters=",;\t")),
    ".tsv": _text_kind("TSV", partial(_parse_csv, delimiters="\t")),
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".parquet": TableKind("Parquet", "row", _read_parquet, packing=4),
    ".txt": PLAIN_TEXT,
}
"""Every kind of file by suffix; a new one is a function that yields its rows, and its line here."""
