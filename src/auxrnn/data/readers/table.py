"""Tables of texts as a source of examples: columns are chosen, rows checked, texts joined, labels named.

Columns are those that the user names, or those with well-known names. Nothing else is guessed: where the names do not
settle it, an error lists the columns and names the flags.
"""

import re
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from auxrnn.data.examples import Example, ExampleError, Part, Problems, Source, Understood, refusing_damage, to_label
from auxrnn.data.formats import Format, TextFormat, kind_of
from auxrnn.data.readers.rows import (
    KINDS,
    PLAIN_TEXT,
    Files,
    Head,
    Record,
    TableKind,
    describe_parts,
    is_number,
    read_head,
    suffix_of,
    text_size,
    to_parts,
)
from auxrnn.errors import RunError, UsageError
from auxrnn.files import printable

TABLE_SUFFIXES: tuple[str, ...] = tuple(KINDS)
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
BYTES_PER_STEP = {"characters": 4, "bytes": 1}
TEXT_NAMES = re.compile(
    "texts?|(text_)?contents?|reviews?|review_?(text|body)|sentences?|documents?|body|messages?|title|headline|abstract"
    "|comments?|comment_text|description|article|tweet|post|question|utterance|sequence|e_?mail|sms"
)
LABEL_NAMES = re.compile(
    "labels?|class(es)?|class_(index|label)|category|target|sentiment|polarity|stars?|rating|topic|intent|emotion|genre|y"
)
MOST_LISTED = 12
Item = TypeVar("Item")


class TableOptions(NamedTuple):
    """What a user may say of a table."""

    text_column: str | tuple[str, ...] | None = None
    """Column of the texts, by name or by number from 1; several ("title+content", or a tuple) are joined by a space."""
    label_column: str | None = None
    """Column of the labels, by name or number."""
    tokens: Literal["characters", "bytes", "integers"] = "characters"
    """What one step of a sequence is."""
    is_lowercase: bool = False
    """Whether texts are read in lower case."""
    has_labels: bool = True
    """Whether there must be a column of labels; one that is there is read in any case."""
    class_names: Path | None = None
    """A file with one class per line: the label 1 is its first line."""


class TableFile(NamedTuple):
    """One file whose columns are chosen, by position from 0."""

    path: Path
    part: Part | None
    names: tuple[str, ...]
    """Of all columns; their numbers from 1 where the file has no names."""
    is_named: bool
    text: tuple[int, ...]
    """The columns that are read, of texts or of numbers."""
    label: int | None
    series: int | None = None
    """In a table of numbers with a row for each step: which series it belongs to."""
    time: int | None = None
    """And by what the steps of a series are sorted."""

    @property
    def kind(self) -> TableKind:
        """How the file is read."""
        return KINDS[suffix_of(self.path)]

    def select(self, index: int) -> str:
        """Return what tells a column from all others: its name, or its number where it has no name of its own."""
        name = self.names[index]
        return name if name and self.names.count(name) == 1 else str(index + 1)


def table_source(name: str, files: Files, options: TableOptions) -> Source:
    """Return a table, or one for each part, as a source; the training part decides which columns are read."""

    def read(problems: Problems, like: Format | None) -> Understood:
        if options.tokens == "integers":
            raise UsageError(f"{name} is a table of texts; tokens is characters or bytes, integers is for arrays")
        if not isinstance(like, TextFormat | None):
            kind = kind_of(like)
            raise UsageError(f"{name} is a table of texts where the model reads {kind}; give it {kind}")
        form = like or TextFormat(options.tokens, is_lowercase=options.is_lowercase)
        return _read_tables(files, options, problems, form, usual=None if like is None else like.columns)

    has_names = options.class_names is not None
    described = options._asdict() | {"reader": "table", "class_names": has_names, "parts": describe_parts(files)}
    others = [] if options.class_names is None else [options.class_names]
    return Source(name, [*to_parts(files).values(), *others], described, read)


def _read_tables(
    files: Files, options: TableOptions, problems: Problems, form: TextFormat, *, usual: tuple[str, ...] | None
) -> Understood:
    opened = open_tables(files, options, problems, usual=usual)
    first = next((file for file in opened if file.part == "train"), opened[0])
    columns = tuple(map(first.select, first.text))
    form = TextFormat(form.tokens, is_lowercase=form.is_lowercase, columns=columns)
    num_bytes = BYTES_PER_STEP[form.tokens] * sum(text_size(file.path) for file in opened)
    class_names = None if options.class_names is None else _read_class_names(options.class_names)
    texts = read_texts(opened, problems)
    examples = (Example(form.to_values(text), label, place, file.part) for file, place, text, label in texts)
    return Understood(_describe(first), form, examples, None, num_bytes, class_names, cure_labels(first))


def open_tables(
    files: Files, options: TableOptions, problems: Problems, *, usual: tuple[str, ...] | None = None
) -> list[TableFile]:
    """Choose the columns of one table, or of one for each part; training says which are read."""
    parts = to_parts(files)
    leading = "train" if "train" in parts else next(iter(parts))
    first = _open(parts[leading], leading, options, usual=usual)
    opened = []
    for part, path in parts.items():
        with problems.noting_errors():
            opened.append(first if part == leading else _open_like(first, path, part, options))
    return opened


def _open(path: Path, part: Part | None, options: TableOptions, *, usual: tuple[str, ...] | None = None) -> TableFile:
    """Choose the columns of a file; `usual` are those of the texts that the model was trained on, None without one."""
    head, label_name = read_head(path), (options.label_column or "").strip()

    def ask(names: Sequence[str]) -> tuple[str, ...]:
        return split_columns(options.text_column, names) or (usual if usual and {*usual} <= {*names} else ())

    is_header = _is_header(head.names, options.has_labels)
    table = head.settle([*ask(head.names), label_name], is_header=is_header)
    names = table.names
    text = tuple(find_column(table, name, "--text-column") for name in ask(names))
    if options.text_column is not None and usual is None and text:
        _refuse_numbers(head, [names[index] for index in text], text)
    label = find_asked_label(table, options.label_column, text, "text")
    if label is None:
        label = find_known(names, LABEL_NAMES, besides=text)
    if not text:
        known = find_known(names, TEXT_NAMES, besides=[label])
        others = [index for index in range(len(names)) if index != label] if known is None else [known]
        text = tuple(others if len(others) == 1 else ())
    missing = ["text"] * (not text) + ["label"] * (options.has_labels and label is None)
    if missing:
        what = f"does not say which column is the {' and which the '.join(missing)} (it has {list_names(head.names)})"
        cure = f"give {' and '.join(f'--{role}-column' for role in missing)}, by name or by number from 1"
        # A network that reads texts has no use for numbers.
        cure += " (or --value-columns, for numbers)" * (not text and usual is None)
        alone = "add a column of labels, or give the file as --unlabeled"
        raise UsageError(f"{path} {what}; {alone if len(names) == 1 else cure}")
    return TableFile(path, part, names, table.is_named, text, label)


def _refuse_numbers(head: Head, names: Sequence[str], text: Sequence[int]) -> None:
    """Refuse columns that hold nothing but numbers: as characters they would teach nothing."""
    cells = [cell for index in text for cell in head.cells[index][1:]]
    # Objects say themselves what is a text.
    found = [is_number(cell) and not (head.is_named and cell and isinstance(cell, str)) for cell in cells]
    if all(found) and any(cells):
        columns = (name if name.isprintable() else str(index + 1) for index, name in zip(text, names, strict=True))
        flag = f"--value-columns {'+'.join(columns)}"
        raise UsageError(
            f"{head.path} has numbers in {list_names(names)}, not texts; give {flag} instead of --text-column"
        )


def _open_like(first: TableFile, path: Path, part: Part | None, options: TableOptions) -> TableFile:
    """Open another file, and find the columns in it that were chosen for the first."""
    label = None if first.label is None else first.select(first.label)
    if first.is_named and not options.has_labels and label not in read_head(path).names:
        label = None
    found = _open(path, part, options._replace(text_column=tuple(map(first.select, first.text)), label_column=label))
    if not first.is_named and len(found.names) != len(first.names):
        what = f"{len(found.names)} columns where {first.path} has {len(first.names)}"
        raise RunError(f"{path} has {what}; give both the same columns")
    return found


def split_columns(asked: str | tuple[str, ...] | None, names: Collection[str]) -> tuple[str, ...]:
    """Return the columns that are asked of a file with these names, none if that is left open."""
    if not isinstance(asked, str):
        return asked or ()
    # A "+" may be part of a name.
    return (asked.strip(),) if asked.strip() in names else tuple(piece.strip() for piece in asked.split("+"))


def _is_header(cells: Sequence[str], needs_label: bool) -> bool:
    """Return whether the first row holds well-known names; a single one can be there by chance."""
    has_text, has_label = (any(is_called(cell, known) for cell in cells) for known in (TEXT_NAMES, LABEL_NAMES))
    return has_text and (has_label or not needs_label)


def is_called(name: str, known: re.Pattern[str]) -> bool:
    """Return whether a name is a known one, however it is written: "Review Text", "review-text"."""
    return known.fullmatch(re.sub(r"[\s_-]+", "_", name.strip().lower())) is not None


def find_column(table: Head, name: str, flag: str) -> int:
    """Return the position of a column by its name, or by its number if no column has that name."""
    path, names = table.path, table.names
    if name and name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path} has more than one column {name!r}; give {flag} its number, counted from 1")
        return names.index(name)
    if name in map(str, range(1, len(names) + 1)):
        return int(name) - 1
    # Its first row may be a header all the same, with names that are not well known.
    first = names if table.is_named else [str(column[0]).strip() for column in table.cells]
    has = list_names(names if any(map(is_number, filter(None, first))) else first)
    raise UsageError(f"{path} has no column {name!r} (it has {has}); give {flag} one that all files have")


def find_asked_label(table: Head, asked: str | None, besides: Collection[int], what: str) -> int | None:
    """Return the column of labels that is asked for, None if none is; it cannot be one of those that are read."""
    label = None if asked is None else find_column(table, asked.strip(), "--label-column")
    if label in besides:
        found = f"column {asked!r} of {table.path} is given as {what} and as labels"
        raise UsageError(f"{found}; give another one (it has {list_names(table.names)})")
    return label


def find_known(names: Sequence[str], known: re.Pattern[str], *, besides: Collection[int | None]) -> int | None:
    """Return the only column with a well-known name."""
    found = [index for index, name in enumerate(names) if index not in besides and is_called(name, known)]
    return found[0] if len(found) == 1 else None


def cure_labels(file: TableFile) -> str:
    """Return what to do where the labels of a table are no classes."""
    return "" if file.label is None else f"give --label-column another column (it has {list_names(file.names)})"


def list_names(names: Sequence[str]) -> str:
    """Return the first of some names, quoted."""
    return ", ".join(map(reprlib.repr, names[:MOST_LISTED])) + ", ..." * (len(names) > MOST_LISTED)


def read_texts(files: Sequence[TableFile], problems: Problems) -> Iterator[tuple[TableFile, str, str, str | None]]:
    """Yield the file, the place, the text and the label of each row."""

    def read(file: TableFile) -> Iterator[tuple[TableFile, str, str, str | None]]:
        for place, record in read_rows(file, problems):
            with problems.at(place):
                yield file, place, *_pick(record, file)

    return read_files(files, read, problems, "has no rows", "give it at least one")


def read_files(
    files: Sequence[TableFile], read: Callable[[TableFile], Iterator[Item]], problems: Problems, what: str, cure: str
) -> Iterator[Item]:
    """Yield what is read of each file; refuse those that give nothing."""
    for file in files:
        num_noted, is_empty = problems.num_refused + problems.num_skipped, True
        with problems.noting_errors():
            for item in read(file):
                is_empty = False
                yield item
        if is_empty and problems.num_refused + problems.num_skipped == num_noted:
            problems.refuse(str(file.path), what, cure)


def read_rows(file: TableFile, problems: Problems) -> Iterator[tuple[str, Record]]:
    """Yield the place and the cells of each row below the header; where values come by name, there is none."""
    names = [file.names[index] for index in (*file.text, file.label, file.series, file.time) if index is not None]
    for position, (number, record) in enumerate(file.kind.read(file.path, problems, names)):
        if position or not file.is_named or isinstance(record, dict):
            yield f"{file.path}, {file.kind.unit} {number}", record


def _pick(record: Record, file: TableFile) -> tuple[str, str | None]:
    """Return the text and the label of a row; a value that is missing is empty."""
    cells = [record.get(name) for name in file.names] if isinstance(record, dict) else record
    if len(cells) != len(file.names):
        what = f"has {len(cells)} column{'s' * (len(cells) != 1)} where the first row has {len(file.names)}"
        raise ExampleError(what, f"give it {len(file.names)}, and quotes around its texts")
    texts = [cells[index] for index in file.text]
    for text in texts:
        if not isinstance(text, str | None):
            raise ExampleError(f"has a text of type {type(text).__name__}", "write it as a text in quotes")
    joined = " ".join(str(text or "") for text in texts)
    label = None if file.label is None else to_label(cells[file.label])
    check_text(joined, label)
    return joined, label


def check_text(text: str, label: str | None = None) -> None:
    """Raise `ExampleError` for a text of blanks alone, or one that is none."""
    if not text.strip():
        raise ExampleError("has no text")
    if "\0" in text or LONE_SURROGATE.search(text + (label or "")):
        raise ExampleError("is not valid UTF-8 text, or has a NUL character", "save the file as UTF-8")


def _read_class_names(path: Path) -> Mapping[str, str]:
    """Read one class name per line; the first is that of the label 1."""
    with refusing_damage(path, "get it again", kind="a list of class names"):
        names = [line.strip() for line in path.read_text(encoding="utf-8").strip().split("\n")]
    if "" in names or len(set(names)) < len(names):
        raise RunError(f"{path} does not name one class on each line; write a different name on each")
    return {str(number): name for number, name in enumerate(names, start=1)}


def _describe(file: TableFile) -> str:
    if file.kind is PLAIN_TEXT:
        return "texts, one per line"
    return describe_table(file, "texts", f"text in column {' and '.join(map(file.select, file.text))}")


def describe_table(file: TableFile, what: str, layout: str) -> str:
    """Return what a table was understood to be, for the user."""
    label = "without labels" if file.label is None else f"labels in column {file.select(file.label)}"
    header = "" if file.is_named else " without a header"
    return printable(f"table of {what} in {file.kind.title}{header}, {layout}, {label}")
