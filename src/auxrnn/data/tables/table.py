"""Tables of texts: CSV, TSV, JSON Lines and Parquet with a text and a label column, and files of one text a line."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from auxrnn.data.examples import Part, Problems, Source, Understood
from auxrnn.data.formats import Format
from auxrnn.data.images import ImageFormat
from auxrnn.data.tables.columns import Choice, Wish, choose_columns, fit_columns, show_column
from auxrnn.data.tables.delimited import read_delimited, sample_delimited
from auxrnn.data.tables.json_lines import read_json_lines, sample_json_lines
from auxrnn.data.tables.lines import measure_lines, read_lines, sample_lines
from auxrnn.data.tables.parquet import measure_parquet, read_parquet, sample_parquet
from auxrnn.data.tables.rows import Layout, TableKind
from auxrnn.data.tables.table_examples import TableFile, note, read_class_names, read_examples
from auxrnn.data.texts import TextFormat
from auxrnn.errors import RunError, UsageError

BYTES_PER_STEP = {"characters": 4, "bytes": 1}
PLAIN_SUFFIX = ".txt"


def _delimited(title: str, delimiters: str) -> TableKind:
    sample, read = partial(sample_delimited, delimiters=delimiters), partial(read_delimited, delimiters=delimiters)
    return TableKind(title, "line", sample, read, measure_lines)


KINDS: dict[str, TableKind] = {
    ".csv": _delimited("CSV", ",;\t"),
    ".tsv": _delimited("TSV", "\t"),
    ".jsonl": TableKind("JSON Lines", "line", sample_json_lines, read_json_lines, measure_lines),
    ".ndjson": TableKind("JSON Lines", "line", sample_json_lines, read_json_lines, measure_lines),
    ".parquet": TableKind("Parquet", "row", sample_parquet, read_parquet, measure_parquet),
    PLAIN_SUFFIX: TableKind("plain text", "line", sample_lines, read_lines, measure_lines),
}
TABLE_SUFFIXES: tuple[str, ...] = tuple(KINDS)


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
    """A file with one class a line: the label 1 is its first line."""


def table_source(name: str, files: Mapping[Part, Path] | Path, options: TableOptions) -> Source:
    """Give a table, or one for each part, as a source; their columns are told from the training part."""
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


def _check_suffix(path: Path, options: TableOptions) -> None:
    suffix = path.suffix.lower()
    if suffix not in KINDS:
        raise UsageError(f"{path} is not a table; give a file that ends in one of {', '.join(KINDS)}")
    if suffix != PLAIN_SUFFIX:
        return
    if options.has_labels:
        cure = "give a table such as a .csv file with a column for the labels, or give it as --unlabeled"
        raise UsageError(f"{path} holds texts without labels; {cure}")
    if options.text_column is not None or options.label_column is not None:
        raise UsageError(f"{path} has no columns, but one text a line; leave --text-column and --label-column out")


def _read_tables(
    name: str, parts: Mapping[Part | None, Path], options: TableOptions, problems: Problems, like: Format | None
) -> Understood:
    if like is not None and not isinstance(like, TextFormat):
        reads = "images" if isinstance(like, ImageFormat) else "series of numbers"
        raise UsageError(f"{name} is a table of texts where the model reads {reads}; give it {reads}")
    wish = Wish(options.text_column, options.label_column, options.has_labels, () if like is None else like.columns)
    first = parts.get("train") or next(iter(parts.values()))
    choice = _choose(first, wish)
    files = _open_all(parts, wish, choice, first=first, problems=problems)
    class_names = None if options.class_names is None else read_class_names(options.class_names)
    text_format = TextFormat(options.tokens, is_lowercase=options.is_lowercase)
    if like is not None:
        text_format = TextFormat(like.tokens, is_lowercase=like.is_lowercase)
    text_format = text_format._replace(columns=_name_columns(choice.layout))
    labels = class_names if options.has_labels else None
    sizes = [file.kind.measure(file.path, file.layout) for file in files]
    counts = [size.num_rows for size in sizes if size.num_rows is not None]
    return Understood(
        _describe(KINDS[first.suffix.lower()], choice),
        text_format,
        read_examples(files, text_format, labels, problems),
        num_examples=sum(counts) if len(counts) == len(sizes) else None,
        num_bytes=sum(size.num_bytes for size in sizes) * BYTES_PER_STEP[text_format.tokens],
        class_names=class_names,
    )


def _open_all(
    parts: Mapping[Part | None, Path], wish: Wish, choice: Choice, *, first: Path, problems: Problems
) -> list[TableFile]:
    """Find the columns of the first file in all others, and leave out those that do not have them."""
    files = []
    for part, path in parts.items():
        kind = KINDS[path.suffix.lower()]
        try:
            layout = choice.layout
            if path != first:
                layout = fit_columns(path, kind.sample(path), choice, first=first, needs_label=wish.needs_label)
        except RunError as error:
            note(error, problems)
        else:
            files.append(TableFile(path, part, kind, layout))
    return files


def _choose(path: Path, wish: Wish) -> Choice:
    sample = KINDS[path.suffix.lower()].sample(path)
    try:
        return choose_columns(path, sample, wish)
    except UsageError as error:
        # Where no second row fits the first, the user's mistake is there and not in the choice of columns.
        if sample.fault is not None and len(sample.rows) < 2:
            raise RunError(sample.fault) from error
        raise


def _name_columns(layout: Layout) -> tuple[str, ...]:
    """Give the columns of the texts by name, or by number from 1 where one has no name of its own."""
    names = [layout.names[index] for index in layout.text]
    is_single = all(name and layout.names.count(name) == 1 for name in names)
    return tuple(names) if is_single else tuple(str(index + 1) for index in layout.text)


def _describe(kind: TableKind, choice: Choice) -> str:
    if kind is KINDS[PLAIN_SUFFIX]:
        return "texts, one a line"
    names = [show_column(choice, index) for index in choice.layout.text]
    text = f"text in column{'s' * (len(names) > 1)} {' and '.join(names)}" + " (guessed)" * choice.is_text_guessed
    label = "without labels"
    if choice.layout.label is not None:
        label = f"labels in column {show_column(choice, choice.layout.label)}" + " (guessed)" * choice.is_label_guessed
    header = "" if choice.is_named else " without a header"
    return f"table of texts in {kind.title}{header}, {text}, {label}"
