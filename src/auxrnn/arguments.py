"""Parsing the words after a command with tyro, whose frames of complaint become one sentence each."""

import contextlib
import inspect
import io
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import tyro

from auxrnn.errors import UsageError, nearest

Arguments = TypeVar("Arguments")


def parse(
    kind: type[Arguments],
    argv: Sequence[str],
    command: str,
    *,
    description: str,
    default: Arguments | None = None,
) -> Arguments:
    """Parse the arguments of a command; what tyro has to say against them becomes one sentence."""

    def parse_words(words: Sequence[str]) -> Arguments:
        return tyro.cli(
            kind,
            prog=f"auxrnn {command}",
            description=inspect.cleandoc(description),
            args=list(words),
            default=tyro.MISSING_NONPROP if default is None else default,
            config=(tyro.conf.OmitArgPrefixes,),
        )

    if not {"-h", "--help"}.isdisjoint(argv):
        return parse_words(["--help"])
    printed = io.StringIO()
    try:
        # Stdout too: tyro looks at it to decide on colors and frames.
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
            return parse_words(argv)
    except SystemExit as stop:
        _check_flags(argv, _flags_of(parse_words))
        raise UsageError(_one_sentence(printed.getvalue(), command)) from stop


def last_value(argv: Sequence[str], flag: str) -> str | None:
    """Find what a flag is set to, before all flags are parsed."""
    value = None
    for word, following in zip(argv, [*argv, None][1:], strict=True):
        name, equals, rest = word.partition("=")
        if name.replace("_", "-") == flag:
            value = rest if equals else following
    return value


def _flags_of(parse: Callable[[Sequence[str]], object]) -> set[str]:
    """Give all flags of a command: those that its help names."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        parse(["--help"])
    return set(re.findall(r"--[a-z][a-z-]*", printed.getvalue()))


def _check_flags(argv: Sequence[str], known: set[str]) -> None:
    for word in argv:
        flag = word.partition("=")[0]
        if re.match(r"--?[a-zA-Z]", word) and flag.replace("_", "-") not in known:
            # Compared without their dashes, which would make all flags look alike.
            offer = nearest(flag.lstrip("-"), [name.removeprefix("--") for name in known], prefix="--")
            raise UsageError(f"unknown option {flag!r}{offer}")


SENTENCES = {
    r"Missing from [^:]*: (\w+) (.*?)\.? \(required\).*": r"\1 is missing (\2); see auxrnn {command} --help",
    r"Missing value for argument '(.*)'\. .*": r"\1 needs a value; see auxrnn {command} --help",
    r"invalid choice ('.*') for argument '(.*)'\. Expected one of \((.*)\)\.": r"\2 is \1; it takes one of \3",
    r"Error parsing (--\S+): (?:invalid literal for int|no type matching \{None\}.INT)[^']*('.*?').*": (
        r"\1 is \2; it takes a whole number"
    ),
    r"Error parsing (--\S+): (?:could not convert string to float|no type matching \{None\}.FLOAT)[^']*('.*?').*": (
        r"\1 is \2; it takes a number"
    ),
    r"Error parsing (--\S+): no type matching INT.\{full,auto\}[^']*('.*?').*": (
        r"\1 is \2; it takes a whole number of steps, full, or auto"
    ),
    r"Error parsing (--\S+): no type matching INT.\{auto\}[^']*('.*?').*": (
        r"\1 is \2; it takes a whole number, or auto"
    ),
    r"Error parsing (--\S+): no type matching FLOAT.\{auto\}[^']*('.*?').*": r"\1 is \2; it takes a number, or auto",
    r"Error parsing [\w.]+: (.*)": r"\1",
    r"Unrecognized options: ([^,]*).*": r"unexpected word '\1'; see auxrnn {command} --help",
}
"""What tyro says, as a pattern, and how it is said here."""


def _one_sentence(text: str, command: str) -> str:
    """Say what tyro says in several framed lines: a title, a rule, the message, perhaps another rule and hints."""
    parts = [" ".join(part.split()) for part in re.split(r"^ *-{3,} *$", text, flags=re.MULTILINE)]
    message = parts[1] if len(parts) > 1 else parts[0]
    for pattern, sentence in SENTENCES.items():
        if match := re.fullmatch(pattern, message):
            said = match.expand(sentence.format(command=command))
            return re.sub(r"(?<= is missing \()[A-Z]", lambda letter: letter[0].lower(), said)
    return f"{message.rstrip('.')}; see auxrnn {command} --help"
