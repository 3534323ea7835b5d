"""The two kinds of failure a user can cause, which the command line turns into one sentence and an exit code."""

import difflib
from collections.abc import Iterable

LONGEST_SENTENCE = 1000


class UsageError(ValueError):
    """What was asked for cannot be done as asked: exit code 2."""

    def __init__(self, sentence: str) -> None:
        super().__init__(shorten(sentence))


class RunError(RuntimeError):
    """What was asked for went wrong on the way (a damaged file, a full disk, a diverging loss): exit code 1."""

    def __init__(self, sentence: str) -> None:
        super().__init__(shorten(sentence))


def shorten(sentence: str) -> str:
    """Leave out the middle of a sentence that quotes more than anybody reads."""
    half = LONGEST_SENTENCE // 2
    return sentence if len(sentence) <= LONGEST_SENTENCE else f"{sentence[:half]}...{sentence[-half:]}"


def nearest(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """Return the end of a sentence that offers the known name most like this one, or lists them; each with a prefix."""
    names = sorted(known)
    matches = difflib.get_close_matches(name, names, n=1)
    if matches:
        return f"; did you mean {prefix + matches[0]!r}?"
    listed = ", ".join(prefix + name for name in names)
    return f"; choose from: {listed}" if len(names) <= 12 else "; `auxrnn train --help` lists all"
