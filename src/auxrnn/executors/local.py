"""Tasks on this machine: a pool of threads of the standard library, each of which waits for one process."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self

from auxrnn.executors.tasks import Ending, Task, perform
from auxrnn.executors.tethered import run_command
from auxrnn.report.records import read_events


class LocalExecutor:
    """Does tasks in a folder of runs, so many at a time; leaving its block stops those that are not done."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int,
        free: float = math.inf,
        command: Callable[..., int] = run_command,
        executor: Executor | None = None,
    ) -> None:
        self.folder, self.command = folder, command
        self.capacity: float = workers
        self.free = free
        self.executor = executor or ThreadPoolExecutor(workers)
        self._stops: dict[str, threading.Event] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for name in self._stops:
            self.stop(name)
        self.executor.shutdown(cancel_futures=True)

    def submit(self, task: Task, *, needs: Callable[[], int] = lambda: 0) -> Future[Ending]:  # noqa: ARG002 - see `free`
        """Start a task; what runs together must not need more than `free` bytes, which is the caller's to watch."""
        stop = self._stops[task.name] = threading.Event()
        work = partial(perform, command=self.command, should_stop=stop.is_set)
        return self.executor.submit(work, task, self.folder)

    def read_events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a run so far."""
        return read_events(self.folder / name)

    def stop(self, name: str) -> None:
        """Let a task end after the update under way."""
        self._stops[name].set()
