"""The command line: parses, calls, prints. Results on stdout, progress on stderr; exit codes 0, 1, 2 and 130."""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from cyclopts import CycloptsError

from auxrnn.cli import data, machine, paper, training, using
from auxrnn.cli.commands import app, describe_mistake, say
from auxrnn.cli.layers import make_help
from auxrnn.config import name_fields
from auxrnn.errors import RunError, UsageError
from auxrnn.heap import keep_freed_memory, restart_with_large_pages

__all__ = ["app", "data", "machine", "main", "paper", "run", "training", "using"]


def main() -> None:
    """Run one command and end the process with its code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    keep_freed_memory()
    if sys.argv[1:2] == ["bench"]:
        restart_with_large_pages()
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code; mistakes and failures become one sentence on stderr."""
    words = list(argv) if argv and argv[0] != "help" else ["--help"]
    try:
        code = _parse(words)()
        return (code or 0) if argv else 2
    except UsageError as error:
        say(f"auxrnn: {name_fields(str(error), like='--{}')}")
        return 2
    except BrokenPipeError:
        # Whoever read the results has seen enough; nothing may be left to write at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = error.filename or "a file"
        say(f"auxrnn: {where} cannot be read or written ({error.strerror}); check the disk and permissions")
        return 1
    except (RunError, MemoryError) as error:
        say(f"auxrnn: {str(error) or 'out of memory; use a smaller batch or window'}")
        return 1
    except KeyboardInterrupt:
        say("auxrnn: stopped")
        return 130


def _parse(words: Sequence[str]) -> Callable[[], int | None]:
    try:
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
        if command == app.help_print:
            app.help_formatter = make_help(words)
    except CycloptsError as error:
        raise UsageError(describe_mistake(error)) from error
    except ValueError as error:
        # A config refuses values that it cannot be made of.
        raise UsageError(str(error)) from error
    return partial(command, *bound.args, **bound.kwargs)
