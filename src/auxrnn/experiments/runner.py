"""Works through tasks, as many at a time as the executor and memory allow, and shows progress.

A job that has a record is never repeated, and an interrupted one resumes from its last checkpoint. Several processes
may share the folders: whoever holds the lock of a run trains it.
"""

import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean

from rich.console import Console

from auxrnn import saved
from auxrnn.executors.executor import TaskExecutor
from auxrnn.executors.tasks import Ending, Task, make_record
from auxrnn.experiments.jobs import Folders
from auxrnn.experiments.scales import NOTHING
from auxrnn.files import is_locked
from auxrnn.progress import describe_seconds, make_bars
from auxrnn.report.records import write_record

POLL_SECONDS = 0.2


class Display:
    """Shows what is running, how many runs are done and the time left: a bar on a terminal, a line for each ending."""

    def __init__(
        self, tasks: Sequence[Task], executor: TaskExecutor, console: Console, *, seconds: Mapping[str, float] = NOTHING
    ) -> None:
        self.executor, self.console, self.bars = executor, console, make_bars(console)
        usual = fmean(seconds.values()) if seconds else 1.0
        self.left = {task.name: seconds.get(task.name, usual) for task in tasks}
        """Estimated seconds of the tasks that have not ended."""
        self.total, self.seconds_done, self.began = len(tasks), 0.0, time.monotonic()
        self.bar = self.bars.add_task("all runs", total=self.total, status="")

    def update(self, active: Sequence[Task]) -> None:
        """Show what is running."""
        told = [f"{task.name}  {self._find_status(task)}" for task in active]
        self.bars.update(self.bar, completed=self.total - len(self.left), status=", ".join(told))

    def end(self, task: Task, reason: str | None = None) -> None:
        """Say how a task ended, with the reason if it failed, and how much time is left."""
        self.seconds_done += self.left.pop(task.name)
        result = self._find_status(task) if reason is None else f"failed: {reason}"
        line = f"{self.total - len(self.left)}/{self.total} {task.name}  {result}".rstrip()
        if self.seconds_done and self.left:
            elapsed = time.monotonic() - self.began
            line += f"  ({describe_seconds(elapsed * sum(self.left.values()) / self.seconds_done)} left)"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _find_status(self, task: Task) -> str:
        """Return the newest score of a run; nothing of what is not a training."""
        events = self.executor.read_events(task.name)
        for name, words in (("test_accuracy", "test {:.1f} %"), ("auxiliary_loss", "auxiliary loss {:.4f}")):
            if values := [event[name] for event in events if name in event]:
                return f"{words.format(values[-1])} after {events[-1]['total_step']:,} updates"
        return ""


@dataclass
class Runner:
    """Works through tasks; `needs` gives the bytes of a task's process."""

    folders: Folders
    executor: TaskExecutor
    display: Display
    needs: Callable[[Task], int] = lambda _task: 0
    active: dict[Future[Ending], Task] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def run(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Run all tasks and return why some failed, by name; the executor stops what an interruption leaves."""
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with self.display.bars:
                self._work(list(tasks))
        finally:
            for task in self.active.values():
                self.executor.stop(task.name)
            wait(self.active)
            signal.signal(signal.SIGTERM, previous)
        return self.failures

    def _work(self, waiting: list[Task]) -> None:
        while waiting or self.active:
            waiting = [task for task in waiting if not self._take(task)]
            if self.active:
                done = wait(self.active, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED).done
                ended = [(self.active.pop(future), future.result()) for future in done]
                waiting += [task for task, ending in ended if not self._end(task, ending)]
            elif waiting:
                # Other processes are training all that is left.
                time.sleep(POLL_SECONDS)
            self.display.update([task for future, task in self.active.items() if future.running()])

    def _take(self, task: Task) -> bool:
        """Start a task if possible; return whether it is off the waiting list: started, done or failed."""
        folder = self.folders.runs / task.name
        if task.is_job and self.folders.is_done(task.name):
            return self._close(task)
        if task.kind == "train" and saved.is_finished(folder):
            return self._end(task, Ending(record=make_record(task, self.folders.runs) if task.is_job else None))
        if task.after is not None and not saved.is_finished(self.folders.runs / task.after):
            return task.after in self.failures and self._close(task, f"its pretraining {task.after} is missing")
        if len(self.active) >= self.executor.capacity or not self._may_share(task) or self._is_elsewhere(task):
            return False
        self.active[self.executor.submit(task, needs=partial(self.needs, task))] = task
        return True

    def _may_share(self, task: Task) -> bool:
        """Return whether a task may run beside the active ones: no time is measured, and memory holds all of them.

        A training that does not fit alone is started nevertheless: it refuses by itself, and says what would fit.
        """
        together, free = [task, *self.active.values()], self.executor.free
        if not self.active or any(one.kind == "cost" for one in together):
            return not self.active
        return math.isinf(free) or sum(map(self.needs, together)) <= free

    def _end(self, task: Task, ending: Ending) -> bool:
        """Close a task that has ended; return False if another process has begun it meanwhile."""
        if ending.failure is not None:
            is_elsewhere = task.kind == "train" and self._is_elsewhere(task)
            return not is_elsewhere and self._close(task, ending.failure)
        if ending.record is not None and not self.folders.is_done(task.name):
            write_record(ending.record, self.folders.records)
        return self._close(task)

    def _is_elsewhere(self, task: Task) -> bool:
        folder = self.folders.runs / task.name
        return folder.exists() and is_locked(folder)

    def _close(self, task: Task, failure: str | None = None) -> bool:
        """Note that a task has ended; always True, since it need not wait any longer."""
        if failure is not None:
            self.failures[task.name] = failure
        self.display.end(task, failure)
        return True
