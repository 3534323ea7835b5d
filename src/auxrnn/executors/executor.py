"""What does tasks, and how it is opened. It stands on executors of the standard interface."""

import math
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, Self

from auxrnn.errors import UsageError
from auxrnn.executors.local import LocalExecutor
from auxrnn.executors.tasks import Ending, Task


class TaskExecutor(Protocol):
    """Does tasks somewhere. At the end of its `with` block it stops what is not done."""

    capacity: float
    """How many tasks it is given at a time."""
    free: float
    """Bytes that tasks which run together may need; infinite where the executor itself sees to it."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *error: object) -> None:
        """Stop what is not done."""

    def submit(self, task: Task, *, needs: Callable[[], int] = lambda: 0) -> Future[Ending]:
        """Let a task be done; what it is `after` must be finished in the folder. `needs` returns the bytes it takes."""

    def read_events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a training so far: all evaluations, and the newest of the others."""

    def stop(self, name: str) -> None:
        """Let a training that runs end after the update under way, with a checkpoint; its future then has a failure."""


def open_executor(folder: Path, *, workers: int, free: float = math.inf, cluster: str | None = None) -> TaskExecutor:
    """Return what does tasks; their run folders come to lie in `folder`.

    So many workers of this machine; or a Dask cluster, by the address of its scheduler or the file that has it.
    """
    if cluster is None:
        return LocalExecutor(folder, workers=workers, free=free)
    try:
        from auxrnn.executors.cluster import ClusterExecutor  # noqa: PLC0415 - needs an extra
    except ImportError as error:
        raise UsageError("--cluster needs Dask; pip install 'auxrnn[cluster]'") from error
    return ClusterExecutor(folder, cluster)
