"""Measurements in a process of their own: memory that others left behind does not count, and malloc can be set up."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from auxrnn.errors import RunError


def run_child(module: str, words: Sequence[object], *, environment: Mapping[str, str], doing: str) -> Any:
    """Run one of our modules with these words, and give the JSON that it prints."""
    command = [sys.executable, "-m", module, *map(str, words)]
    variables = os.environ | dict(environment)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)  # noqa: S603 - our own module
    if done.returncode != 0:
        raise RunError(f"{_describe_failure(done)} while {doing}")
    return json.loads(done.stdout)


def _describe_failure(done: "subprocess.CompletedProcess[str]") -> str:
    if done.returncode == -signal.SIGKILL:
        return "the system killed a process, most likely for want of memory,"
    last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
    return f"a process failed ({last[0]})"
