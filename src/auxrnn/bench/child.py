"""Processes of our own modules: memory that others left behind does not count, and malloc can be told what to do."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from auxrnn.bench.timing import Call
from auxrnn.errors import RunError


def run_child(module: str, words: Sequence[object], *, environment: Mapping[str, str], doing: str) -> Any:
    """Run a module with these words, and give the JSON that it prints."""
    command = [sys.executable, "-m", module, *map(str, words)]
    variables = os.environ | dict(environment)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)  # noqa: S603 - our own module
    if done.returncode != 0:
        raise RunError(f"{_describe_failure(done.returncode, done.stderr)} while {doing}")
    return json.loads(done.stdout)


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
