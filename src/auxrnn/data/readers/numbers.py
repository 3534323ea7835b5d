"""Tables of numbers: a row for each series (wide), or a row for each step of a series (long).

As in tables of texts, columns are those that the user names, or those with well-known names; all others hold numbers.
Dimension letters: `T` steps, `D` channels.
"""

import math
import re
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from auxrnn.data.examples import Example, ExampleError, Part, Problems, Source, Understood, to_label
from auxrnn.data.formats import Format, SeriesFormat, count_channels, find_bad, fit_channels
from auxrnn.data.readers.rows import (
    GAPS,
    Files,
    Head,
    Record,
    align,
    describe_parts,
    is_number,
    read_head,
    text_size,
    to_parts,
)
from auxrnn.data.readers.table import (
    LABEL_NAMES,
    TEXT_NAMES,
    TableFile,
    cure_labels,
    describe_table,
    find_asked_label,
    find_column,
    find_known,
    is_called,
    list_names,
    read_files,
    read_rows,
    split_columns,
)
from auxrnn.errors import RunError, UsageError
from auxrnn.files import printable

SERIES_NAMES = re.compile(
    "(series|case|sample|sequence|recording|record|trial|example)_(id|no|nr|number|index)|series|u?id"
)
TIME_NAMES = re.compile("t|times?|time_?(stamp|step)s?|date(_?time)?|steps?|tick|frame|seconds?|ms")
IGNORED = ("", "__index_level_0__")
"""What pandas calls the column of row numbers; it says nothing."""
FILL_IN = "fill it in with a finite 32-bit float"


class NumberOptions(NamedTuple):
    """What a user may say of a table of numbers; columns by name, or by number from 1."""

    label_column: str | None = None
    series_column: str | None = None
    """Which series a row belongs to: there is a row for each step."""
    time_column: str | None = None
    """By what the steps of a series are sorted."""
    value_columns: str | tuple[str, ...] | None = None
    """The columns that are read, joined by "+": steps in order, or channels."""
    has_labels: bool = True
    """Whether there must be a column of labels; one that is there is read in any case."""


def number_source(name: str, files: Files, options: NumberOptions) -> Source:
    """Return a table of numbers, or one for each part, as a source; training decides which columns are read."""

    def read(problems: Problems, like: Format | None) -> Understood:
        form, opened = like, list[TableFile]()
        # Training comes first: it says which columns are read.
        for part, path in to_parts(files).items():
            with problems.noting_errors() if opened else nullcontext():
                opened.append(_open(path, part, options, form if isinstance(form, SeriesFormat) else None))
                form = _fit(opened[-1], form)
        assert isinstance(form, SeriesFormat)
        num_bytes = 2 * sum(text_size(file.path) for file in opened)

        def read_one(file: TableFile) -> Iterator[Example]:
            return _read_wide(file, problems) if file.series is None else _read_long(file, problems)

        examples = read_files(opened, read_one, problems, "has no series", "give it at least one row of numbers")
        cure = cure_labels(opened[0])
        return Understood(_describe(opened[0]), form, examples, None, num_bytes, label_cure=cure)

    plain = {"reader": "numbers", "parts": describe_parts(files)} | options._asdict()
    return Source(name, [*to_parts(files).values()], plain, read)


def is_number_table(head: Head, *, label_column: str | None = None) -> bool:
    """Return whether a table holds numbers beside labels and names of series; a single column of digits may be text."""
    table = _settle(head, NumberOptions(label_column))
    # A column may be called label where the user gives another one.
    labels = {_find_label(table, asked, (), has_labels=True) for asked in (label_column, None)}
    series, time, others = _divide(table, NumberOptions(), labels)
    text = find_known(table.names, TEXT_NAMES, besides=labels) if table.is_named else None
    numeric = [index for index in others if table.has_numbers(index)]
    if text is not None and text not in numeric:
        return False
    if series is not None and time is not None:
        return bool(numeric)
    return len(numeric) == len(others) >= (1 if series is not None else 2)


def _settle(head: Head, options: NumberOptions) -> Head:
    """Tell names from numbers in the first row."""
    values = split_columns(options.value_columns, head.names)
    asked = (options.label_column, options.series_column, options.time_column, *values)
    return head.settle(asked, is_header=any(_is_name(str(cell), below) for cell, *below in head.cells))


def _is_name(name: str, below: Sequence[object]) -> bool:
    """Return whether the first cell of a column names it: it has a well-known name, or numbers alone are below it."""
    is_known = any(is_called(name, known) for known in (LABEL_NAMES, SERIES_NAMES, TIME_NAMES)) and name not in below
    has_any = any(not _is_gap(cell) for cell in below)
    return is_known or (not is_number(name) and has_any and all(map(is_number, below)))


def _open(path: Path, part: Part | None, options: NumberOptions, like: SeriesFormat | None) -> TableFile:
    """Choose the columns of a file: those that the user names, those of the training data, or those that are left."""
    if like is not None and like.columns:
        options = options._replace(
            value_columns=like.columns, series_column=like.series_column, time_column=like.time_column
        )
    table = _settle(read_head(path), options)
    if like is not None and like.columns:
        chosen = _choose_like(table, like)
    else:
        asked = split_columns(options.value_columns, table.names)
        chosen = tuple(find_column(table, name, "--value-columns") for name in asked)
    needs_label = options.has_labels and part != "unlabeled"
    label = _find_label(table, options.label_column, chosen, has_labels=needs_label)
    series, time, others = _divide(table, options, {label, *chosen})
    if time is not None and series is None and (options.time_column is not None or not chosen):
        what = f"has a column {table.names[time]!r}, and none that says which series a row belongs to"
        cure = "give --series-column, or --value-columns if each row is a series"
        raise UsageError(f"{path} {what} (it has {list_names(table.names)}); {cure}")
    if not chosen:
        chosen = tuple(others if series is None else filter(table.has_numbers, others))
    texts = [table.names[index] for index in chosen if not table.has_numbers(index)]
    if texts or not chosen:
        what = f"holds words in {list_names(texts)}" if texts else "has no columns of numbers"
        cure = "give --value-columns those with the numbers, joined by + (or --text-column, for texts)"
        if like is not None:
            cure = "write numbers there, as in the training data"
        raise UsageError(f"{path} {what} (it has {list_names(table.names)}); {cure}")
    if needs_label and label is None:
        what = f"does not say which column is the label (it has {list_names(table.names)})"
        raise UsageError(f"{path} {what}; give --label-column, by name or by number from 1")
    return TableFile(path, part, table.names, table.is_named, chosen, label, series, time)


def _choose_like(table: Head, like: SeriesFormat) -> tuple[int, ...]:
    """Return where the columns of the training data are; a table without names may have them alone, without labels."""
    if not table.is_named and like.series_column is None and len(table.names) == len(like.columns):
        return tuple(range(len(table.names)))
    columns = [*like.columns]
    while like.series_column is None and len(columns) > 1 and table.is_named and columns[-1] not in table.names:
        # Its series may all be shorter.
        columns.pop()
    wanted = (*columns, *filter(None, (like.series_column, like.time_column)))
    missing = [name for name in wanted if name not in table.names and not name.isdecimal()]
    if missing or any(int(name) > len(table.names) for name in wanted if name not in table.names):
        has = f"has no column {missing[0]!r}" if missing else f"has only {len(table.names)} columns"
        raise RunError(f"{table.path} {has}, which the training data has; give it the same columns")
    return tuple(table.names.index(name) if name in table.names else int(name) - 1 for name in columns)


def _find_label(table: Head, asked: str | None, besides: Collection[int], *, has_labels: bool) -> int | None:
    """Return the column of the labels: asked for, of a well-known name, or the first of a table without names."""
    if asked is not None:
        return find_asked_label(table, asked, besides, "numbers")
    if table.is_named:
        # Beside x, y is a channel.
        names = ["" if name.lower() == "y" and "x" in map(str.lower, table.names) else name for name in table.names]
        return find_known(names, LABEL_NAMES, besides=besides)
    first = table.cells[0] if table.cells else ()
    is_first = has_labels and 0 not in besides and all(_is_label(cell) for cell in first)
    return 0 if is_first and len(table.names) > 1 else None


def _is_label(cell: object) -> bool:
    return not is_number(cell) or _is_gap(cell) or float(str(cell)).is_integer()


def _divide(
    table: Head, options: NumberOptions, besides: Collection[int | None]
) -> tuple[int | None, int | None, list[int]]:
    """Return the column of the series and that of the time, where there is a row for each step, and all others."""

    def find(asked: str | None, known: re.Pattern[str], flag: str) -> int | None:
        if asked is not None:
            return find_column(table, asked.strip(), flag)
        return find_known(table.names, known, besides=besides) if table.is_named else None

    series = find(options.series_column, SERIES_NAMES, "--series-column")
    time = find(options.time_column, TIME_NAMES, "--time-column")
    others = [index for index in _find_channels(table) if index not in (*besides, series, time)]
    # Names that are all different are those of the rows.
    cells = [] if series is None else [str(cell) for cell in table.cells[series]]
    if options.series_column is None and time is None and len({*cells}) == len(cells):
        series = None
    return series, time, others


def _find_channels(table: Head) -> list[int]:
    """Return the columns that may hold numbers: all but those that pandas adds."""
    return [index for index, name in enumerate(table.names) if not table.is_named or name not in IGNORED]


def _fit(file: TableFile, like: Format | None) -> SeriesFormat:
    num_channels = 1 if file.series is None else len(file.text)
    form = fit_channels([(str(file.path), num_channels)], like)
    if like is not None:
        return form
    series, time = (None if index is None else file.select(index) for index in (file.series, file.time))
    return form._replace(columns=tuple(map(file.select, file.text)), series_column=series, time_column=time)


def _describe(file: TableFile) -> str:
    names = [file.select(index) for index in file.text]
    ends = f", from {names[0]} to {names[-1]}" if len(names) > 1 else ""
    layout = f"a series in each row, steps in {len(names)} columns{ends}"
    if file.series is not None:
        order = "" if file.time is None else f" by column {file.select(file.time)}"
        channels = f"{count_channels(len(names))} ({list_names(names)})"
        layout = f"{channels}, a step in each row{order}, series in column {file.select(file.series)}"
    return describe_table(file, "numbers", layout)


def _read_wide(file: TableFile, problems: Problems) -> Iterator[Example]:
    for place, record in read_rows(file, problems):
        with problems.at(place):
            cells = _align(record, file)
            chosen = [*file.text]
            while chosen and _is_empty(cells[chosen[-1]]):
                chosen.pop()
            if not chosen:
                raise ExampleError("is empty")
            value_T = _read_numbers(cells, file.names, chosen)
            yield Example(value_T[:, None], _find_class(cells, file), place, file.part)


class _Steps:
    """The steps of a series, as they come."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.label: str | None = None
        self.times: list[float] = []
        self.values = array("f")

    def add(self, cells: Sequence[object], file: TableFile) -> None:
        """Add a row."""
        label = _find_class(cells, file)
        if None not in (label, self.label) and label != self.label:
            what = f"has the label {str(label)[:40]!r} where its series began with {str(self.label)[:40]!r}"
            raise ExampleError(what, f"give all rows of a series the same label, or {cure_labels(file)}")
        value_D = _read_numbers(cells, file.names, file.text)
        time = 0.0 if file.time is None else _to_time(cells[file.time], file.names[file.time])
        self.label = self.label or label
        self.times.append(time)
        self.values.frombytes(value_D.tobytes())

    def to_example(self, part: Part | None) -> Example:
        """Return the series, sorted by time; steps of one time stay in their order."""
        order = np.argsort(np.array(self.times), kind="stable")
        value_TD = np.array(self.values, dtype=np.float32).reshape(len(order), -1)
        return Example(value_TD[order], self.label, self.place, part)


def _read_long(file: TableFile, problems: Problems) -> Iterator[Example]:
    """Yield the series of a table with a row for each step: one after the other if their rows are adjacent."""
    assert file.series is not None
    is_adjacent, series = _is_adjacent(file), dict[str, _Steps]()
    for place, record in read_rows(file, problems):
        with problems.at(place):
            cells = _align(record, file)
            if (key := _to_key(cells[file.series])) is None:
                raise ExampleError("does not say which series it belongs to", "give it the name of one")
            if is_adjacent and key not in series:
                yield from _finish(series, file.part)
            series.setdefault(key, _Steps(printable(f"{file.path}, series {key[:80]}"))).add(cells, file)
    yield from _finish(series, file.part)


def _finish(series: dict[str, _Steps], part: Part | None) -> Iterator[Example]:
    yield from (steps.to_example(part) for steps in series.values() if steps.values)
    series.clear()


def _is_adjacent(file: TableFile) -> bool:
    """Return whether the rows of each series follow each other, so that one is in memory at a time."""
    assert file.series is not None
    # A few names of many rows take no memory to speak of.
    last, seen = None, set[str | None]()
    for _place, record in read_rows(file, Problems(is_patient=True)):
        cells = align(record, file.names)
        if (key := _to_key(cells[file.series])) != last:
            if key in seen:
                return False
            last = key
            seen.add(key)
    return True


def read_series(path: Path, problems: Problems) -> Float32[np.ndarray, "T D"]:
    """Return the one series that a table is: a step in each row, channels in all columns but those of times."""
    table = _settle(read_head(path), NumberOptions())
    time = find_known(table.names, TIME_NAMES, besides=()) if table.is_named else None
    chosen = tuple(index for index in _find_channels(table) if index != time)
    if not chosen:
        time, chosen = None, tuple(range(len(table.names)))
    file, steps = TableFile(path, None, table.names, table.is_named, chosen, None, time=time), _Steps(str(path))
    for place, record in read_rows(file, problems):
        with problems.at(place):
            steps.add(_align(record, file), file)
    if not steps.times:
        raise ExampleError("has no numbers", "give it at least one row")
    return steps.to_example(None).value_T


def _to_key(cell: object) -> str | None:
    """Return the name of a series; 1 and 1.0 are the same, as with labels."""
    return None if _is_empty(cell) else to_label(cell if isinstance(cell, int | float) else str(cell))


def _find_class(cells: Sequence[object], file: TableFile) -> str | None:
    """Return the label of a row; the archives write some classes as 1.0000000e+00."""
    cell = "" if file.label is None else cells[file.label]
    is_scientific = isinstance(cell, str) and "e" in cell.lower() and is_number(cell) and not _is_gap(cell)
    return to_label(float(str(cell)) if is_scientific else cell)


def _align(record: Record, file: TableFile) -> list[object]:
    """Return the cells of a row: a series may end early, but a row holds no more than the first."""
    cells = align(record, file.names)
    if any(not _is_empty(cell) for cell in islice(cells, len(file.names), None)):
        what = f"has {len(cells)} columns where the first row has {len(file.names)}"
        raise ExampleError(what, f"give it at most {len(file.names)}")
    return cells


def _read_numbers(cells: Sequence[object], names: Sequence[str], chosen: Sequence[int]) -> Float32[np.ndarray, " K"]:
    """Return the numbers of a row, NaN for those that are missing; raise `ExampleError` for what is none."""
    try:
        wide_K = np.array([float(cells[index]) for index in chosen])  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        wide_K = np.array([_to_number(cells[index], names[index]) for index in chosen])
    with np.errstate(over="ignore"):
        value_K = wide_K.astype(np.float32)
    if len(found := find_bad(value_K[:, None], may_miss=True)):
        wrong = chosen[found[0]]
        raise ExampleError(f"has {str(cells[wrong])[:40]!r} in column {names[wrong][:80]!r}", FILL_IN)
    return value_K


def _to_number(cell: object, name: str) -> float:
    if _is_gap(cell):
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf
    except (ValueError, TypeError):
        raise ExampleError(f"has {str(cell)[:40]!r} in column {name[:80]!r}", "write a number") from None


def _to_time(cell: object, name: str) -> float:
    """Return what the steps of a series are sorted by: a number, or a date and time in the ISO form."""
    try:
        time = float(cell) if is_number(cell) else _to_seconds(str(cell).strip())  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        time = math.nan
    if math.isfinite(time):
        return time
    cure = "write a number, or a date and time such as 2024-05-31T12:00:00"
    raise ExampleError(f"has the time {str(cell)[:40]!r} in column {name[:80]!r}", cure)


def _to_seconds(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _is_empty(cell: object) -> bool:
    return (
        cell is None or (isinstance(cell, float) and math.isnan(cell)) or (isinstance(cell, str) and not cell.strip())
    )


def _is_gap(cell: object) -> bool:
    return _is_empty(cell) or (isinstance(cell, str) and cell.strip().lower() in GAPS)
