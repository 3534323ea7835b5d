"""Another process that keeps one core busy, as a neighbor on the machine would."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# It says when it starts to spin, and ends by itself should its parent be killed too suddenly to end it.
SPIN = """
import os, sys
parent = int(sys.argv[1])
print("spinning", flush=True)
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def busy_core() -> Iterator[int]:
    """Keep one core busy, and give the number of the process that does; it is gone afterwards, whatever happens."""
    command = [sys.executable, "-c", SPIN, str(os.getpid())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own words
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.communicate()
