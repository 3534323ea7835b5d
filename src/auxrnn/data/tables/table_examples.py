"""From the rows of tables to examples: texts joined and checked, labels as the names of classes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.examples import Example, Part, Problems
from auxrnn.data.tables.lines import Lines, is_unicode, open_text
from auxrnn.data.tables.rows import MOST_CHARACTERS, Layout, TableKind, to_label
from auxrnn.data.texts import TextFormat
from auxrnn.errors import RunError


class TableFile(NamedTuple):
    """One file, ready to be read."""

    path: Path
    part: Part | None
    kind: TableKind
    layout: Layout


def read_examples(
    files: Sequence[TableFile], text_format: TextFormat, labels: Collection[str] | None, problems: Problems
) -> Iterator[Example]:
    """Give the texts of all files one by one, with their labels, which must be among the given ones if there are any.

    A row without a text is skipped.
    """
    for file in files:
        try:
            yield from _read_file(file, text_format, labels, problems)
        except RunError as error:
            note(error, problems)


def note(error: RunError, problems: Problems) -> None:
    """Refuse a whole file by a sentence that is complete already."""
    if not problems.is_patient:
        raise error
    problems.num_refused += 1
    problems.refused.append(str(error))


def read_class_names(path: Path) -> Mapping[str, str]:
    """Read one class name a line; the first is that of the label 1."""
    with open_text(path) as file:
        names = [line.strip() for line in Lines(file, path, Problems())]
    while names and not names[-1]:
        names.pop()
    if not names:
        raise RunError(f"{path} names no classes; write one on each line")
    for number, name in enumerate(names, start=1):
        if not name:
            raise RunError(f"{path}, line {number} is blank; write the name of class {number} on it")
        if name in names[: number - 1]:
            raise RunError(f"{path}, line {number} repeats the class {name!r}; give each class a name of its own")
    return {str(number): name for number, name in enumerate(names, start=1)}


def _read_file(
    file: TableFile, text_format: TextFormat, labels: Collection[str] | None, problems: Problems
) -> Iterator[Example]:
    for row in file.kind.read(file.path, file.layout, problems):
        place = f"{file.path}, {file.kind.unit} {row.number}"
        try:
            text = _join(row.texts)
            label = _name_class(row.label, labels)
        except _Fault as fault:
            problems.refuse(place, fault.what, fault.cure)
            continue
        if text.strip():
            yield Example(text_format.to_values(text), label, place, file.part)
        else:
            problems.skip(place, "has no text")


class _Fault(Exception):  # noqa: N818 - it is the row that has it
    """What is wrong with a row."""

    def __init__(self, what: str, cure: str) -> None:
        super().__init__(what)
        self.what = what
        self.cure = cure


def _join(texts: Sequence[object]) -> str:
    pieces = ["" if text is None else text for text in texts]
    strings = [piece for piece in pieces if isinstance(piece, str)]
    if len(strings) < len(pieces):
        wrong = next(piece for piece in pieces if not isinstance(piece, str))
        raise _Fault(f"has a text that is {_describe_kind(wrong)}", "write it as a text in quotes")
    text = " ".join(strings)
    _check_characters(text)
    if len(text) > MOST_CHARACTERS:
        raise _Fault(f"has a text of more than {MOST_CHARACTERS:,} characters", "cut it")
    return text


def _name_class(value: object, labels: Collection[str] | None) -> str | None:
    try:
        label = to_label(value)
    except TypeError as error:
        found = f"has a label that is {_describe_kind(value)}"
        raise _Fault(found, "give it a word or a number") from error
    if label is None:
        return None
    _check_characters(label)
    if labels is not None and label not in labels:
        raise _Fault(f"has the label {label!r}, which is none of 1 to {len(labels)}", "mend it, or name one more class")
    return label


def _check_characters(text: str) -> None:
    if "\0" in text:
        raise _Fault("has a NUL character", "remove it")
    if not (text.isascii() or is_unicode(text)):
        raise _Fault("has half of a surrogate pair, which is no character", "write the character whole, or remove it")


def _describe_kind(value: object) -> str:
    kinds = {list: "a list", dict: "an object", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), f"of the type {type(value).__name__}")
