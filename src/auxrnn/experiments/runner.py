"""Runs tasks as `auxrnn` commands on an executor, as many at a time as workers and memory allow, and shows progress.

The executor is any that implements the standard library's interface: on one machine, threads that each wait for one
process. A job that has a record is never repeated, and an interrupted one resumes from its last checkpoint. Several
processes, or machines with a common disk, may share the folders: whoever holds the lock of a run trains it.
"""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, Protocol

from rich.console import Console
from rich.progress import TaskID

from auxrnn import runs
from auxrnn.config import flatten, to_data_flags, to_flags
from auxrnn.experiments.jobs import Folders, Task
from auxrnn.experiments.scales import NOTHING
from auxrnn.progress import SECONDS_BETWEEN_LINES, describe_seconds, make_bars
from auxrnn.report.records import read_events
from auxrnn.report.run_records import RunRecord, record_training, strip_environment, strip_settings, write_record

POLL_SECONDS = 0.2
STOP = threading.Event()
"""Set when all processes are to end; a training then writes its checkpoint first."""


class Command(Protocol):
    """A way to run `auxrnn WORDS` that returns the exit code."""

    def __call__(self, words: Sequence[str], *, log: Path, out: Path | None) -> int:
        """Append what the command says to `log`, and its result too unless `out` takes that."""


def run_command(words: Sequence[str], *, log: Path, out: Path | None) -> int:
    """Run `auxrnn WORDS` in a process of its own."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as said, log.open("ab") if out is None else out.open("wb") as result:
        command = [sys.executable, "-m", "auxrnn", *words]
        with subprocess.Popen(command, stdout=result, stderr=said) as process:  # noqa: S603 - our own command
            while process.poll() is None:
                if STOP.wait(POLL_SECONDS):
                    process.terminate()
                    process.wait()
            return process.returncode


class Failure(NamedTuple):
    """A task that failed or could not start, and why."""

    name: str
    reason: str


class Display:
    """Shows a bar for each active run on a terminal, a line for each finished one elsewhere, and the time left."""

    def __init__(
        self, tasks: Sequence[Task], folders: Folders, console: Console, *, seconds: Mapping[str, float] = NOTHING
    ) -> None:
        self.folders, self.console = folders, console
        usual = fmean(seconds.values()) if seconds else 1.0
        self.left = {task.name: seconds.get(task.name, usual) for task in tasks}
        """Estimated seconds of the tasks that have not ended."""
        self.total, self.seconds_done = len(tasks), 0.0
        self.began = self.last_line = time.monotonic()
        self.bars = make_bars(console)
        self.overall = self.bars.add_task("all runs", total=self.total, status="")
        self.shown: dict[str, TaskID] = {}

    def start(self, task: Task) -> None:
        """Add a bar for a task."""
        schedule = task.config.schedule
        total = (schedule.pretrain_steps or 0) + (schedule.train_steps or 0) or None
        self.shown[task.name] = self.bars.add_task(task.name[:40], total=total, status="starting")

    def update(self, active: Sequence[Task]) -> None:
        """Move the bars; without a terminal, say now and then what is running."""
        told = []
        for task in active:
            step, text = _find_status(self.folders.runs / task.name)
            self.bars.update(self.shown[task.name], completed=step, status=text)
            told.append(f"{task.name} at update {step:,}, {text}" if step else f"{task.name} started")
        now = time.monotonic()
        if told and not self.console.is_terminal and now - self.last_line > 4 * SECONDS_BETWEEN_LINES:
            self.last_line = now
            self._say("; ".join(told))

    def end(self, task: Task, failure: Failure | None) -> None:
        """Remove the bar of a task, and say how it ended and how much time is left."""
        seconds, was_started = self.left.pop(task.name), task.name in self.shown
        self.remove(task)
        self.seconds_done += seconds if was_started else 0.0
        num_done = self.total - len(self.left)
        self.bars.update(self.overall, completed=num_done)
        result = _find_status(self.folders.runs / task.name)[1] if failure is None else f"failed: {failure.reason}"
        time_left = ""
        if self.seconds_done and self.left:
            elapsed = time.monotonic() - self.began
            time_left = f"  ({describe_seconds(elapsed * sum(self.left.values()) / self.seconds_done)} left)"
        self._say(f"{num_done}/{self.total} {task.name}  {result}".rstrip() + time_left)

    def remove(self, task: Task) -> None:
        """Remove the bar of a task, if it has one."""
        if task.name in self.shown:
            self.bars.remove_task(self.shown.pop(task.name))

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)


def _find_status(run_folder: Path) -> tuple[int, str]:
    """Return the number of updates and the newest score of a run; nothing of what is not a training."""
    events = read_events(run_folder)
    for name, words in (("test_accuracy", "test {:.1f} %"), ("auxiliary_loss", "auxiliary loss {:.4f}")):
        if values := [event[name] for event in events if name in event]:
            return int(events[-1]["total_step"]), words.format(values[-1])
    return 0, ""


class Runner:
    """Works through tasks; `needs` gives the bytes of a task's process, and `free` is how many there are."""

    def __init__(
        self,
        folders: Folders,
        executor: Executor,
        *,
        workers: int,
        display: Display,
        command: Command = run_command,
        needs: Callable[[Task], int] = lambda _task: 0,
        free: int | None = None,
    ) -> None:
        self.folders, self.executor, self.workers, self.display = folders, executor, workers, display
        self.command, self.needs, self.free = command, needs, free
        self.active: dict[Future[int], Task] = {}
        self.failures: list[Failure] = []

    def run(self, tasks: Sequence[Task]) -> list[Failure]:
        """Run all tasks and return those that failed; when interrupted, stop all processes before leaving."""
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
        if self._is_done(task):
            return self._finish(task)
        if task.after is not None and not runs.is_finished(self.folders.runs / task.after):
            is_lost = any(failure.name == task.after for failure in self.failures)
            return is_lost and self._fail(task, f"its pretraining {task.after} is missing")
        if len(self.active) >= self.workers or not self._may_share(task) or self._is_elsewhere(task):
            return False
        self.folders.runs.mkdir(parents=True, exist_ok=True)
        future = self.executor.submit(self.command, self._find_words(task), log=self._log(task), out=self._out(task))
        self.active[future] = task
        self.display.start(task)
        return True

    def _may_share(self, task: Task) -> bool:
        """Return whether a task may run beside the active ones: no time is measured, and memory holds all of them.

        A training that does not fit alone is started nevertheless: it refuses by itself, and says what would fit.
        """
        together = [task, *self.active.values()]
        if not self.active or any(one.kind == "cost" for one in together):
            return not self.active
        return self.free is None or sum(map(self.needs, together)) <= self.free

    def _find_words(self, task: Task) -> list[str]:
        folder = self.folders.runs / task.name
        if task.kind == "data":
            return ["data", "check", *to_data_flags(task.config), "--json"]
        if task.kind == "cost":
            return ["cost", *to_flags(task.config), "--json"]
        if (folder / "config.json").exists():
            return ["resume", str(folder)]
        if runs.is_half_made(folder):
            shutil.rmtree(folder)
        adopted = [] if task.after is None else ["--pretrained", str(self.folders.runs / task.after)]
        return ["train", *to_flags(task.config), "--out", str(folder), *adopted]

    def _end(self, task: Task, code: int) -> bool:
        """Record how a task ended; return False if it must wait, since another process began it at the same moment."""
        if code == 0:
            return self._finish(task)
        if task.kind == "train" and self._is_elsewhere(task):
            self.display.remove(task)
            return False
        last = self._log(task).read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        return self._fail(task, last[0].removeprefix("auxrnn: "))

    def _is_done(self, task: Task) -> bool:
        has_record = task.is_job and self.folders.record(task.name).exists()
        return has_record or (task.kind == "train" and runs.is_finished(self.folders.runs / task.name))

    def _is_elsewhere(self, task: Task) -> bool:
        folder = self.folders.runs / task.name
        return folder.exists() and runs.is_locked(folder)

    def _finish(self, task: Task) -> bool:
        if task.is_job and not self.folders.record(task.name).exists():
            write_record(self._make_record(task), self.folders.records)
        self.display.end(task, None)
        return True

    def _fail(self, task: Task, reason: str) -> bool:
        self.failures.append(Failure(task.name, reason))
        self.display.end(task, self.failures[-1])
        return True

    def _make_record(self, task: Task) -> RunRecord:
        out = self._out(task)
        if out is None:
            return record_training(task.name, self.folders.runs / task.name)
        return RunRecord(
            name=task.name,
            settings=strip_settings(flatten(task.config)),
            scores=json.loads(out.read_text()),
            seconds=0.0,
            curve=[],
            facts={},
            environment=strip_environment(runs.describe_environment(runs.settle(task.config))),
        )

    def _log(self, task: Task) -> Path:
        return self.folders.runs / f"{task.name}.log"

    def _out(self, task: Task) -> Path | None:
        return None if task.kind == "train" else self.folders.runs / f"{task.name}.result.json"
