"""The command line: one function per command; parses, calls, prints. Results on stdout, progress on stderr."""

import logging
import os
import sys
from collections.abc import Callable, Sequence

from auxrnn.cli.data import data
from auxrnn.cli.output import say
from auxrnn.cli.reproducing import report, reproduce
from auxrnn.cli.showing import bench, demo, info
from auxrnn.cli.systems import cost, models
from auxrnn.cli.training import parse_train, resume, train
from auxrnn.cli.using import evaluate_command, predict
from auxrnn.errors import RunError, UsageError, nearest
from auxrnn.heap import keep_freed_memory, restart_with_large_pages
from auxrnn.plain_config import name_fields

__all__ = ["COMMANDS", "main", "parse_train", "run"]

SUMMARY = """\
auxrnn classifies very long sequences with recurrent networks that learn to remember
through auxiliary losses (Trinh et al., 2018), with short back-propagation.

commands:
  demo        see it work: four networks side by side on handwritten digits (minutes)
  train       train a network on a dataset or your own files, into a run folder
  resume      continue a run that was stopped, to the same result
  evaluate    accuracy, confusion and recall of a finished run
  predict     classes and probabilities of new sequences
  models      every system that `train --model` takes: r-LSTM, p-LSTM and all they are compared with
  cost        weights, memory and time of a training before it begins, and what fits
  data        datasets to fetch, and what is in your own files: list, fetch, check, show
  reproduce   every table and figure of the paper, with our numbers beside its own
  report      one HTML page of all that was reproduced
  bench       speed of the LSTM on this machine beside torch's own
  info        versions, threads, device, which LSTM runs, where data is cached

examples:
  auxrnn demo
  auxrnn train mnist --config mnist14 --out runs/first
  auxrnn train mnist --model transformer --out runs/second
  auxrnn evaluate runs/first
  auxrnn predict runs/first digit.png
  auxrnn data check reviews.csv
  auxrnn train reviews.csv --out runs/reviews
  auxrnn reproduce table2 --scale smoke

`auxrnn COMMAND --help` explains each command and its options.
"""


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "demo": demo,
    "train": train,
    "resume": resume,
    "evaluate": evaluate_command,
    "predict": predict,
    "models": models,
    "cost": cost,
    "data": data,
    "reproduce": reproduce,
    "report": report,
    "bench": bench,
    "info": info,
}


def main() -> None:
    """Run one command and end the process with its code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    keep_freed_memory()
    if sys.argv[1:2] == ["bench"]:
        restart_with_large_pages()
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command and give its exit code; mistakes and failures become one sentence on stderr."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(SUMMARY, end="")
        return 0 if argv else 2
    try:
        if argv[0] not in COMMANDS:
            raise UsageError(f"unknown command {argv[0]!r}{nearest(argv[0], COMMANDS)}")
        return COMMANDS[argv[0]](argv[1:])
    except SystemExit:
        # Only a request for help ends so; what tyro refuses is a UsageError.
        return 0
    except UsageError as error:
        say(f"auxrnn: {name_fields(str(error), like='--{}')}")
        return 2
    except (RunError, OSError, MemoryError) as error:
        return _fail(error)
    except KeyboardInterrupt:
        say("auxrnn: stopped")
        return 130


def _fail(error: RunError | OSError | MemoryError) -> int:
    if isinstance(error, BrokenPipeError):
        # Whoever read the results has seen enough; let nothing be left to write at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    text = str(error) or "out of memory; use a smaller batch or window"
    if isinstance(error, OSError):
        what = error.filename or "a file"
        text = f"{what} cannot be read or written ({error.strerror}); check the disk and permissions"
    say(f"auxrnn: {text}")
    return 1
