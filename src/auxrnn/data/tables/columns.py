"""Which columns of a table hold the texts and the labels: those the user names, or those with well-known names.

Nothing else is guessed: where the names do not settle it, an error lists the columns and names the flags.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.tables.rows import Columns, Layout
from auxrnn.errors import RunError, UsageError

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
    """What is said about the columns."""

    text: str | None
    """Columns by name or by number from 1, joined by "+"."""
    label: str | None
    """One column by name or number."""
    needs_label: bool
    usual: tuple[str, ...] = ()
    """The columns that the model was trained on; taken where the file has them and the user names no others."""


def choose_columns(path: Path, columns: Columns, asked: AskedColumns) -> Layout:
    """Return where texts and labels are; raise `UsageError` where neither the user nor the names say so."""
    is_named = columns.are_names or _is_header(columns.names, asked)
    names = columns.names if is_named else _number(columns.names)
    table = Layout(names, is_named, is_named and not columns.are_names, text=(), label=None)
    text = _find_text(path, table, asked)
    label = None if asked.label is None else _find(path, table, asked.label, flag="--label-column")
    if label in text:
        raise UsageError(f"column {asked.label!r} of {path} is given as text and as labels; give another one")
    if label is None:
        label = _find_known_label(path, table, asked, besides=text)
    text = text or _find_known_text(path, table, besides=label)
    if not text or (asked.needs_label and label is None):
        raise _ask(path, columns.names, table, has_text=bool(text), has_label=label is not None)
    return table._replace(text=text, label=label)


def find_again(path: Path, columns: Columns, chosen: Layout, *, first: Path, needs_label: bool) -> Layout:
    """Return where another file has the columns that were chosen for the first; raise `RunError` if it lacks them."""
    names = columns.names
    if not chosen.is_named and (columns.are_names or _are_known(names, needs_label=True)):
        raise RunError(f"{path} has names for its columns and {first} has none; add a first row of names to it")
    if not chosen.is_named and len(names) != len(chosen.names):
        found = f"{len(names)} column{'s' * (len(names) != 1)} where {first} has {len(chosen.names)}"
        raise RunError(f"{path} has {found}; give both the same columns")
    if not chosen.is_named or names == chosen.names:
        return chosen._replace(has_header=chosen.is_named and not columns.are_names)
    label = None if chosen.label is None else chosen.names[chosen.label]
    if label not in names and not needs_label:
        label = None
    for name in [chosen.names[index] for index in chosen.text] + ([] if label is None else [label]):
        if name not in names:
            raise RunError(f"{path} has no column {name!r} (it has {_list(names)}); give it the columns of {first}")
    text = tuple(names.index(chosen.names[index]) for index in chosen.text)
    return Layout(names, True, not columns.are_names, text, None if label is None else names.index(label))


def show_column(layout: Layout, index: int) -> str:
    """Return a column as the user sees it: its name in quotes, or its number."""
    name = layout.names[index]
    return _quote(name) if layout.is_named and name else str(index + 1)


def _is_header(cells: Sequence[str], asked: AskedColumns) -> bool:
    """Return whether the first row holds names: given by the user, used by the model, or well known."""
    # A number may be a position, so it does not tell.
    numbers = set(_number(cells))
    given = {asked.text or "", *(asked.text or "").split("+"), asked.label or ""}
    if ({name.strip() for name in given} - numbers - {""}) & set(cells):
        return True
    is_usual = asked.text is None and bool(asked.usual) and set(asked.usual) <= set(cells)
    return (is_usual and not set(asked.usual) <= numbers) or _are_known(cells, needs_label=asked.needs_label)


def _are_known(cells: Sequence[str], *, needs_label: bool) -> bool:
    """Return whether a row holds well-known names; a single one can be there by chance if others must be, too."""
    has_text, has_label = (any(_is_called(cell, known) for cell in cells) for known in (TEXT_NAMES, LABEL_NAMES))
    return has_text and (has_label or not needs_label)


def _is_called(name: str, known: re.Pattern[str]) -> bool:
    """Return whether a name is a known one, however it is written: "Review Text", "review-text"."""
    return known.fullmatch(re.sub(r"[\s_-]+", "_", name.strip().lower())) is not None


def _number(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, len(names) + 1))


def _find_text(path: Path, layout: Layout, asked: AskedColumns) -> tuple[int, ...]:
    if asked.text is not None:
        is_one = asked.text.strip() in layout.names
        pieces = [asked.text] if is_one else asked.text.split("+")
        return tuple(_find(path, layout, piece, flag="--text-column") for piece in pieces)
    if asked.usual and set(asked.usual) <= set(layout.names):
        return tuple(map(layout.names.index, asked.usual))
    return ()


def _find(path: Path, layout: Layout, name: str, *, flag: str) -> int:
    """Return the position of a column by its name, or by its number if no column has that name."""
    name = name.strip()
    count = layout.names.count(name) if name else 0
    if count > 1:
        raise UsageError(f"{path} has {count} columns called {name!r}; give {flag} the number of one, from 1")
    if count == 1:
        return layout.names.index(name)
    if name in _number(layout.names):
        return int(name) - 1
    if not layout.is_named:
        cure = f"give {flag} a number from 1 to {len(layout.names)}"
        raise UsageError(f"{path} has no header with a column {name!r}; {cure}")
    raise UsageError(f"{path} has no column {name!r}; give {flag} one of {_list(layout.names)}")


def _find_known_label(path: Path, table: Layout, asked: AskedColumns, *, besides: Collection[int]) -> int | None:
    known = _find_known(table, LABEL_NAMES, besides)
    if len(known) > 1 and asked.needs_label:
        listed = _list([table.names[index] for index in known])
        raise UsageError(f"{path} has several columns that could be the labels ({listed}); give --label-column one")
    return known[0] if len(known) == 1 else None


def _find_known_text(path: Path, table: Layout, *, besides: int | None) -> tuple[int, ...]:
    """Return the column with a well-known name, or the only one beside the labels."""
    known = _find_known(table, TEXT_NAMES, [besides])
    if len(known) > 1:
        listed = _list([table.names[index] for index in known])
        cure = "give --text-column one, or several joined by +"
        raise UsageError(f"{path} has several columns that could be the text ({listed}); {cure}")
    others = [index for index in range(len(table.names)) if index != besides]
    return tuple(known or (others if len(others) == 1 else ()))


def _find_known(table: Layout, known: re.Pattern[str], besides: Collection[int | None]) -> list[int]:
    return [index for index, name in enumerate(table.names) if index not in besides and _is_called(name, known)]


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
