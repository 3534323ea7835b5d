"""What `fuzz` feeds: a target makes inputs and uses them; what a user may see of it is checked here."""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple, NoReturn

MOST_CHARACTERS = 1200
"""A sentence of more was not written for anybody to read."""


class MistakeError(Exception):
    """An answer or a message that nobody should get; its text begins with the kind of mistake."""


class Target(NamedTuple):
    """A place where input comes in."""

    share: int
    """How many inputs of a million it gets."""
    make: Callable[[Random], bytes]
    """Draw an input."""
    use: Callable[[bytes], None]
    """Use it, with options that depend on its bytes alone; whatever is raised but the project's errors is a failure."""


Targets = Mapping[str, Target]


def check_sentence(text: str) -> None:
    """Raise `MistakeError` unless a message is one line that a terminal can show."""
    if not text.isprintable():
        raise MistakeError(f"a message with control characters: {text!r}")
    if len(text) > MOST_CHARACTERS:
        raise MistakeError(f"a message of {len(text)} characters: {text[:300]}...")


def check_json(line: str) -> Any:
    """Return a line of strict JSON; raise `MistakeError` where it has NaN or is none at all."""
    try:
        return json.loads(line, parse_constant=_refuse_constant)
    except ValueError as error:
        raise MistakeError(f"an answer that is not JSON: {line[:200]}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise MistakeError(f"an answer that is not finite: {name}")
