"""Commands in processes of their own: what they leave, and that none goes on without the process that started it."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from auxrnn import saved
from auxrnn.config import unflatten
from auxrnn.executors.local import LocalExecutor
from auxrnn.executors.tasks import Task
from auxrnn.executors.tethered import run_command
from auxrnn.files import is_locked
from auxrnn.report.records import read_events

PARENT = """
from pathlib import Path
from auxrnn.executors.tethered import run_command
words = "train digits --recipe paper --image-size 4 --batch-size 8 --threads 1 --objective none".split()
run_command([*words, "--train-steps", "1000000", "--out", "run"], log=Path("run.log"), out=None)
"""
LONGEST_WAIT = 60.0


def wait_until(is_so):
    """Wait for something that happens soon."""
    end = time.monotonic() + LONGEST_WAIT
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def make_endless(name="endless"):
    values = {"data": "digits", "objective": "none", "train_steps": 1_000_000, "image_size": 4, "batch_size": 8}
    return Task(name, unflatten(values | {"threads": 1}))


def test_a_training_ends_when_the_process_that_started_it_is_killed(tmp_path):
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=tmp_path) as parent:
        wait_until(lambda: read_events(tmp_path / "run"))
        (child,) = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
    assert parent.returncode == -signal.SIGKILL
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    wait_until(lambda: not is_locked(tmp_path / "run"))
    assert not saved.is_finished(tmp_path / "run")


def test_a_command_leaves_its_last_words_and_its_result(tmp_path):
    log, out = tmp_path / "runs" / "job.log", tmp_path / "runs" / "job.json"
    assert run_command(["train"], log=log, out=None) == 2
    assert "DATA" in log.read_text()
    assert run_command(["info", "--json"], log=log, out=out) == 0
    assert out.read_text().startswith("{")


@pytest.mark.parametrize("how", ["by name", "with the block"])
def test_a_training_that_is_stopped_keeps_a_checkpoint_and_says_so(tmp_path, how):
    with LocalExecutor(tmp_path, workers=1) as executor:
        future = executor.submit(make_endless())
        wait_until(lambda: executor.read_events("endless"))
        if how == "by name":
            executor.stop("endless")
            assert future.result(timeout=LONGEST_WAIT).failure.startswith("stopped; `auxrnn resume")
    assert future.result(timeout=0).failure.startswith("stopped; `auxrnn resume")
    assert list((tmp_path / "endless" / "checkpoints").glob("*.safetensors"))
    assert not is_locked(tmp_path / "endless")
