"""Feed changed and made-up inputs to every reader, estimator, config, flag, stream and weight file, in this process.

A failure is an exception other than the project's own `UsageError` and `RunError` (on the command line: a traceback),
more than ten seconds, an answer that is not finite, or a message that is longer than one line, holds control characters
or goes on and on. Memory is limited, so that an allocation beyond reason fails instead of filling the machine. Each
target runs in a child process: a crash is one failure more. Failing inputs are kept, one for each kind of exception and
line of the library; the same seed draws the same inputs.
"""

import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import torch

from auxrnn.errors import RunError, UsageError
from auxrnn.files import CACHE_DIR_VARIABLE
from stress.command_targets import command_targets
from stress.estimator_targets import estimator_targets
from stress.progress import Report
from stress.reader_targets import reader_targets
from stress.targets import MistakeError, Target, Targets, check_sentence

COUNT = 1_000_000
MOST_SECONDS, MOST_ELAPSED, SECONDS_TO_KILL = 10.0, 30.0, 90.0
"""Of processor time, since the machine may be busy; of elapsed time, for what waits; and where no signal helps."""
MEMORY = 6 * 2**30
"""Bytes that may be allocated beyond what the imports take."""


class Hang(BaseException):
    """An input that takes too long; no `except Exception` stops it."""


class Counts:
    """What a child tells its parent while it works."""

    def __init__(self) -> None:
        self.done: Synchronized[int] = multiprocessing.Value("q", 0)
        self.accepted: Synchronized[int] = multiprocessing.Value("q", 0)
        self.failures: Synchronized[int] = multiprocessing.Value("q", 0)


def main(*, count: int | None = None, minutes: float | None = None, seed: int = 0, only: str = "") -> int:
    """Feed so many inputs in all, or for so many minutes, to all targets or `only` some (names with commas between).

    Returns how many kinds of failure there were.
    """
    total = count or COUNT
    report = Report("fuzz", total=total, seed=seed)
    with _targets_in_memory() as found:
        targets = {name: target for name, target in found.items() if not only or name in only.split(",")}
        shares, done, deadline = sum(target.share for target in targets.values()), 0, None
        for name, target in targets.items():
            if minutes is not None:
                deadline = time.monotonic() + 60 * minutes / len(targets)
            number = -(-total * target.share // shares)
            done += _run_target(name, target, number, report, deadline=deadline, before=done)
    what = f"{done:,} fuzzed inputs to {len(targets)} kinds of readers, configs, flags, streams and weight files"
    return report.end(what, f"{report.num_failures} failures")


def repeat(name: str, path: str) -> None:
    """Use an input that was kept once more, and let whatever happens happen."""
    content = Path(path).read_bytes()
    with _targets_in_memory() as targets:
        targets[name].use(content)


@contextmanager
def _targets_in_memory() -> Iterator[Targets]:
    """Yield all targets, with a folder and a cache in memory where that can be: fsync would take most of the time."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a new folder in it
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        os.environ[CACHE_DIR_VARIABLE] = f"{folder}/cache"
        yield {**reader_targets(Path(folder)), **estimator_targets(), **command_targets(Path(folder))}


def _run_target(name: str, target: Target, total: int, report: Report, *, deadline: float | None, before: int) -> int:
    """Give a target its inputs in a child process, and in another one if that dies; return how many it was given."""
    counts, start = Counts(), time.monotonic()
    while counts.done.value < total and (deadline is None or time.monotonic() < deadline):
        arguments = (name, target, total, report, counts, deadline)
        child = multiprocessing.get_context("fork").Process(target=_feed, args=arguments)
        child.start()
        last, moved = counts.done.value, time.monotonic()
        while child.is_alive():
            child.join(1.0)
            report.num_failures += _take(counts.failures)
            report.show(before + counts.done.value)
            if counts.done.value != last:
                last, moved = counts.done.value, time.monotonic()
            elif time.monotonic() - moved > SECONDS_TO_KILL:
                child.kill()
        report.num_failures += _take(counts.failures)
        if child.exitcode:
            content = target.make(_draw(report.seed, name, counts.done.value))
            what = f"the process ended with code {child.exitcode} (negative: a signal)"
            report.num_failures += _keep(report, name, content, what, f"exit-{child.exitcode}", index=counts.done.value)
            counts.done.value += 1
    done, seconds = counts.done.value, time.monotonic() - start
    read = f"{100 * counts.accepted.value / max(1, done):.0f} % accepted"
    sys.stderr.write(f"{name}: {done:,} inputs, {read}, {1000 * seconds / max(1, done):.2f} ms each\n")
    return done


def _take(value: "Synchronized[int]") -> int:
    with value.get_lock():
        taken, value.value = value.value, 0
    return taken


def _draw(seed: int, name: str, index: int) -> Random:
    return Random(f"{seed}/{name}/{index}")  # noqa: S311 - must be repeatable


def _feed(name: str, target: Target, total: int, report: Report, counts: Counts, deadline: float | None) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    _limit_memory()
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, _raise_hang)
    while counts.done.value < total and (deadline is None or time.monotonic() < deadline):
        content = target.make(_draw(report.seed, name, counts.done.value))
        failure = _use(target, content)
        if isinstance(failure, bool):
            counts.accepted.value += failure
        elif _keep(report, name, content, *_describe(failure), index=counts.done.value):
            counts.failures.value += 1
        counts.done.value += 1


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _raise_hang(_signum: int, _frame: Any) -> NoReturn:
    raise Hang(f"it takes more than {MOST_SECONDS:.0f} seconds")


def _use(target: Target, content: bytes) -> bool | BaseException:
    """Return whether an input was accepted or refused in one sentence, or what else happened."""
    _set_timers(MOST_SECONDS, MOST_ELAPSED)
    try:
        try:
            target.use(content)
        except (RunError, UsageError) as error:
            check_sentence(str(error))
            return False
    except BaseException as failure:
        return failure
    finally:
        _set_timers(0, 0)
    return True


def _set_timers(seconds: float, elapsed: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, elapsed)


def _describe(failure: BaseException) -> tuple[str, str]:
    """Return a failure in words, and what all failures of its kind share: its type, and the line of the library."""
    frames = [frame for frame in traceback.extract_tb(failure.__traceback__) if "/src/auxrnn/" in frame.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "no line of the library"
    kind = f"{type(failure).__name__}-{place}"
    if isinstance(failure, MistakeError):
        kind = re.sub("[^a-z]+", "-", str(failure).partition(":")[0])
    return f"{type(failure).__name__} at {place}: {str(failure)[:300]!r}", kind


def _keep(report: Report, name: str, content: bytes, what: str, kind: str, *, index: int) -> bool:
    """Keep a failing input and print its line, unless there is one of its kind already."""
    path = report.folder / f"{name}-{kind}"
    if path.exists():
        return False
    path.write_bytes(content)
    sys.stdout.write(f"FAILED fuzz --seed {report.seed}: {name}, input {index}: {what}; see {path}\n")
    sys.stdout.flush()
    return True
