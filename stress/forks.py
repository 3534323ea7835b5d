"""Commands in forked processes, which begin with torch and auxrnn imported: a fresh one takes seconds to import them.

The parent never computes with torch, so that a child begins like a fresh process. What forks cannot show is a kill
while Python starts and imports; no file is written by then.
"""

import contextlib
import importlib
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn import cli
from auxrnn.files import CACHE_DIR_VARIABLE

SECONDS_TO_HANG = 120.0
STREAMS = (".out", ".err")
CRASHED = 70
"""Exit code of a child that ended in a traceback."""


class Ended(NamedTuple):
    """How a child ended."""

    code: int
    """Its exit code; negative: the signal that killed it."""
    out: str
    err: str
    seconds: float

    @property
    def sentence(self) -> str:
        """The last line on its error stream."""
        return (self.err.splitlines() or [""])[-1]

    @property
    def is_refused(self) -> bool:
        """Whether it ended with one sentence, as it does for mistakes and failures of a user."""
        return self.code in (1, 2) and self.sentence.startswith("auxrnn: ") and "Traceback" not in self.err


class Child(NamedTuple):
    """A process at work."""

    pid: int
    start: float
    said: Path
    """Its streams are in files of this name with .out and .err."""

    def wait(self, *, kill_after: float = SECONDS_TO_HANG) -> Ended:
        """Wait for its end, and kill it after so many seconds."""
        deadline = self.start + kill_after
        pid = 0
        while not pid:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if not pid and time.monotonic() >= deadline:
                os.kill(self.pid, signal.SIGKILL)
                pid, status = os.waitpid(self.pid, 0)
            elif not pid:
                time.sleep(min(0.002, max(0.0, deadline - time.monotonic())))
        seconds = time.monotonic() - self.start
        out, err = (self.said.with_suffix(suffix).read_text(errors="replace") for suffix in STREAMS)
        return Ended(os.waitstatus_to_exitcode(status), out, err, seconds)


def start(task: Callable[[], int], *, folder: Path, name: str = "said") -> Child:
    """Fork a process that does a task in a folder, with a cache of its own there."""
    folder.mkdir(parents=True, exist_ok=True)
    said = folder.parent / f"{folder.name}-{name}.out"
    for suffix in STREAMS:
        # Here, since a child may be killed before it could.
        said.with_suffix(suffix).write_bytes(b"")
    begin = time.monotonic()
    with warnings.catch_warnings():
        # Newer Pythons warn where a process with threads forks; children need none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if not pid:
        _be_child(task, folder, said)
    return Child(pid, begin, said)


def command(*words: str | Path) -> Callable[[], int]:
    """Return the task of a child that runs one command, as the program does."""

    def run() -> int:
        sys.argv = ["auxrnn", *map(str, words)]
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    return run


def import_all(tasks: Sequence[Callable[[], int]], folder: Path) -> None:
    """Import here what these tasks import, so that later children need not."""
    listed = folder / "modules.txt"
    for number, task in enumerate(tasks):

        def listing(task: Callable[[], int] = task) -> int:
            code = task()
            listed.write_text("\n".join(sys.modules))
            return code

        ended = start(listing, folder=folder / f"imports-{number}").wait()
        assert ended.code == 0, ended.err
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in listed.read_text().split():
                with contextlib.suppress(ImportError, ValueError):
                    importlib.import_module(name)


def _be_child(task: Callable[[], int], folder: Path, said: Path) -> None:
    code = CRASHED
    try:
        os.chdir(folder)
        os.environ[CACHE_DIR_VARIABLE] = str(folder / "cache")
        for stream, suffix in zip((sys.stdout, sys.stderr), STREAMS, strict=True):
            os.dup2(os.open(said.with_suffix(suffix), os.O_WRONLY), stream.fileno())
        code = task()
    except BaseException:
        # Whatever it is, the child must end here.
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
