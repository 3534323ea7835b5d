"""Which columns of a table hold the texts and the labels: those the user names, or those with well-known names.

Nothing else is guessed: where the names do not settle it, an error lists the columns and names the flags.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.readers.rows import Columns, Layout
from auxrnn.errors import UsageError

TEXT_NAMES = re.compile(
    "texts?|(text_)?contents?|reviews?|review_?(text|body)|sentences?|documents?|body|messages?|title|headline|abstract"
    "|comments?|comment_text|description|article|tweet|post|question|utterance|sequence|e_?mail|sms"
)
LABEL_NAMES = re.compile(
    "labels?|class(es)?|class_(index|label)|category|target|sentiment|polarity|stars?|rating|topic|intent|emotion|genre|y"
)
MOST_LISTED = 12
MOST_LISTED_CHARACTERS = 40


class AskedColumns(NamedTuple):
    """What is said about the columns, each by name or by number from 1."""

    text: str | tuple[str, ...] | None
    """Columns one by one, or joined by "+" as the user writes them."""
    label: str | None
    needs_label: bool
    usual: tuple[str, ...] = ()
    """The text columns that the model was trained on; taken where the file has them and the user names no others."""


def choose_columns(path: Path, columns: Columns, asked: AskedColumns) -> Layout:
    """Return where texts and labels are; raise `UsageError` where neither the user nor the names say so."""
    is_named = columns.are_names or _is_header(columns.names, asked)
    names = columns.names if is_named else _number(columns.names)
    table = Layout(names, is_named, is_named and not columns.are_names, text=(), label=None)
    text = _find_asked_text(path, table, asked)
    label = None if asked.label is None else _find(path, table, asked.label, flag="--label-column")
    if label in text:
        raise UsageError(f"column {asked.label!r} of {path} is given as text and as labels; give another one")
    if label is None:
        label = _find_known(path, table, LABEL_NAMES, besides=text, is_needed=asked.needs_label)
    if not text:
        known = _find_known(path, table, TEXT_NAMES, besides=[label], is_needed=True)
        others = [index for index in range(len(names)) if index != label]
        text = (known,) if known is not None else tuple(others if len(others) == 1 else ())
    if not text or (asked.needs_label and label is None):
        raise _ask(path, columns.names, table, has_text=bool(text), has_label=label is not None)
    return table._replace(text=text, label=label)


def select(layout: Layout, index: int) -> str:
    """Return what tells a column from all others: its name, or its number where it has no name of its own."""
    name = layout.names[index]
    return name if name and layout.names.count(name) == 1 else str(index + 1)


def show_column(layout: Layout, index: int) -> str:
    """Return a column as the user sees it: its name in quotes, or its number."""
    name = layout.names[index]
    return _quote(name) if layout.is_named and name else str(index + 1)


def _is_header(cells: Sequence[str], asked: AskedColumns) -> bool:
    """Return whether the first row holds names: given by the user, used by the model, or well known."""
    # A number may be a position, so it does not tell.
    numbers = set(_number(cells))
    text = asked.text or ""
    given = {asked.label or "", *((text, *text.split("+")) if isinstance(text, str) else text)}
    if ({name.strip() for name in given} - numbers - {""}) & set(cells):
        return True
    if not asked.text and asked.usual and set(asked.usual) <= set(cells) and not set(asked.usual) <= numbers:
        return True
    # A single well-known name can be there by chance.
    has_text, has_label = (any(_is_called(cell, known) for cell in cells) for known in (TEXT_NAMES, LABEL_NAMES))
    return has_text and (has_label or not asked.needs_label)


def _is_called(name: str, known: re.Pattern[str]) -> bool:
    """Return whether a name is a known one, however it is written: "Review Text", "review-text"."""
    return known.fullmatch(re.sub(r"[\s_-]+", "_", name.strip().lower())) is not None


def _number(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, len(names) + 1))


def _find_asked_text(path: Path, table: Layout, asked: AskedColumns) -> tuple[int, ...]:
    pieces = asked.text
    if isinstance(pieces, str):
        # A "+" may be part of a name.
        pieces = (pieces,) if pieces.strip() in table.names else tuple(pieces.split("+"))
    if pieces is None and set(asked.usual) <= set(table.names):
        pieces = asked.usual
    return tuple(_find(path, table, piece, flag="--text-column") for piece in pieces or ())


def _find(path: Path, table: Layout, name: str, *, flag: str) -> int:
    """Return the position of a column by its name, or by its number if no column has that name."""
    name = name.strip()
    count = table.names.count(name) if name else 0
    if count > 1:
        raise UsageError(f"{path} has {count} columns called {name!r}; give {flag} the number of one, from 1")
    if count == 1:
        return table.names.index(name)
    if name in _number(table.names):
        return int(name) - 1
    if not table.is_named:
        cure = f"give {flag} a number from 1 to {len(table.names)}"
        raise UsageError(f"{path} has no header with a column {name!r}; {cure}")
    raise UsageError(
        f"{path} has no column {name!r} (it has {_list(table.names)}); give {flag} one that all files have"
    )


def _find_known(
    path: Path, table: Layout, known: re.Pattern[str], *, besides: Collection[int | None], is_needed: bool
) -> int | None:
    """Return the column with a well-known name; several are an error if one is needed."""
    found = [index for index, name in enumerate(table.names) if index not in besides and _is_called(name, known)]
    if len(found) > 1 and is_needed:
        what, cure = "the labels", "give --label-column one"
        if known is TEXT_NAMES:
            what, cure = "the text", "give --text-column one, or several joined by +"
        listed = _list([table.names[index] for index in found])
        raise UsageError(f"{path} has several columns that could be {what} ({listed}); {cure}")
    return found[0] if len(found) == 1 else None


def _ask(path: Path, names: Sequence[str], table: Layout, *, has_text: bool, has_label: bool) -> UsageError:
    what = " and which ".join(["the text"] * (not has_text) + ["the labels"] * (not has_label))
    having = "it has" if table.is_named else "its first row is"
    cure = "give --text-column and --label-column, each a name or a number from 1"
    if len(names) == 1:
        cure = "add a column of labels, or give the file as --unlabeled"
    return UsageError(f"{path} does not say which column holds {what} ({having} {_list(names)}); {cure}")


def _list(names: Sequence[str]) -> str:
    shown = [_quote(name) if name else f"column {number}" for number, name in enumerate(names[:MOST_LISTED], start=1)]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _quote(name: str) -> str:
    return repr(name if len(name) <= MOST_LISTED_CHARACTERS else f"{name[:MOST_LISTED_CHARACTERS]}...")
