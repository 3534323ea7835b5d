"""Which columns of a table hold the texts and the labels: as the user names them, or guessed where it is obvious."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.tables.guesses import Guess, guess_label, guess_text_by_length, guess_text_by_name
from auxrnn.data.tables.header import has_header, has_known_names
from auxrnn.data.tables.rows import Layout, Sample
from auxrnn.errors import RunError, UsageError

MOST_LISTED = 12
MOST_LISTED_CHARACTERS = 40


class Wish(NamedTuple):
    """What the user says of the columns."""

    text: str | None
    """Columns by name or by number from 1, joined by "+"."""
    label: str | None
    """One column by name or number."""
    needs_label: bool
    usual: tuple[str, ...] = ()
    """The columns that the model was trained on; taken where the file has them and no others are named."""


class Choice(NamedTuple):
    """The columns of a file, and what was guessed of them."""

    layout: Layout
    is_named: bool
    """Whether the columns have names."""
    is_text_guessed: bool
    is_label_guessed: bool


class _Table(NamedTuple):
    """A file's columns, before any is chosen."""

    path: Path
    names: tuple[str, ...]
    is_named: bool


def choose_columns(path: Path, sample: Sample, wish: Wish) -> Choice:
    """Give the columns that the user names, and guess the others; `UsageError` where that is not obvious."""
    _check_rows(path, sample, num_lines=1)
    table = _find_names(path, sample, wish)
    asked_text = _find_text(table, wish)
    asked_label = () if wish.label is None else (_find(table, wish.label, flag="--label-column"),)
    if set(asked_text) & set(asked_label):
        raise UsageError(f"column {wish.label!r} of {path} is named as text and as labels; name another one")
    rows = sample.rows
    if table.is_named and sample.names is None:
        _check_rows(path, sample, num_lines=2)
        rows = rows[1:]
    names = table.names if table.is_named else ("",) * len(table.names)
    text = asked_text or _settle(table, guess_text_by_name(names, rows, asked_label), what="the text")
    label = asked_label or _settle_label(table, guess_label(names, rows, text), wish.needs_label)
    if not text:
        text = _settle(table, guess_text_by_length(rows, label), what="the text", is_needed=True)
    layout = Layout(table.names, table.is_named and sample.names is None, text, label[0] if label else None)
    return Choice(layout, table.is_named, is_text_guessed=not asked_text, is_label_guessed=not asked_label)


def fit_columns(path: Path, sample: Sample, choice: Choice, *, first: Path, needs_label: bool) -> Layout:
    """Find in another file the columns that were chosen for the first; `RunError` where it does not have them."""
    chosen = choice.layout
    _check_rows(path, sample, num_lines=2 if choice.is_named and sample.names is None else 1)
    if not choice.is_named:
        return _fit_unnamed(path, sample, chosen, first=first)
    table = _name(path, sample)
    if table.names == chosen.names:
        return chosen._replace(has_header=sample.names is None)
    label = None if chosen.label is None else chosen.names[chosen.label]
    if label not in table.names and not needs_label:
        label = None
    wanted = [chosen.names[index] for index in chosen.text] + ([] if label is None else [label])
    for name in wanted:
        if name not in table.names:
            found = f"has no column {name!r} (its columns are {_list(table, range(len(table.names)))})"
            raise RunError(f"{path} {found}; give it the columns of {first}")
    positions = tuple(map(table.names.index, wanted))
    num_texts = len(chosen.text)
    return Layout(table.names, sample.names is None, positions[:num_texts], None if label is None else positions[-1])


def show_column(choice: Choice, index: int) -> str:
    """Name a chosen column for the user: in quotes, or by number where columns have no names."""
    name = choice.layout.names[index]
    return repr(_cut(name)) if choice.is_named and name else str(index + 1)


def _check_rows(path: Path, sample: Sample, *, num_lines: int) -> None:
    if not sample.rows:
        raise RunError(sample.fault or f"{path} has no rows; give it at least one")
    # Rows with a fault are refused one by one when they are read.
    if len(sample.rows) < num_lines and sample.fault is None:
        raise RunError(f"{path} has a first line with names, but no rows; give it at least one")


def _fit_unnamed(path: Path, sample: Sample, chosen: Layout, *, first: Path) -> Layout:
    if sample.names is not None or has_known_names(sample.rows[0]):
        raise RunError(f"{path} has names of columns where {first} has none; add a first line with them to {first}")
    num_columns = len(sample.rows[0])
    if num_columns != len(chosen.names):
        found = f"{num_columns} column{'s' * (num_columns != 1)} where {first} has {len(chosen.names)}"
        raise RunError(f"{path} has {found}; give both the same columns")
    return chosen


def _find_names(path: Path, sample: Sample, wish: Wish) -> _Table:
    table = _name(path, sample)
    if sample.names is not None or _has_asked_names(table, wish) or has_header(sample.rows):
        return table
    return _Table(path, _number(table.names), is_named=False)


def _name(path: Path, sample: Sample) -> _Table:
    """Take the names that a file has, or its first row for names."""
    names = sample.names if sample.names is not None else tuple(cell.strip() for cell in sample.rows[0])
    return _Table(path, names, is_named=True)


def _number(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, len(names) + 1))


def _has_asked_names(table: _Table, wish: Wish) -> bool:
    """Say whether the first row holds a name that the user gave, or all that the model was trained on."""
    asked = {*_split(table, wish.text or ""), (wish.label or "").strip()} - {""}
    # A number is a position unless the first row is known to hold names, so it does not tell.
    numbers = set(_number(table.names))
    if asked & set(table.names) - numbers:
        return True
    is_usual = wish.text is None and not set(wish.usual) <= numbers
    return is_usual and set(wish.usual) <= set(table.names)


def _find_text(table: _Table, wish: Wish) -> tuple[int, ...]:
    if wish.text is not None:
        return tuple(_find(table, piece, flag="--text-column") for piece in _split(table, wish.text))
    if wish.usual and set(wish.usual) <= set(table.names):
        return tuple(map(table.names.index, wish.usual))
    return ()


def _split(table: _Table, words: str) -> list[str]:
    """Take the columns apart that are joined by "+", unless that is the name of one."""
    is_one = words.strip() in table.names
    return [words.strip()] if is_one else [piece.strip() for piece in words.split("+")]


def _find(table: _Table, name: str, *, flag: str) -> int:
    """Give the position of a column by its name, or by its number where none is called so."""
    name = name.strip()
    count = table.names.count(name) if name else 0
    if count > 1:
        raise UsageError(f"{table.path} has {count} columns called {name!r}; give {flag} the number of one, from 1")
    if count == 1:
        return table.names.index(name)
    if name in _number(table.names):
        return int(name) - 1
    if not table.is_named:
        cure = f"give {flag} a number from 1 to {len(table.names)}"
        raise UsageError(f"{table.path} has no header with a column {name!r}; {cure}")
    likeness = [SequenceMatcher(None, name.lower(), known.lower()).ratio() for known in table.names]
    nearest = sorted(range(len(likeness)), key=lambda index: -likeness[index])
    raise UsageError(f"{table.path} has no column {name!r}; give {flag} one of {_list(table, nearest)}")


def _settle_label(table: _Table, guess: Guess, is_needed: bool) -> Guess:
    if not is_needed:
        return guess if len(guess) == 1 else ()
    if len(table.names) == 1:
        raise UsageError(f"{table.path} has no column of labels; add one, or give the file as --unlabeled")
    return _settle(table, guess, what="the labels", is_needed=True)


def _settle(table: _Table, guess: Guess, *, what: str, is_needed: bool = False) -> Guess:
    """Take a guess that is obvious; ask the user where there are several, or none and one is needed."""
    cure = "give --label-column one of them"
    if what == "the text":
        cure = "give --text-column one of them, or several joined by +"
    if len(guess) > 1:
        raise UsageError(f"{table.path} has several columns that could be {what} ({_list(table, guess)}); {cure}")
    if is_needed and not guess:
        listed = _list(table, range(len(table.names)))
        raise UsageError(f"{table.path} has no column that is clearly {what} ({listed}); {cure}")
    return guess


def _list(table: _Table, columns: Sequence[int]) -> str:
    named = {index: table.names[index] for index in columns[:MOST_LISTED] if table.is_named and table.names[index]}
    shown = [repr(_cut(named[index])) if index in named else f"column {index + 1}" for index in columns[:MOST_LISTED]]
    rest = len(columns) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _cut(name: str) -> str:
    return name if len(name) <= MOST_LISTED_CHARACTERS else f"{name[:MOST_LISTED_CHARACTERS]}..."
