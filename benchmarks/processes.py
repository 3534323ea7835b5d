"""Processes of their own: with malloc told what to do, without memory that others left behind, or just busy."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import torch

from auxrnn.heap import TUNABLES

# It says when it starts to spin, and ends by itself if its parent is killed.
SPIN = """
import os, sys
print("spinning", flush=True)
while os.getppid() == int(sys.argv[1]):
    sum(range(1_000_000))
"""


@contextmanager
def own_process(**variables: str) -> Iterator[ProcessPoolExecutor]:
    """Yield a fresh process, started by its first task with these environment variables and as many threads as here.

    Large pages are off in it, since its memory is measured or kept between steps.
    """
    before = dict(os.environ)
    os.environ.update({TUNABLES: "", "OMP_NUM_THREADS": str(torch.get_num_threads())} | variables)
    context = get_context("spawn")
    try:
        with ProcessPoolExecutor(1, context, initializer=torch.set_flush_denormal, initargs=(True,)) as process:
            yield process
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def busy_core() -> Iterator[int]:
    """Keep one core busy as another program would, and yield the process id."""
    command = [sys.executable, "-c", SPIN, str(os.getpid())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.communicate()
