"""The neighbor is busy while it is wanted, and gone whatever happens."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from auxrnn.bench.busy import busy_core

SECONDS_TO_END = 10
PARENT = """
import time
from auxrnn.bench.busy import busy_core
with busy_core() as number:
    print(number, flush=True)
    time.sleep(99)
"""


def is_alive(number):
    return Path(f"/proc/{number}").exists()


def busy_ticks(number):
    """Give the processor time that a process has used, in the system's ticks."""
    return int(Path(f"/proc/{number}/stat").read_text().split()[13])


def test_the_neighbor_spins_and_is_gone_afterwards():
    with busy_core() as number:
        deadline = time.monotonic() + SECONDS_TO_END
        before = busy_ticks(number)
        while busy_ticks(number) < before + 5:
            assert time.monotonic() < deadline, "it does not spin"
            time.sleep(0.01)
    assert not is_alive(number)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_neighbor_is_gone_after_a_failure_or_ctrl_c(error):
    with pytest.raises(error), busy_core() as number:
        raise error
    assert not is_alive(number)


def test_the_neighbor_ends_by_itself_when_its_parent_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        number = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
    deadline = time.monotonic() + SECONDS_TO_END
    while is_alive(number) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(number)
