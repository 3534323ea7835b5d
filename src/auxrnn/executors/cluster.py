"""Tasks on a Dask cluster: the client's side. What a task needs goes to a worker; its record and its run come back."""

import asyncio
import json
import logging
import math
import socket
import uuid
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import distributed
from distributed import Client, KilledWorker
from distributed.security import Security

from auxrnn import saved
from auxrnn.errors import RunError, UsageError
from auxrnn.executors import remote
from auxrnn.executors.parcels import find_own_files, pack, unpack
from auxrnn.executors.tasks import Ending, Task
from auxrnn.files import MISREAD, write_aside
from auxrnn.report.records import read_events

LARGEST_SENT = 50_000_000
"""Bytes of a file of data; a larger one must be at hand on each worker."""
SECONDS_TO_CONNECT = 10
SAME = "install the same version of everything on all machines"
logger = logging.getLogger(__name__)


class ClusterExecutor:
    """Does tasks on the workers of a cluster; leaving its block stops those that are not done."""

    def __init__(self, folder: Path, scheduler: str) -> None:
        self.capacity = self.free = math.inf
        self.folder, self.address = folder.absolute(), _find_address(scheduler)
        mark, versions = f".cluster-{uuid.uuid4().hex}", remote.find_versions()
        self.origin = remote.Origin(socket.gethostname(), self.folder, mark, versions)
        self.client = _connect(self.address)
        self._theirs: dict[str, Future[remote.Delivery]] = {}
        """By name: what Dask's own executor returns, until that has come."""
        self._ours: dict[str, Future[Ending]] = {}
        self._stopped: set[str] = set()
        self._events: dict[str, list[dict[str, Any]]] = {}
        self._handed: dict[Path, distributed.Future] = {}
        self._received: list[str] = []

    def __enter__(self) -> Self:
        try:
            _check_versions(self.client, self.origin.versions)
        except RunError:
            self.__exit__()
            raise
        write_aside(self.folder / self.origin.mark, "Machines that see this file share the disk.\n")
        self.client.subscribe_topic(self.origin.mark, self._hear)
        num_workers = len(self.client.scheduler_info(n_workers=-1)["workers"])
        told = f"{num_workers} workers" if num_workers else "no workers yet: runs begin when it has some"
        logger.info("%s: %s; dashboard: %s", self.address, told, self.client.dashboard_link)
        return self

    def __exit__(self, *_error: object) -> None:
        (self.folder / self.origin.mark).unlink(missing_ok=True)
        for name in list(self._theirs):
            self.stop(name)
        if self.client.status == "running":
            with suppress(OSError):
                self.client.run(remote.forget, self.origin, self._received, on_error="ignore")
        self.client.close(timeout=SECONDS_TO_CONNECT)

    def submit(self, task: Task, *, needs: Callable[[], int] = lambda: 0) -> Future[Ending]:
        """Send a task, with small files of data, its pretraining and what is done of it here already."""
        key = f"{task.name}-{uuid.uuid4().hex[:8]}"
        sent = {
            name: self._hand_over(path)
            for name, path in find_own_files(task.config).items()
            if path.is_file() and path.stat().st_size <= LARGEST_SENT
        }
        begun = [name for name in (task.after, task.name) if name and (self.folder / name / saved.CONFIG).exists()]
        others = {name: self._hand_over(self.folder / name) for name in begun}
        pool = self.client.get_executor(pure=False, resources=self._find_resources(task, needs))
        theirs = pool.submit(remote.perform_order, key, self.origin, task, sent, others, key=key)
        ours, self._theirs[task.name] = Future[Ending](), theirs
        self._ours[task.name] = ours
        theirs.add_done_callback(partial(self._receive, task, ours))
        return ours

    def _hand_over(self, path: Path) -> distributed.Future:
        """Return the future of a file, or of a run; it is sent once, and again where the worker that has it dies."""
        if path not in self._handed:
            files = pack(path, has_checkpoint=True) if path.is_dir() else {path.name: path.read_bytes()}
            key = f"hand-over-{path.name}-{uuid.uuid4().hex[:8]}"
            self._handed[path] = self.client.submit(remote.hand_over, files, key=key, pure=False)
        return self._handed[path]

    def _find_resources(self, task: Task, needs: Callable[[], int]) -> dict[str, float]:
        """Return what a task takes of the resources that workers declare; what is too large goes to the largest."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        wanted: dict[str, Callable[[], int]] = {"memory": needs, "threads": lambda: task.config.threads or 1}
        declared = {name: [worker["resources"].get(name, 0) for worker in workers] for name in wanted}
        return {name: min(wanted[name](), max(found)) for name, found in declared.items() if any(found)}

    def read_events(self, name: str) -> list[dict[str, Any]]:
        """Return what was last heard of a run, or what lies here of it."""
        is_here = name not in self._events or saved.is_finished(self.folder / name)
        return read_events(self.folder / name) if is_here else self._events[name]

    def stop(self, name: str) -> None:
        """Let a task end after the update under way; its checkpoint stays where it is."""
        if (theirs := self._theirs.get(name)) is not None:
            self._stopped.add(name)
            theirs.cancel()

    def _hear(self, news: tuple[float, dict[str, Any]]) -> None:
        name = news[1]["name"]
        self._events[name] = news[1]["events"]
        if not self._ours[name].running() and not self._ours[name].done():
            self._ours[name].set_running_or_notify_cancel()

    def _receive(self, task: Task, ours: Future[Ending], theirs: Future[remote.Delivery]) -> None:
        """Unpack what has come back, and tell whoever waits for it."""
        del self._theirs[task.name]
        try:
            ending, files = self._find_delivery(task, theirs)
            if files:
                own = {name: str(path) for name, path in find_own_files(task.config).items()}
                unpack(files, self.folder / task.name, own)
                self._received.append(task.name)
            ours.set_result(ending)
        except RunError as error:
            ours.set_exception(error)

    def _find_delivery(self, task: Task, theirs: Future[remote.Delivery]) -> remote.Delivery:
        """Return what has come back; if that is an error, the task has failed, unless the whole cluster is lost."""
        try:
            return theirs.result()
        except CancelledError as error:
            if task.name not in self._stopped:
                cure = "what came back is kept; start the cluster and this command again"
                raise RunError(f"the scheduler at {self.address} is gone; {cure}") from error
            failure = "stopped"
        except KilledWorker:
            failure = "several workers died while they did it; does it need more memory than they have?"
        except Exception as error:
            failure = f"{type(error).__name__} on its worker: {error}"
        return remote.Delivery(Ending(failure), {})


def _find_address(scheduler: str) -> str:
    """Return the address of a scheduler: as it is given, or read from a scheduler file."""
    if "://" in scheduler:
        return scheduler
    path, cure = (
        Path(scheduler),
        "give the address of a Dask scheduler, tcp://HOST:8786, or the scheduler file it wrote",
    )
    try:
        return str(json.loads(path.read_text())["address"])
    except (OSError, *MISREAD) as error:
        raise UsageError(
            f"--cluster is {scheduler}, which is neither an address nor a scheduler file; {cure}"
        ) from error


def _connect(address: str) -> Client:
    """Return a client of a scheduler that answers within seconds."""
    # What goes wrong is said here, in a sentence; Dask would log every step of it.
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        kind = asyncio.run(asyncio.wait_for(_ask_kind(address), SECONDS_TO_CONNECT))
    except ValueError as error:
        raise UsageError(f"--cluster is {address}: {error}") from error
    except OSError as error:
        cure = "start `dask scheduler` there, or give another address"
        raise RunError(f"no Dask scheduler answers at {address} within {SECONDS_TO_CONNECT} seconds; {cure}") from error
    if kind != "Scheduler":
        raise UsageError(f"{address} is a {kind} of Dask; give the address of its scheduler")
    with warnings.catch_warnings():
        # Versions are compared below.
        warnings.simplefilter("ignore")
        return Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)


async def _ask_kind(address: str) -> str:
    """Return what answers at an address; a `Client` would wait for ever for a server that says nothing."""
    connection = Security().get_connection_args("client")
    async with distributed.rpc(address, connection_args=connection) as server:
        return str((await server.identity())["type"])


def _check_versions(client: Client, wanted: Mapping[str, str]) -> None:
    """Refuse a cluster whose machines would not do the same as this one."""
    found: dict[str, Any] = dict(client.run(remote.find_versions, on_error="return"))
    try:
        found["the scheduler"] = client.run_on_scheduler(remote.find_versions)
    except Exception as error:
        found["the scheduler"] = error
    for machine, versions in found.items():
        if isinstance(versions, Exception):
            raise RunError(f"{machine} cannot run auxrnn ({versions}); {SAME}")
        if different := remote.compare_versions(wanted, versions):
            raise RunError(f"{machine} has {different}; {SAME}")
