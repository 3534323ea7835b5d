"""What every reader returns: single examples, what it understood of the files, and what is wrong with them.

A `Source` is files that have not been opened yet. Reading it returns `Understood`: what the files are, and an iterator
of their examples, so that they are never all in memory. What is wrong goes to `Problems`.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from auxrnn.errors import RunError, UsageError, shorten

if TYPE_CHECKING:
    # Listing the datasets needs this file, and must not wait for numpy.
    import numpy as np
    from jaxtyping import Shaped

    from auxrnn.data.formats import Format

Part = Literal["train", "validation", "test", "unlabeled"]

SPLIT_NAMES: dict[str, Part] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    "test": "test",
}
"""Usual names of the splits, in lower case."""
PART_NAMES: dict[str, Part] = {**SPLIT_NAMES, "unlabeled": "unlabeled"}
WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)\.0*")
MOST_KEPT = 1000
"""Problems of a kind that are kept word for word; the rest are counted."""


class ExampleError(ValueError):
    """What is wrong with one example ("has 2 columns where ..."), and the cure; without one it is skipped."""

    def __init__(self, what: str, cure: str | None = None) -> None:
        super().__init__(what if cure is None else f"{what}; {cure}")
        self.what, self.cure = what, cure


class Example(NamedTuple):
    """One sequence as its file has it, and its class by name; None where it has none.

    Values are code points `[T]` of a text (uint32), its bytes `[T]` (uint8), pixels `[T, D]` (uint8, or float32 from
    0 to 1) or numbers `[T, D]` (float32).
    """

    value_T: "Shaped[np.ndarray, 'T *D']"
    label: str | None
    place: str
    """The file and the row, as an error message names them."""
    part: Part | None = None
    """The split that the files put it in; None where they make none."""
    origin: str | None = None
    """The place of the example that this one is a crop of."""


def to_label(value: object) -> str | None:
    """Return the class that a value names, None if it is empty; 1, 1.0, "1" and "1." are the same class.

    Where labels are missing, pandas turns the whole numbers of a column into floats; some archives do it anyway.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise ExampleError(f"has a label of type {type(value).__name__}", "give it a word or a number")
    # Of the two float zeros, -0.0 would be a class of its own.
    text = str(value or 0 if isinstance(value, float) else value).strip()
    match = WHOLE_NUMBER.fullmatch(text)
    return match[1] if match else text or None


@dataclass
class Problems:
    """What is wrong with a user's files: refused, or skipped and counted.

    Reading stops with a `RunError` at the first thing that is refused; a patient reader notes it and continues.
    """

    is_patient: bool = False
    refused: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    num_refused: int = 0
    num_skipped: int = 0

    def refuse(self, place: str, what: str, cure: str) -> None:
        """Report what cannot be read and what to do about it: "FILE, line 3 has 2 columns; give it 3"."""
        sentence = f"{place} {what}; {cure}"
        if not self.is_patient:
            raise RunError(sentence)
        self.note(sentence)

    def note(self, sentence: str) -> None:
        """Note something that training would refuse."""
        self.num_refused += 1
        if len(self.refused) < MOST_KEPT:
            self.refused.append(shorten(sentence))

    @contextmanager
    def at(self, place: str, *, can_skip: bool = False) -> Iterator[None]:
        """Refuse the example at a place if reading it raises `ExampleError`; skip it if it can be, or has no cure."""
        try:
            yield
        except ExampleError as error:
            if can_skip or error.cure is None:
                self.skip(place, error.what)
            else:
                self.refuse(place, error.what, error.cure)

    @contextmanager
    def noting_errors(self) -> Iterator[None]:
        """Let a patient reader go on after a file that cannot be read any further."""
        try:
            yield
        except (RunError, UsageError) as error:
            if not self.is_patient:
                raise
            self.note(str(error))

    def skip(self, place: str, what: str) -> None:
        """Skip an example, and count it: "FILE, line 7 has no text"."""
        self.num_skipped += 1
        if len(self.skipped) < MOST_KEPT:
            self.skipped.append(shorten(f"{place} {what}"))


@contextmanager
def refusing_damage(place: str | Path, cure: str, *, kind: str = "") -> Iterator[None]:
    """Raise `RunError` for anything that goes wrong: libraries report damage by many kinds of exceptions."""
    try:
        yield
    except RunError:
        raise
    except Exception as error:
        raise RunError(f"{place} cannot be read{kind and f' as {kind}'} ({describe_damage(error)}); {cure}") from error


def describe_damage(error: Exception) -> str:
    """Return why a file cannot be read: what the system says, otherwise that its content is wrong."""
    return (isinstance(error, OSError) and error.strerror) or "it is damaged or of another kind"


class Understood(NamedTuple):
    """What files turned out to be, and their examples."""

    description: str
    """For the user, without the file's name: "table of texts, column 'review', labels in column 'stars'"."""
    format: "Format"
    """How examples become steps, without what is learned from the training data."""
    examples: Iterable[Example]
    num_examples: int | None
    """For progress; None if it is not known before the end."""
    num_bytes: int
    """Approximate size of the values on disk."""
    class_names: Mapping[str, str] | None = None
    """Names for the labels, if the files have them; their order is the order of the classes."""
    label_cure: str = ""
    """What to do where the labels are no classes: of a table, which other columns there are."""


class Source(NamedTuple):
    """Files of one kind, found but not opened."""

    name: str
    """What the user called it: a dataset's name, or a path."""
    files: Sequence[Path]
    """All files that the examples depend on."""
    options: Mapping[str, object]
    """All else that they depend on, as plain values, together with the name of the reader."""
    read: Callable[[Problems, "Format | None"], Understood]
    """Open the files. With a format (for `--unlabeled`, `--test-data` and prediction), the examples fit it."""
    part: Part | None = None
    """The part that all its examples belong to; None if the files say so, or nobody does."""
