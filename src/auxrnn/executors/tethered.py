"""Runs `auxrnn` commands in processes of their own that end when the process that started them does.

The standard input of such a process is a pipe whose other end its parent holds. However the parent ends, the pipe is
closed then. A training that ends so resumes from its last checkpoint.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

TETHERED = "AUXRNN_TETHERED"
"""Set in the environment of a process that ends with its parent."""
POLL_SECONDS = 0.2


def run_command(
    words: Sequence[str], *, log: Path, out: Path | None, should_stop: Callable[[], bool] = lambda: False
) -> int:
    """Run `auxrnn WORDS` in a process and return its exit code; `log` gets what it says, `out` its result if given.

    When it should stop, it is asked to; a training then writes a checkpoint first.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as said, log.open("ab") if out is None else out.open("wb") as result:
        command, environment = [sys.executable, "-m", "auxrnn", *words], os.environ | {TETHERED: "1"}
        with subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.PIPE, stdout=result, stderr=said, env=environment
        ) as process:
            while True:
                try:
                    return process.wait(timeout=POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    if should_stop():
                        process.terminate()
                        process.wait()


def end_with_parent() -> None:
    """Let this process end as soon as the one that started it has ended."""
    # Not inherited by processes that this one starts.
    del os.environ[TETHERED]
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    while os.read(sys.__stdin__.fileno() if sys.__stdin__ else 0, 1):
        pass
    # At once: whoever takes over may begin at any moment.
    os._exit(1)
