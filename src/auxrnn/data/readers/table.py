"""Tables of texts as a source of examples: columns are chosen, rows checked, texts joined, labels named."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from auxrnn.data.examples import Example, ExampleError, Part, Problems, Source, Understood, to_label
from auxrnn.data.folders import printable
from auxrnn.data.formats import Format, TextFormat, kind_of
from auxrnn.data.readers.columns import AskedColumns, Layout, choose_columns
from auxrnn.data.readers.rows import KINDS, PLAIN_TEXT, Record, Rows, TableKind, read_names
from auxrnn.errors import RunError, UsageError

TABLE_SUFFIXES: tuple[str, ...] = tuple(KINDS)
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
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

    def read(problems: Problems, like: Format | None) -> Understood:
        form = TextFormat(options.tokens, is_lowercase=options.is_lowercase)
        if isinstance(like, TextFormat):
            form = TextFormat(like.tokens, is_lowercase=like.is_lowercase, columns=like.columns)
        elif like is not None:
            kind = kind_of(like)
            raise UsageError(f"{name} is a table of texts where the model reads {kind}; give it {kind}")
        return _read_tables(parts, options, problems, form)

    described = options._asdict() | {
        "reader": "table",
        "class_names": options.class_names is not None,
        "parts": " ".join(f"{part}{path.suffix.lower()}" for part, path in parts.items()),
    }
    others = [] if options.class_names is None else [options.class_names]
    return Source(name, [*parts.values(), *others], described, read)


def _read_tables(
    parts: Mapping[Part | None, Path], options: TableOptions, problems: Problems, form: TextFormat
) -> Understood:
    # Training says which columns are read.
    part = "train" if "train" in parts else next(iter(parts))
    asked = AskedColumns(options.text_column, options.label_column, options.has_labels, form.columns)
    first = _open(parts[part], part, asked)
    files = []
    for part, path in parts.items():
        with problems.noting_errors():
            files.append(first if part == first.part else _open_like(first, path, part, options.has_labels))
    form = form._replace(columns=tuple(map(first.layout.select, first.layout.text)))
    num_bytes = sum(file.path.stat().st_size * file.kind.packing for file in files)
    return Understood(
        _describe(first),
        form,
        _read_examples(files, form, problems),
        num_examples=None,
        num_bytes=num_bytes * BYTES_PER_STEP[form.tokens],
        class_names=None if options.class_names is None else _read_class_names(options.class_names),
    )


def _open(path: Path, part: Part | None, asked: AskedColumns) -> TableFile:
    cells, are_names = read_names(path)
    return TableFile(path, part, KINDS[path.suffix.lower()], choose_columns(path, cells, asked, are_names=are_names))


def _open_like(first: TableFile, path: Path, part: Part | None, needs_label: bool) -> TableFile:
    """Open another file, and find the columns in it that were chosen for the first."""
    layout = first.layout
    label = None if layout.label is None else layout.select(layout.label)
    if layout.is_named and not needs_label and label not in read_names(path)[0]:
        label = None
    found = _open(path, part, AskedColumns(tuple(map(layout.select, layout.text)), label, needs_label))
    if not layout.is_named and len(found.layout.names) != len(layout.names):
        what = f"{len(found.layout.names)} columns where {first.path} has {len(layout.names)}"
        raise RunError(f"{path} has {what}; give both the same columns")
    return found


def _read_examples(files: Sequence[TableFile], form: TextFormat, problems: Problems) -> Iterator[Example]:
    for file in files:
        num_refused, is_empty = problems.num_refused, True
        with problems.noting_errors():
            for number, record in _read_rows(file, problems):
                is_empty, place = False, f"{file.path}, {file.kind.unit} {number}"
                with problems.at(place):
                    text, label = _pick(record, file.layout)
                    yield Example(form.to_values(text), label, place, file.part)
        if is_empty and problems.num_refused == num_refused:
            problems.refuse(str(file.path), "has no rows", "give it at least one")


def _read_rows(file: TableFile, problems: Problems) -> Rows:
    """Yield the rows below the header; where values come by name, there is none."""
    names = [file.layout.names[index] for index in (*file.layout.text, file.layout.label) if index is not None]
    for position, (number, record) in enumerate(file.kind.read(file.path, problems, names)):
        if position or not file.layout.is_named or isinstance(record, dict):
            yield number, record


def _pick(record: Record, layout: Layout) -> tuple[str, str | None]:
    """Return the text and the label of a row; a value that is missing is empty."""
    cells = [record.get(name) for name in layout.names] if isinstance(record, dict) else record
    if len(cells) != len(layout.names):
        what = f"has {len(cells)} column{'s' * (len(cells) != 1)} where the first row has {len(layout.names)}"
        raise ExampleError(what, f"give it {len(layout.names)}, and quotes around its texts")
    texts = [cells[index] for index in layout.text]
    for text in texts:
        if not isinstance(text, str | None):
            raise ExampleError(f"has a text of type {type(text).__name__}", "write it as a text in quotes")
    joined = " ".join(str(text or "") for text in texts)
    label = None if layout.label is None else to_label(cells[layout.label])
    if not joined.strip():
        raise ExampleError("has no text")
    if "\0" in joined or LONE_SURROGATE.search(joined + (label or "")):
        raise ExampleError("is not valid UTF-8 text, or has a NUL character", "save the file as UTF-8")
    return joined, label


def _read_class_names(path: Path) -> Mapping[str, str]:
    """Read one class name per line; the first is that of the label 1."""
    try:
        names = [line.strip() for line in path.read_text(encoding="utf-8").strip().split("\n")]
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read as a list of class names; get it again") from error
    if "" in names or len(set(names)) < len(names):
        raise RunError(f"{path} does not name one class on each line; write a different name on each")
    return {str(number): name for number, name in enumerate(names, start=1)}


def _describe(file: TableFile) -> str:
    if file.kind is PLAIN_TEXT:
        return "texts, one per line"
    layout = file.layout
    text = f"text in column {' and '.join(map(layout.select, layout.text))}"
    label = "without labels" if layout.label is None else f"labels in column {layout.select(layout.label)}"
    header = "" if layout.is_named else " without a header"
    return printable(f"table of texts in {file.kind.title}{header}, {text}, {label}")
