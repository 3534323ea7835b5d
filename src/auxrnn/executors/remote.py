"""What a Dask worker does: a task in a process of its own. What that needs, and the run that it leaves, travel with it.

Where a worker sees the client's folder of runs, it works there. Elsewhere it keeps runs in a folder of its own:
$AUXRNN_RUNS_DIR, or one in the user's cache.
"""

import importlib.metadata
import os
import platform
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from distributed import Status, Worker, get_worker

from auxrnn import saved
from auxrnn.config import change
from auxrnn.errors import RunError, UsageError
from auxrnn.executors.parcels import Files, find_here, find_own_files, pack, unpack
from auxrnn.executors.tasks import Ending, Task, make_record, perform
from auxrnn.files import digest, expand, is_locked, user_cache
from auxrnn.report.records import read_events

RUNS_DIR_VARIABLE = "AUXRNN_RUNS_DIR"
SECONDS_BETWEEN_NEWS = 1.0


class Origin(NamedTuple):
    """The client of a task."""

    host: str
    folder: Path
    """Its folder of runs."""
    mark: str
    """A file in that folder, by which a worker on the same disk knows it; also the topic of its news."""
    versions: dict[str, str]


class Delivery(NamedTuple):
    """How a task ended, and the run that it leaves; no files where the disk is shared."""

    ending: Ending
    files: Files


def find_versions() -> dict[str, str]:
    """Return the versions that must be the same everywhere."""
    packages = {name: importlib.metadata.version(name) for name in ("auxrnn", "torch", "distributed")}
    return packages | {"python": platform.python_version()}


def compare_versions(wanted: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Return what has another version; nothing where all is the same."""
    different = [name for name in wanted if found[name] != wanted[name]]
    return ", ".join(f"{name} {found[name]} instead of {wanted[name]}" for name in different)


def hand_over(files: Files) -> Files:
    """Return what it is given: as the result of a task it travels to each worker once, and outlives all of them."""
    return files


def find_folder(origin: Origin) -> Path:
    """Return where this worker keeps the runs of a client: in the client's own folder if that can be seen from here."""
    own = os.environ.get(RUNS_DIR_VARIABLE)
    if own is None and (origin.folder / origin.mark).exists():
        return origin.folder
    return expand(own or user_cache() / "runs") / digest(f"{origin.host}:{origin.folder}")[:16]


def forget(origin: Origin, names: Iterable[str]) -> None:
    """Remove runs that the client has by now from a folder of this worker's own."""
    folder = find_folder(origin)
    for name in names if folder != origin.folder else ():
        for left in folder.glob(f"{name}.*"):
            left.unlink(missing_ok=True)
        shutil.rmtree(folder / name, ignore_errors=True)


def perform_order(
    key: str, origin: Origin, task: Task, sent: Mapping[str, Files], others: Mapping[str, Files]
) -> Delivery:
    """Do a task on this worker; `sent` are files of data by setting, `others` runs by name that it continues."""
    folder, watch = find_folder(origin), Watch(get_worker(), key, origin, task)
    is_shared = folder == origin.folder
    try:
        if different := compare_versions(origin.versions, find_versions()):
            raise RunError(f"there is {different}; install the same everywhere")
        own = find_here(find_own_files(task.config), sent, folder, is_shared=is_shared)
        for name, files in () if is_shared else others.items():
            unpack(files, folder / name, own)
        ending = _perform(task._replace(config=change(task.config, **own)), folder, watch)
    except (RunError, UsageError) as error:
        ending = Ending(str(error))
    if ending.failure is not None:
        return Delivery(Ending(f"on worker {watch.worker.address}: {ending.failure}"), {})
    is_sent = task.kind == "train" and not is_shared
    # Who continues a pretraining needs its checkpoint.
    return Delivery(ending, pack(folder / task.name, has_checkpoint=not task.is_job) if is_sent else {})


def _perform(task: Task, folder: Path, watch: "Watch") -> Ending:
    """Do a task that is not done yet, as soon as no other process is training in its folder."""
    run_folder = watch.run_folder = folder / task.name
    while not watch():
        if task.kind == "train" and saved.is_finished(run_folder):
            return Ending(record=make_record(task, folder) if task.is_job else None)
        if not _is_elsewhere(run_folder):
            ending = perform(task, folder, should_stop=watch)
            if ending.failure is None or not _is_elsewhere(run_folder):
                return ending
        time.sleep(SECONDS_BETWEEN_NEWS)
    return Ending("stopped")


def _is_elsewhere(run_folder: Path) -> bool:
    return run_folder.exists() and is_locked(run_folder)


class Watch:
    """Asked several times a second whether to stop; tells the client what is new of the run meanwhile."""

    def __init__(self, worker: Worker, key: str, origin: Origin, task: Task) -> None:
        self.worker, self.key, self.topic, self.name = worker, key, origin.mark, task.name
        self.run_folder: Path | None = None
        self.told: list[dict[str, Any]] | None = None
        self.next_news = 0.0

    def __call__(self) -> bool:
        """Return whether nobody waits for the task any longer, or the worker ends."""
        if time.monotonic() >= self.next_news:
            self.next_news = time.monotonic() + SECONDS_BETWEEN_NEWS
            with suppress(RunError):
                self._tell()
        known = self.worker.state.tasks.get(self.key)
        is_wanted = known is not None and known.state in ("executing", "long-running")
        return not is_wanted or self.worker.status not in (Status.running, Status.paused)

    def _tell(self) -> None:
        events = [] if self.run_folder is None else read_events(self.run_folder)
        news = [event for event in events[:-1] if event["event"] == "evaluation"] + events[-1:]
        if news != self.told:
            self.told = news
            self.worker.log_event(self.topic, {"name": self.name, "events": news})
