"""Which columns of a table hold the texts and the labels: those the user names, or those with well-known names.

Nothing else is guessed: where the names do not settle it, an error lists the columns and names the flags.
"""

import re
import reprlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.errors import UsageError

TEXT_NAMES = re.compile(
    "texts?|(text_)?contents?|reviews?|review_?(text|body)|sentences?|documents?|body|messages?|title|headline|abstract"
    "|comments?|comment_text|description|article|tweet|post|question|utterance|sequence|e_?mail|sms"
)
LABEL_NAMES = re.compile(
    "labels?|class(es)?|class_(index|label)|category|target|sentiment|polarity|stars?|rating|topic|intent|emotion|genre|y"
)
MOST_LISTED = 12


class AskedColumns(NamedTuple):
    """What is said about the columns, each by name or by number from 1."""

    text: str | tuple[str, ...] | None
    """Columns one by one, or joined by "+" as the user writes them."""
    label: str | None
    needs_label: bool
    usual: tuple[str, ...] = ()
    """The text columns that the model was trained on; taken where the file has them and the user names no others."""

    def pieces(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the text columns that are asked of a file with these names, none if that is left open."""
        if isinstance(self.text, str):
            # A "+" may be part of a name.
            pieces = [self.text] if self.text.strip() in names else self.text.split("+")
            return tuple(piece.strip() for piece in pieces)
        return self.text or (self.usual if set(self.usual) <= set(names) else ())


class Layout(NamedTuple):
    """Where the texts and the labels of a file are, by position from 0."""

    names: tuple[str, ...]
    """Of all columns; their numbers from 1 where the file has no names."""
    is_named: bool
    text: tuple[int, ...]
    label: int | None

    def select(self, index: int) -> str:
        """Return what tells a column from all others: its name, or its number where it has no name of its own."""
        name = self.names[index]
        return name if name and self.names.count(name) == 1 else str(index + 1)


def choose_columns(path: Path, cells: tuple[str, ...], asked: AskedColumns, *, are_names: bool) -> Layout:
    """Return where texts and labels are, given the names of the columns, or a first row that may hold them."""
    numbers = tuple(str(number) for number in range(1, len(cells) + 1))
    is_named = are_names or _is_header(cells, asked, numbers)
    names = cells if is_named else numbers
    text = tuple(_find(path, names, piece, "--text-column") for piece in asked.pieces(names))
    if asked.label is None:
        label = _find_known(names, LABEL_NAMES, besides=text)
    else:
        label = _find(path, names, asked.label.strip(), "--label-column")
    if label in text:
        raise UsageError(f"column {asked.label!r} of {path} is given as text and as labels; give another one")
    if not text:
        known = _find_known(names, TEXT_NAMES, besides=[label])
        others = [index for index in range(len(names)) if index != label] if known is None else [known]
        text = tuple(others if len(others) == 1 else ())
    missing = ["text"] * (not text) + ["label"] * (asked.needs_label and label is None)
    if missing:
        raise _ask(path, cells, missing)
    return Layout(names, is_named, text, label)


def _is_header(cells: Sequence[str], asked: AskedColumns, numbers: Collection[str]) -> bool:
    """Return whether the first row holds names: given by the user, used by the model, or well known."""
    # A number may be a position, so it does not tell.
    given = {*asked.pieces(cells), (asked.label or "").strip()} - {""} - set(numbers)
    if given & set(cells):
        return True
    # A single well-known name can be there by chance.
    has_text, has_label = (any(_is_called(cell, known) for cell in cells) for known in (TEXT_NAMES, LABEL_NAMES))
    return has_text and (has_label or not asked.needs_label)


def _is_called(name: str, known: re.Pattern[str]) -> bool:
    """Return whether a name is a known one, however it is written: "Review Text", "review-text"."""
    return known.fullmatch(re.sub(r"[\s_-]+", "_", name.strip().lower())) is not None


def _find(path: Path, names: Sequence[str], name: str, flag: str) -> int:
    """Return the position of a column by its name, or by its number if no column has that name."""
    if name and name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path} has more than one column {name!r}; give {flag} its number, counted from 1")
        return names.index(name)
    if name in map(str, range(1, len(names) + 1)):
        return int(name) - 1
    raise UsageError(f"{path} has no column {name!r} (it has {_list(names)}); give {flag} one that all files have")


def _find_known(names: Sequence[str], known: re.Pattern[str], *, besides: Collection[int | None]) -> int | None:
    """Return the only column with a well-known name."""
    found = [index for index, name in enumerate(names) if index not in besides and _is_called(name, known)]
    return found[0] if len(found) == 1 else None


def _ask(path: Path, cells: Sequence[str], missing: Sequence[str]) -> UsageError:
    cure = f"give {' and '.join(f'--{role}-column' for role in missing)}, by name or by number from 1"
    if len(cells) == 1:
        cure = "add a column of labels, or give the file as --unlabeled"
    what = f"does not say which column is the {' and which the '.join(missing)}"
    return UsageError(f"{path} {what} (it has {_list(cells)}); {cure}")


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(reprlib.repr, names[:MOST_LISTED])) + ", ..." * (len(names) > MOST_LISTED)
