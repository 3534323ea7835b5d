"""Processes of our own modules: memory that others left behind does not count, and malloc can be told what to do."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from auxrnn.bench.timing import Call
from auxrnn.errors import RunError

SECONDS_BETWEEN_LOOKS = 0.02
"""Memory that is held for less than this may go unseen."""


def run_child(module: str, words: Sequence[object], *, environment: Mapping[str, str], doing: str) -> Any:
    """Run a module with these words, and give the JSON that it prints."""
    command = [sys.executable, "-m", module, *map(str, words)]
    variables = os.environ | dict(environment)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)  # noqa: S603 - our own module
    if done.returncode != 0:
        raise RunError(f"{_describe_failure(done.returncode, done.stderr)} while {doing}")
    return json.loads(done.stdout)


class Watched(NamedTuple):
    """What a process printed, when it was started (`time.monotonic`), and how much memory it had of its own, when."""

    answer: Any
    started: float
    looks: list[tuple[float, int]]

    def peak_bytes(self, *, until: float) -> int:
        """Give the most memory that was seen before a moment."""
        return max((num_bytes for moment, num_bytes in self.looks if moment <= until), default=0)


def watch_child(module: str, words: Sequence[object], *, environment: Mapping[str, str], doing: str) -> Watched:
    """Run a module with these words as `run_child` does, and look at its memory all the time (Linux).

    Only anonymous memory counts: pages of a mapped file belong to the file, and the system takes them back at will.
    """
    command = [sys.executable, "-m", module, *map(str, words)]
    variables = os.environ | dict(environment)
    looks = []
    with tempfile.TemporaryFile("w+") as errors:
        started = time.monotonic()
        process = subprocess.Popen(command, text=True, env=variables, stdout=subprocess.PIPE, stderr=errors)  # noqa: S603 - our own module
        try:
            while process.poll() is None:
                looks.append((time.monotonic(), anonymous_bytes(process.pid)))
                time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            process.kill()
            output, _ = process.communicate()
        if process.returncode != 0:
            errors.seek(0)
            raise RunError(f"{_describe_failure(process.returncode, errors.read())} while {doing}")
    return Watched(json.loads(output), started, looks)


def anonymous_bytes(pid: int) -> int:
    """Give the resident memory of a process that belongs to no file; 0 for one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


@contextmanager
def waiting_child(
    module: str, words: Sequence[object], *, environment: Mapping[str, str], doing: str
) -> Iterator[Call]:
    """Start a module that does something for each line it gets, and give a call that makes it do so and waits."""
    command = [sys.executable, "-m", module, *map(str, words)]
    variables = os.environ | dict(environment)
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own module
            command, text=True, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )

        def call() -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write("\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if not answer:
                process.wait()
                errors.seek(0)
                raise RunError(f"{_describe_failure(process.returncode, errors.read())} while {doing}")

        try:
            yield call
        finally:
            process.kill()
            process.communicate()


def _describe_failure(code: int, text: str) -> str:
    if code == -signal.SIGKILL:
        return "the system killed a process, most likely for want of memory,"
    last = text.strip().splitlines()[-1:] or ["it said nothing"]
    return f"a process failed ({last[0]})"
