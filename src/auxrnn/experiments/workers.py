"""Does the jobs of experiments, several at a time, each in a process of its own with the command a user would type.

A job with a record is done and never repeated. One that was interrupted goes on from its last checkpoint. Several
processes, or machines with a common disk, may work on the same folders: whoever holds the lock of a run trains it.
"""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from auxrnn import runs
from auxrnn.errors import RunError
from auxrnn.experiments import processes
from auxrnn.experiments.jobs import Folders, Task
from auxrnn.experiments.processes import Running, Start
from auxrnn.files import describe_bytes
from auxrnn.plain_config import flatten, to_data_flags, to_flags
from auxrnn.report.run_records import RunRecord, record_training, strip_environment, strip_settings, write_record

POLL_SECONDS = 0.3
PROCESS_BYTES = 500_000_000
"""What a process holds beside its training step: torch itself, and the data."""


class Failure(NamedTuple):
    """A task that ended badly or never began, and why."""

    name: str
    reason: str


class Watch(Protocol):
    """Whoever shows what is going on."""

    def started(self, task: Task) -> None:
        """Show that a task begins, or goes on."""

    def looked(self, active: Sequence[Task]) -> None:
        """Show how far the active tasks are."""

    def ended(self, task: Task, failure: Failure | None) -> None:
        """Show that a task is done, or why it is not."""

    def left(self, task: Task) -> None:
        """Show that a task waits again, since somebody else does it."""


class Crew:
    """Works through tasks: `workers` at a time, and never more than fit into the memory that is free."""

    def __init__(
        self,
        folders: Folders,
        *,
        workers: int,
        needs: Callable[[Task], int],
        free: int | None,
        watch: Watch,
        start: Start = processes.start,
    ) -> None:
        self.folders = folders
        self.workers = workers
        self.needs = needs
        """Bytes of a task's training step."""
        self.free = free
        self.watch = watch
        self.start = start
        self.active: dict[str, Task] = {}
        self.processes: dict[str, Running] = {}
        self.failures: list[Failure] = []
        self.returned: list[Task] = []
        """Begun by somebody else at the same moment: they wait again until those are done."""

    def work(self, tasks: Sequence[Task]) -> list[Failure]:
        """Do all tasks and give those that failed; a failure does not keep the others from being done."""
        waiting = list(tasks)
        with processes.ending(self.processes):
            while waiting or self.active:
                still_waiting = [task for task in waiting if not self._take(task)]
                self._collect()
                self.watch.looked(list(self.active.values()))
                # Also where all that is left is being trained by other processes.
                is_idle, waiting = len(still_waiting) == len(waiting), still_waiting + self.returned
                self.returned = []
                if self.active or is_idle:
                    time.sleep(POLL_SECONDS)
        return self.failures

    def _take(self, task: Task) -> bool:
        """Start a task if it may start now; True if it need not wait any longer, for whatever reason."""
        if self._is_finished(task):
            self._finish(task)
            return True
        if task.after is not None and not runs.is_finished(self.folders.runs / task.after):
            if any(failure.name == task.after for failure in self.failures):
                self._fail(task, f"its pretraining {task.after} is missing")
                return True
            return False
        if len(self.active) >= self.workers or not self._may_share(task) or self._is_elsewhere(task):
            return False
        return self._start_if_it_fits(task)

    def _may_share(self, task: Task) -> bool:
        """Tell whether a task and the active ones leave each other in peace: nothing runs beside a measurement."""
        is_alone = task.kind == "cost" or any(other.kind == "cost" for other in self.active.values())
        return not (self.active and is_alone)

    def _is_elsewhere(self, task: Task) -> bool:
        folder = self.folders.runs / task.name
        return folder.exists() and runs.is_locked(folder)

    def _start_if_it_fits(self, task: Task) -> bool:
        if self.free is not None:
            needed = self._bytes(task)
            if needed + sum(self._bytes(other) for other in self.active.values()) > self.free:
                if self.active:
                    return False
                self._fail(
                    task, f"infeasible: it needs {describe_bytes(needed)}, and {describe_bytes(self.free)} are free"
                )
                return True
        self._start(task)
        return True

    def _bytes(self, task: Task) -> int:
        return PROCESS_BYTES + (0 if task.kind == "data" else self.needs(task))

    def _start(self, task: Task) -> None:
        folder, out = self.folders.runs / task.name, None
        if task.kind == "data":
            words, out = ["data", "check", *to_data_flags(task.config), "--json"], self._result(task)
        elif task.kind == "cost":
            words, out = ["cost", *to_flags(task.config), "--json"], self._result(task)
        elif (folder / "config.json").exists():
            words = ["resume", str(folder)]
        else:
            if runs.is_half_made(folder):
                shutil.rmtree(folder)
            words = ["train", *to_flags(task.config), "--out", str(folder)]
            words += [] if task.after is None else ["--pretrained", str(self.folders.runs / task.after)]
        self.folders.runs.mkdir(parents=True, exist_ok=True)
        self.processes[task.name] = self.start(words, log=self._log(task), out=out)
        self.active[task.name] = task
        self.watch.started(task)

    def _collect(self) -> None:
        """See which processes have ended, and how."""
        for name, process in list(self.processes.items()):
            if process.poll() is None:
                continue
            del self.processes[name]
            task = self.active.pop(name)
            if process.returncode == 0:
                self._finish(task)
            elif task.kind == "train" and self._is_elsewhere(task):
                self.returned.append(task)
                self.watch.left(task)
            else:
                self._fail(task, processes.last_words(self._log(task)))

    def _is_finished(self, task: Task) -> bool:
        """Tell whether somebody has done a task before or meanwhile."""
        if task.is_job and self.folders.record(task.name).exists():
            return True
        return task.kind == "train" and runs.is_finished(self.folders.runs / task.name)

    def _finish(self, task: Task) -> None:
        """Keep the record of a job that is done."""
        if task.is_job and not self.folders.record(task.name).exists():
            write_record(self._make_record(task), self.folders.records)
        self.watch.ended(task, None)

    def _make_record(self, task: Task) -> RunRecord:
        if task.kind == "train":
            return record_training(task.name, self.folders.runs / task.name)
        scores = json.loads(self._result(task).read_text())
        environment = runs.describe_environment(runs.settle(task.config))
        return RunRecord(
            name=task.name,
            settings=strip_settings(flatten(task.config)),
            scores=scores,
            seconds=0.0,
            curve=[],
            facts={},
            environment=strip_environment(environment),
        )

    def _fail(self, task: Task, reason: str) -> None:
        failure = Failure(task.name, reason)
        self.failures.append(failure)
        self.watch.ended(task, failure)

    def _log(self, task: Task) -> Path:
        return self.folders.runs / f"{task.name}.log"

    def _result(self, task: Task) -> Path:
        return self.folders.runs / f"{task.name}.result.json"


def describe_failures(failures: Sequence[Failure]) -> RunError:
    """Say in one sentence what could not be done."""
    first = failures[0]
    more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
    return RunError(f"{first.name} failed ({first.reason}){more}; the same command tries again what is missing")
