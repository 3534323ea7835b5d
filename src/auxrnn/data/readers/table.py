"""Tables of texts as a source of examples: columns are chosen, rows checked, texts joined, labels named."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from auxrnn.data.examples import (
    LARGEST_EXACT,
    Example,
    ExampleError,
    Part,
    Problems,
    Source,
    Understood,
    normalize_label,
)
from auxrnn.data.formats import Format
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers.columns import AskedColumns, choose_columns, select, show_column
from auxrnn.data.readers.csv import CSV, TSV
from auxrnn.data.readers.jsonl import JSON_LINES
from auxrnn.data.readers.lines import PLAIN_TEXT, is_unicode, open_lines
from auxrnn.data.readers.parquet import PARQUET
from auxrnn.data.readers.rows import MOST_CHARACTERS, Layout, TableKind
from auxrnn.data.texts import TextFormat
from auxrnn.errors import RunError, UsageError

KINDS: dict[str, TableKind] = {
    ".csv": CSV,
    ".tsv": TSV,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".parquet": PARQUET,
    ".txt": PLAIN_TEXT,
}
TABLE_SUFFIXES: tuple[str, ...] = tuple(KINDS)
BYTES_PER_STEP = {"characters": 4, "bytes": 1}


class TableOptions(NamedTuple):
    """What a user may say of a table."""

    text_column: str | None = None
    """Column of the texts, by name or by number from 1; several, as "title+content", are joined by a space."""
    label_column: str | None = None
    """Column of the labels, by name or number."""
    tokens: Literal["characters", "bytes"] = "characters"
    """What one step of a sequence is."""
    is_lowercase: bool = False
    """Whether texts are read in lower case."""
    has_labels: bool = True
    """Whether there must be a column of labels; one that is there is read in any case."""
    class_names: Path | None = None
    """A file with one class per line: the label 1 is its first line."""


class TableFile(NamedTuple):
    """One file whose columns are chosen."""

    path: Path
    part: Part | None
    kind: TableKind
    layout: Layout


def table_source(name: str, files: Mapping[Part, Path] | Path, options: TableOptions) -> Source:
    """Return a table, or one for each part, as a source; the training part decides which columns are read."""
    parts: dict[Part | None, Path] = {None: files} if isinstance(files, Path) else dict(files.items())
    if not parts:
        raise UsageError(f"{name} has no files; give at least one table")
    for path in parts.values():
        _check_suffix(path, options)

    def read(problems: Problems, like: Format | None) -> Understood:
        return _read_tables(name, parts, options, problems, like)

    described = options._asdict() | {
        "reader": "table",
        "class_names": options.class_names is not None,
        "parts": " ".join(f"{part}{path.suffix.lower()}" for part, path in parts.items()),
    }
    others = [] if options.class_names is None else [options.class_names]
    return Source(name, [*parts.values(), *others], described, read)


def to_label(value: object) -> str | None:
    """Return the class that a cell names, None if it is empty; 1, 1.0 and "1" are the same class."""
    if isinstance(value, str):
        return normalize_label(value) or None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and abs(value) <= LARGEST_EXACT and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    raise ExampleError(f"has a label that is {_describe_type(value)}", "give it a word or a number")


def _check_suffix(path: Path, options: TableOptions) -> None:
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise UsageError(f"{path} is not a table; give a file that ends in one of {', '.join(KINDS)}")
    if kind is PLAIN_TEXT and options.has_labels:
        cure = "give a table such as a .csv file with a column for the labels, or give it as --unlabeled"
        raise UsageError(f"{path} holds texts without labels; {cure}")
    if kind is PLAIN_TEXT and (options.text_column, options.label_column) != (None, None):
        raise UsageError(f"{path} has one text per line and no columns; omit --text-column and --label-column")


def _read_tables(
    name: str, parts: Mapping[Part | None, Path], options: TableOptions, problems: Problems, like: Format | None
) -> Understood:
    text_format = TextFormat(options.tokens, is_lowercase=options.is_lowercase)
    if isinstance(like, TextFormat):
        text_format = TextFormat(like.tokens, is_lowercase=like.is_lowercase, columns=like.columns)
    elif like is not None:
        reads = "images" if isinstance(like, ImageFormat) else "series of numbers"
        raise UsageError(f"{name} is a table of texts where the model reads {reads}; give it {reads}")
    # Training says which columns are read.
    first = parts.get("train") or next(iter(parts.values()))
    kind = KINDS[first.suffix.lower()]
    asked = AskedColumns(options.text_column, options.label_column, options.has_labels, text_format.columns)
    layout = choose_columns(first, kind.read_columns(first), asked)
    text_format = text_format._replace(columns=tuple(select(layout, index) for index in layout.text))
    files = []
    for part, path in parts.items():
        with problems.noting_errors():
            is_first = path == first
            found = layout if is_first else _find_again(path, layout, first=first, needs_label=options.has_labels)
            files.append(TableFile(path, part, KINDS[path.suffix.lower()], found))
    return Understood(
        _describe(kind, layout),
        text_format,
        _read_examples(files, text_format, problems),
        num_examples=None,
        num_bytes=BYTES_PER_STEP[text_format.tokens] * sum(file.kind.measure(file.path, file.layout) for file in files),
        class_names=None if options.class_names is None else _read_class_names(options.class_names),
    )


def _find_again(path: Path, chosen: Layout, *, first: Path, needs_label: bool) -> Layout:
    """Return where another file has the columns that were chosen for the first."""
    columns = KINDS[path.suffix.lower()].read_columns(path)
    if not chosen.is_named and len(columns.names) != len(chosen.names):
        found = f"{len(columns.names)} columns where {first} has {len(chosen.names)}"
        raise RunError(f"{path} has {found}; give both the same columns")
    label = None if chosen.label is None else select(chosen, chosen.label)
    if chosen.is_named and not needs_label and label not in columns.names:
        label = None
    text = tuple(select(chosen, index) for index in chosen.text)
    return choose_columns(path, columns, AskedColumns(text, label, needs_label))


def _read_examples(files: Sequence[TableFile], text_format: TextFormat, problems: Problems) -> Iterator[Example]:
    for file in files:
        num_refused, is_empty = problems.num_refused, True
        with problems.noting_errors():
            for row in file.kind.read_rows(file.path, file.layout, problems):
                is_empty, place = False, f"{file.path}, {file.kind.unit} {row.number}"
                try:
                    text, label = _join(row.texts), to_label(row.label)
                    _check_characters(label or "")
                except ExampleError as error:
                    problems.refuse(place, error.what, error.cure)
                    continue
                if text.strip():
                    yield Example(text_format.to_values(text), label, place, file.part)
                else:
                    problems.skip(place, "has no text")
        if is_empty and problems.num_refused == num_refused:
            problems.refuse(str(file.path), "has no rows", "give it at least one")


def _join(texts: Sequence[object]) -> str:
    for text in texts:
        if not isinstance(text, str | None):
            raise ExampleError(f"has a text that is {_describe_type(text)}", "write it as a text in quotes")
    joined = " ".join(str(text or "") for text in texts)
    _check_characters(joined)
    if len(joined) > MOST_CHARACTERS:
        raise ExampleError(f"has a text of more than {MOST_CHARACTERS:,} characters", "cut it")
    return joined


def _check_characters(text: str) -> None:
    if "\0" in text:
        raise ExampleError("has a NUL character", "remove it")
    if not (text.isascii() or is_unicode(text)):
        raise ExampleError("has half of a surrogate pair", "write the whole character, or remove it")


def _describe_type(value: object) -> str:
    types = {list: "a list", dict: "an object", bool: "true or false", int: "a number", float: "a number"}
    return types.get(type(value), f"of the type {type(value).__name__}")


def _read_class_names(path: Path) -> Mapping[str, str]:
    """Read one class name per line; the first is that of the label 1."""
    with open_lines(path, Problems()) as lines:
        names = [line.strip() for line in lines]
    while names and not names[-1]:
        names.pop()
    if not names or "" in names or len(set(names)) < len(names):
        raise RunError(f"{path} does not name one class on each line; write a different name on each")
    return {str(number): name for number, name in enumerate(names, start=1)}


def _describe(kind: TableKind, layout: Layout) -> str:
    if kind is PLAIN_TEXT:
        return "texts, one per line"
    names = [show_column(layout, index) for index in layout.text]
    text = f"text in column{'s' * (len(names) > 1)} {' and '.join(names)}"
    label = "without labels" if layout.label is None else f"labels in column {show_column(layout, layout.label)}"
    header = "" if layout.is_named else " without a header"
    return f"table of texts in {kind.title}{header}, {text}, {label}"
