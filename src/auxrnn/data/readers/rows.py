"""Rows of a table, whatever the kind of file: CSV, TSV, JSON Lines, Parquet, or one text per line.

Rows are read one by one. A row that cannot be parsed is refused by its line, as an editor counts lines.
"""

import csv
import gzip
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.archives import UnpackingBudget
from auxrnn.data.examples import Part, Problems, refusing_damage
from auxrnn.errors import RunError, UsageError

MOST_CHARACTERS = 2**24
"""How long one field of a CSV file may be."""
MOST_LINE_CHARACTERS = 2**26
OPEN_QUOTE = f"opens a quote that is never closed, or has a field of {MOST_CHARACTERS:,} characters or more"
NUM_SAMPLED = 100
"""How many objects are looked at for their keys: some may have no label."""
BATCH_ROWS = 256
"""How many rows of Parquet are decoded at a time."""
MOST_SAMPLED = 2**18
"""How many cells are looked at to tell numbers from texts."""
PACKED = ".gz"
PACKING = 4
"""About how many bytes a byte of a gzipped table holds."""
NUMBER = re.compile(r"[+-]?((?!0[0-9])[0-9]{1,17}(\.[0-9]*)?|[0-9]*\.[0-9]+|[0-9]+\.)(e[+-]?[0-9]+)?|[+-]?inf(inity)?")
"""Digits that begin with a zero, or go on and on, are no number: they spell something."""
GAPS = ("", "?", "nan", "na", "n/a", "null", "none")
"""What stands in a table for a number that is missing, in lower case."""

Record = list[str] | dict[str, object]
"""The cells of a row by position, or its values by name."""
Files = Mapping[Part, Path] | Path
"""One file, or one for each part."""
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


class Head(NamedTuple):
    """The columns of a table and their first cells, before any is chosen."""

    path: Path
    names: tuple[str, ...]
    """Of all columns; where a file does not say them, the cells of its first row, or numbers from 1."""
    is_named: bool
    """Whether these are known to be names."""
    cells: Sequence[Sequence[object]]
    """Of each column; with the first row unless that is known to hold names."""

    def settle(self, asked: Iterable[str | None], *, is_header: bool) -> "Head":
        """Return it with names: the first row if it is a header, or has a name that is asked for; otherwise numbers."""
        if self.is_named:
            return self
        numbers = tuple(map(str, range(1, len(self.names) + 1)))
        # A number may be a position, so it does not tell a header from a first row.
        if is_header or {name.strip() for name in asked if name} & {*self.names} - {"", *numbers}:
            return self._replace(is_named=True, cells=[column[1:] for column in self.cells])
        return self._replace(names=numbers)

    def has_numbers(self, index: int) -> bool:
        """Return whether there is nothing but numbers in a column."""
        return all(map(is_number, self.cells[index]))


def suffix_of(path: Path) -> str:
    """Return what a file's name says of its kind, in lower case: that of table.csv.gz is .csv."""
    suffix = Path(path.name.lower().removesuffix(PACKED)).suffix
    # Only what is read by line is read packed.
    return PACKED if suffix == ".parquet" and is_gzipped(path) else suffix


def to_parts(files: Files) -> dict[Part | None, Path]:
    """Return files by their part, None for a single one."""
    return {None: files} if isinstance(files, Path) else dict(files.items())


def describe_parts(files: Files) -> str:
    """Return parts and kinds of files in words."""
    return " ".join(f"{part}{suffix_of(path)}" for part, path in to_parts(files).items())


def text_size(path: Path) -> int:
    """Return about how many bytes of text a file holds."""
    kind = KINDS.get(suffix_of(path))
    return path.stat().st_size * (kind.packing if kind else 1) * (PACKING if is_gzipped(path) else 1)


def is_gzipped(path: Path) -> bool:
    """Return whether a file of lines is packed, by its name."""
    return path.name.lower().endswith(PACKED)


def is_number(value: object) -> bool:
    """Return whether a cell holds a number, or says that it is missing."""
    if isinstance(value, str):
        word = value.strip().lower()
        return word in GAPS or NUMBER.fullmatch(word) is not None
    return value is None or isinstance(value, int | float | Decimal)


def read_head(path: Path) -> Head:
    """Return the first rows of a table; what is damaged further down is reported when it is read."""
    noted = Problems(is_patient=True)
    rows = KINDS[suffix_of(path)].read(path, noted, None)
    _, first = next(rows, (0, None))
    is_named = isinstance(first, dict)
    if first is None or (noted.refused and not is_named):
        raise RunError(noted.refused[0] if noted.refused else f"{path} has no rows; give it at least one")
    records = [first]
    with noted.noting_errors():
        records += (record for _, record in islice(rows, (NUM_SAMPLED if is_named else _count_sampled(first)) - 1))
    # Objects may leave out what is missing.
    names = tuple(dict.fromkeys(chain(*records)) if is_named else (str(cell).strip() for cell in first))
    sampled = (align(record, names) for record in records[: _count_sampled(names)])
    return Head(path, names, is_named, list(zip(*sampled, strict=False)))


def _count_sampled(columns: Collection[object]) -> int:
    return max(2, min(NUM_SAMPLED, MOST_SAMPLED // max(1, len(columns))))


def align(record: Record, names: Sequence[str]) -> list[object]:
    """Return the cells of a row for these columns at least; those that are missing are empty."""
    cells: list[object] = [record.get(name) for name in names] if isinstance(record, dict) else [*record]
    return cells + [""] * (len(names) - len(cells))


def read_lines(path: Path, *, errors: str = "surrogateescape") -> Iterator[str]:
    """Yield the lines of a text file with their ends; bytes that are not UTF-8 become lone surrogates by default."""
    cure = "check that it is there and that you may read it"
    is_packed, budget = is_gzipped(path), UnpackingBudget(path, member=path.stem)
    with (
        refusing_damage(path, cure),
        (gzip.open if is_packed else open)(path, "rt", encoding="utf-8-sig", errors=errors, newline="") as file,
    ):
        for number in count(1):
            line = file.readline(MOST_LINE_CHARACTERS + 1)
            if len(line) > MOST_LINE_CHARACTERS:
                what = f"has more than {MOST_LINE_CHARACTERS:,} characters"
                raise RunError(f"{path}, line {number} {what}; make it shorter")
            if is_packed:
                budget.spend(len(line))
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
