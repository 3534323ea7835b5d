"""Runs tasks as `auxrnn` commands on an executor, as many at a time as workers and memory allow, and shows progress.

The executor is any that implements the standard library's interface: on one machine, threads that each wait for one
process. A job that has a record is never repeated, and an interrupted one resumes from its last checkpoint. Several
processes, or machines with a common disk, may share the folders: whoever holds the lock of a run trains it.
"""

import json
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from rich.console import Console

from auxrnn import runs, saved
from auxrnn.config import flatten, to_data_flags, to_flags
from auxrnn.environment import describe_environment
from auxrnn.experiments.jobs import Folders, Task
from auxrnn.experiments.scales import NOTHING
from auxrnn.files import is_locked
from auxrnn.progress import describe_seconds, make_bars
from auxrnn.report.records import RunRecord, read_events, record_training, write_record

POLL_SECONDS = 0.2
STOP = threading.Event()
"""Set when all processes are to end; a training then writes its checkpoint first."""


def run_command(words: Sequence[str], *, log: Path, out: Path | None) -> int:
    """Run `auxrnn WORDS` in a process and return its exit code; `log` gets what it says, `out` its result if given."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as said, log.open("ab") if out is None else out.open("wb") as result:
        command = [sys.executable, "-m", "auxrnn", *words]
        with subprocess.Popen(command, stdout=result, stderr=said) as process:  # noqa: S603 - our own command
            while process.poll() is None:
                if STOP.wait(POLL_SECONDS):
                    process.terminate()
                    process.wait()
            return process.returncode


class Display:
    """Shows what is running, how many runs are done and the time left: a bar on a terminal, a line for each ending."""

    def __init__(
        self, tasks: Sequence[Task], folders: Folders, console: Console, *, seconds: Mapping[str, float] = NOTHING
    ) -> None:
        self.folders, self.console, self.bars = folders, console, make_bars(console)
        usual = fmean(seconds.values()) if seconds else 1.0
        self.left = {task.name: seconds.get(task.name, usual) for task in tasks}
        """Estimated seconds of the tasks that have not ended."""
        self.total, self.seconds_done, self.began = len(tasks), 0.0, time.monotonic()
        self.bar = self.bars.add_task("all runs", total=self.total, status="")

    def update(self, active: Sequence[Task]) -> None:
        """Show what is running."""
        told = [f"{task.name}  {_find_status(self.folders.runs / task.name)}" for task in active]
        self.bars.update(self.bar, completed=self.total - len(self.left), status=", ".join(told))

    def end(self, task: Task, reason: str | None = None) -> None:
        """Say how a task ended, with the reason if it failed, and how much time is left."""
        self.seconds_done += self.left.pop(task.name)
        result = _find_status(self.folders.runs / task.name) if reason is None else f"failed: {reason}"
        line = f"{self.total - len(self.left)}/{self.total} {task.name}  {result}".rstrip()
        if self.seconds_done and self.left:
            elapsed = time.monotonic() - self.began
            line += f"  ({describe_seconds(elapsed * sum(self.left.values()) / self.seconds_done)} left)"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def _find_status(run_folder: Path) -> str:
    """Return the newest score of a run; nothing of what is not a training."""
    events = read_events(run_folder)
    for name, words in (("test_accuracy", "test {:.1f} %"), ("auxiliary_loss", "auxiliary loss {:.4f}")):
        if values := [event[name] for event in events if name in event]:
            return f"{words.format(values[-1])} after {events[-1]['total_step']:,} updates"
    return ""


@dataclass
class Runner:
    """Works through tasks; `needs` gives the bytes of a task's process, and `free` is how many there are."""

    folders: Folders
    executor: Executor
    workers: int
    display: Display
    command: Callable[..., int] = run_command
    needs: Callable[[Task], int] = lambda _task: 0
    free: float = math.inf
    active: dict[Future[int], Task] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def run(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Run all tasks and return why some failed, by name; when interrupted, stop all processes before leaving."""
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with self.display.bars:
                self._work(list(tasks))
        finally:
            STOP.set()
            wait(self.active)
            STOP.clear()
            signal.signal(signal.SIGTERM, previous)
        return self.failures

    def _work(self, waiting: list[Task]) -> None:
        while waiting or self.active:
            waiting = [task for task in waiting if not self._take(task)]
            if self.active:
                done = wait(self.active, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED).done
                ended = [(self.active.pop(future), future.result()) for future in done]
                waiting += [task for task, code in ended if not self._end(task, code)]
            elif waiting:
                # Other processes are training all that is left.
                time.sleep(POLL_SECONDS)
            self.display.update(list(self.active.values()))

    def _take(self, task: Task) -> bool:
        """Start a task if possible; return whether it is off the waiting list: started, done or failed."""
        folder = self.folders.runs / task.name
        if (task.is_job and self.folders.is_done(task.name)) or (task.kind == "train" and saved.is_finished(folder)):
            return self._close(task)
        if task.after is not None and not saved.is_finished(self.folders.runs / task.after):
            return task.after in self.failures and self._close(task, f"its pretraining {task.after} is missing")
        if len(self.active) >= self.workers or not self._may_share(task) or self._is_elsewhere(task):
            return False
        self.folders.runs.mkdir(parents=True, exist_ok=True)
        future = self.executor.submit(self.command, self._find_words(task), log=self._log(task), out=self._out(task))
        self.active[future] = task
        return True

    def _may_share(self, task: Task) -> bool:
        """Return whether a task may run beside the active ones: no time is measured, and memory holds all of them.

        A training that does not fit alone is started nevertheless: it refuses by itself, and says what would fit.
        """
        together = [task, *self.active.values()]
        if not self.active or any(one.kind == "cost" for one in together):
            return not self.active
        return math.isinf(self.free) or sum(map(self.needs, together)) <= self.free

    def _find_words(self, task: Task) -> list[str]:
        folder = self.folders.runs / task.name
        if task.kind == "data":
            return ["data", "check", *to_data_flags(task.config), "--json"]
        if task.kind == "cost":
            return ["cost", *to_flags(task.config), "--json"]
        if (folder / saved.CONFIG).exists():
            return ["resume", str(folder)]
        runs.remove_half_made(folder)
        adopted = [] if task.after is None else ["--pretrained", str(self.folders.runs / task.after)]
        # How long it takes was announced for all tasks together.
        return ["train", *to_flags(task.config), "--endless", "--out", str(folder), *adopted]

    def _end(self, task: Task, code: int) -> bool:
        """Close a task whose process has ended; return False if another process has begun it meanwhile."""
        if code == 0:
            return self._close(task)
        if task.kind == "train" and self._is_elsewhere(task):
            return False
        last = self._log(task).read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        return self._close(task, last[0].removeprefix("auxrnn: "))

    def _is_elsewhere(self, task: Task) -> bool:
        folder = self.folders.runs / task.name
        return folder.exists() and is_locked(folder)

    def _close(self, task: Task, failure: str | None = None) -> bool:
        """Record a task that has ended; always True, since it need not wait any longer."""
        if failure is not None:
            self.failures[task.name] = failure
        elif task.is_job and not self.folders.is_done(task.name):
            write_record(self._make_record(task), self.folders.records)
        self.display.end(task, failure)
        return True

    def _make_record(self, task: Task) -> RunRecord:
        out = self._out(task)
        if out is None:
            return record_training(task.name, self.folders.runs / task.name)
        scores, environment = json.loads(out.read_text()), describe_environment(runs.settle(task.config))
        return RunRecord(task.name, flatten(task.config), scores, 0.0, curve=[], facts={}, environment=environment)

    def _log(self, task: Task) -> Path:
        return self.folders.runs / f"{task.name}.log"

    def _out(self, task: Task) -> Path | None:
        return None if task.kind == "train" else self.folders.runs / f"{task.name}.result.json"
