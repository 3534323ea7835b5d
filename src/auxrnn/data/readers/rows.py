"""Rows of a table, whatever the kind of file: CSV, TSV, JSON Lines, Parquet, or one text per line.

Rows are read one by one. A row that cannot be parsed is refused by its line, as an editor counts lines.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.examples import Problems, refusing_damage
from auxrnn.errors import RunError, UsageError

MOST_CHARACTERS = 2**24
"""How long one field of a CSV file may be."""
MOST_LINE_CHARACTERS = 2**26
OPEN_QUOTE = f"opens a quote that is never closed, or has a field of {MOST_CHARACTERS:,} characters or more"
NUM_SAMPLED = 100
"""How many objects are looked at for their keys: some may have no label."""
BATCH_ROWS = 256
"""How many rows of Parquet are decoded at a time."""

Record = list[str] | dict[str, object]
"""The cells of a row by position, or its values by name."""
Rows = Iterator[tuple[int, Record]]
"""Records with the line, or the row of Parquet, on which each begins, from 1; without blank lines."""


class TableKind(NamedTuple):
    """One kind of file, and how it is read."""

    title: str
    read: Callable[[Path, Problems, Sequence[str] | None], Rows]
    """From the file, where problems go, and the columns that are wanted, by name; None for all."""
    unit: str = "line"
    """What an error message counts."""
    packing: int = 1
    """About how many bytes of text a byte of the file holds."""


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


def read_lines(path: Path, *, errors: str = "surrogateescape") -> Iterator[str]:
    """Yield the lines of a text file with their ends; bytes that are not UTF-8 become lone surrogates by default."""
    cure = "check that it is there and that you may read it"
    with refusing_damage(path, cure), path.open(encoding="utf-8-sig", errors=errors, newline="") as file:
        for number in count(1):
            line = file.readline(MOST_LINE_CHARACTERS + 1)
            if len(line) > MOST_LINE_CHARACTERS:
                what = f"has more than {MOST_LINE_CHARACTERS:,} characters"
                raise RunError(f"{path}, line {number} {what}; make it shorter")
            if not line:
                return
            yield line


def _read_csv(path: Path, problems: Problems, _columns: object, *, delimiters: str) -> Rows:
    # The limit holds for the whole process; it is raised, never lowered, so that other users of csv are not cut short.
    csv.field_size_limit(max(csv.field_size_limit(), MOST_CHARACTERS))
    lines, head = read_lines(path), list[str]()
    while not "".join(head[-1:]).strip() and (line := next(lines, "")):
        head.append(line)
    unquoted = re.sub('"[^"]*("|$)', "", "".join(head))
    reader = csv.reader(chain(head, lines), delimiter=max(delimiters, key=unquoted.count), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_over = "expected after" not in str(error)
            what = OPEN_QUOTE if is_over else "has text after a closing quote"
            problems.refuse(f"{path}, line {number}", what, "close a quote, and double one inside a text")
            if is_over:
                return
            continue
        if len(cells) > 1 or "".join(cells).strip():
            yield number, cells


def _read_json(path: Path, problems: Problems, _columns: object) -> Rows:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            at = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "it is too large"
            problems.refuse(f"{path}, line {number}", f"is not JSON ({at})", "write one object on each line")
            continue
        if isinstance(record, dict):
            yield number, record
        else:
            problems.refuse(f"{path}, line {number}", "is JSON but not an object", 'write it as {"text": ...}')


def _read_plain(path: Path, _problems: Problems, _columns: object) -> Rows:
    return ((number, {"text": line.rstrip("\r\n")}) for number, line in enumerate(read_lines(path), start=1))


def _read_parquet(path: Path, _problems: Problems, columns: Sequence[str] | None) -> Rows:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - optional
    except ImportError as error:
        raise UsageError(f"{path} is a Parquet file; to read it, pip install 'auxrnn[parquet]'") from error
    with (
        refusing_damage(path, "write it again", kind="Parquet"),
        path.open("rb") as content,
        pyarrow.parquet.ParquetFile(content) as file,
    ):
        batches = file.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False)
        yield from enumerate((record for batch in batches for record in batch.to_pylist()), start=1)


PLAIN_TEXT = TableKind("plain text", _read_plain)
KINDS: dict[str, TableKind] = {
    ".csv": TableKind("CSV", partial(_read_csv, delimiters=",;\t")),
    ".tsv": TableKind("TSV", partial(_read_csv, delimiters="\t")),
    ".jsonl": TableKind("JSON Lines", _read_json),
    ".ndjson": TableKind("JSON Lines", _read_json),
    ".parquet": TableKind("Parquet", _read_parquet, unit="row", packing=4),
    ".txt": PLAIN_TEXT,
}
"""Every kind of file by suffix; a new one is a function that yields its rows, and its line here."""
