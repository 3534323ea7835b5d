"""A Dask scheduler and workers as real processes on loopback, each worker with folders of its own."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

LONGEST_WAIT = 300.0


def wait_until(is_so):
    """Wait for something that happens soon, and return it."""
    end = time.monotonic() + LONGEST_WAIT
    while not (value := is_so()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return value


def find_free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster(contextlib.ExitStack):
    """A scheduler, and workers of one process each; all are killed at the end of the block."""

    def __init__(self, folder, *, workers=2, options=(), shares_disk=False):
        super().__init__()
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.address = f"tcp://127.0.0.1:{find_free_port()}"
        self.scheduler_file = self.folder / "scheduler.json"
        self.num_workers, self.options, self.shares_disk = workers, options, shares_disk
        self.workers = []

    def __enter__(self):
        super().__enter__()
        address, port = self.address.removeprefix("tcp://").split(":")
        words = ["--host", address, "--port", port, "--no-dashboard", "--scheduler-file", self.scheduler_file]
        self.scheduler = self._start("scheduler", *words)
        # It listens by then.
        wait_until(self.scheduler_file.exists)
        self.workers = [self._start_worker(number) for number in range(self.num_workers)]
        return self

    def _start_worker(self, number):
        words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", f"worker-{number}"]
        words += ["--local-directory", self.folder / f"scratch-{number}", *self.options]
        own = {} if self.shares_disk else {"AUXRNN_RUNS_DIR": str(self.runs_of(number))}
        return self._start("worker", self.address, *words, **own)

    def runs_of(self, number):
        """Where a worker keeps its runs."""
        return self.folder / f"runs-{number}"

    def _start(self, kind, *words, **variables):
        log = self.enter_context((self.folder / f"{kind}-{len(self.workers)}.log").open("wb"))
        command = [str(Path(sys.executable).with_name("dask")), kind, *map(str, words)]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | variables, cwd=self.folder
        )
        self.callback(kill, process)
        return process


def kill(process):
    """End a process at once, whatever it is doing."""
    process.send_signal(signal.SIGKILL)
    process.wait(LONGEST_WAIT)


def trainings_of(process):
    """The trainings that a worker has started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [one for one in psutil.Process(process.pid).children() if {"train", "resume"} & {*one.cmdline()}]
    return []
