"""What people see while experiments are worked through: a bar for each run on a terminal, a line for each elsewhere."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from rich.console import Console
from rich.progress import TaskID

from auxrnn.config import RunConfig
from auxrnn.experiments.jobs import Folders, Task
from auxrnn.experiments.workers import Failure
from auxrnn.progress import SECONDS_BETWEEN_LINES, describe_seconds, make_bars
from auxrnn.report.records import read_events


class Display:
    """Shows all active runs with their newest scores, how many are done, and the time left."""

    def __init__(
        self, tasks: Sequence[Task], folders: Folders, console: Console, *, weigh: Callable[[], Mapping[str, float]]
    ) -> None:
        self.waiting = {task.name for task in tasks}
        """What has not ended yet."""
        self.weigh = weigh
        """Gives the estimated seconds of tasks by name, of as many as are known by now."""
        self.folders = folders
        self.console = console
        self.bars = make_bars(console)
        self.total = len(tasks)
        self.worked: list[str] = []
        """What ended after it was started here; the rest was found done, in no time."""
        self.began = time.monotonic()
        self.last_line = self.began
        self.overall = self.bars.add_task("all runs", total=self.total, status="")
        self.shown: dict[str, TaskID] = {}

    def __enter__(self) -> "Display":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def started(self, task: Task) -> None:
        """Add a bar for a run."""
        total = _count_updates(task.config) if task.kind == "train" else None
        self.shown[task.name] = self.bars.add_task(task.name[:40], total=total, status="starting")

    def looked(self, active: Sequence[Task]) -> None:
        """Move the bars, from the records that the runs write; elsewhere say now and then what runs."""
        status = {task.name: _find_status(self.folders, task) for task in active}
        for name, (step, text) in status.items():
            self.bars.update(self.shown[name], completed=step, status=text)
        now = time.monotonic()
        if not self.console.is_terminal and now - self.last_line > 4 * SECONDS_BETWEEN_LINES and status:
            self.last_line = now
            self._say("; ".join(f"{name} at {step} {text}" for name, (step, text) in status.items()))

    def ended(self, task: Task, failure: Failure | None) -> None:
        """Take a run's bar away, and say how it went."""
        self.waiting.discard(task.name)
        if task.name in self.shown:
            self.bars.remove_task(self.shown.pop(task.name))
            self.worked.append(task.name)
        num_done = self.total - len(self.waiting)
        self.bars.update(self.overall, completed=num_done)
        _, text = _find_status(self.folders, task)
        result = f"failed: {failure.reason}" if failure is not None else text
        self._say(f"{num_done}/{self.total} {task.name}  {result}{self._describe_time_left()}")

    def left(self, task: Task) -> None:
        """Take a run's bar away."""
        self.bars.remove_task(self.shown.pop(task.name))

    def _describe_time_left(self) -> str:
        if not self.worked:
            return ""
        left = (time.monotonic() - self.began) * find_ratio(self.waiting, self.worked, self.weigh())
        return f"  ({describe_seconds(left)} left)"

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)


def find_ratio(waiting: Iterable[str], worked: Iterable[str], weights: Mapping[str, float]) -> float:
    """Give how much is left for each part that is done; a task that nobody has measured counts as the others' mean."""
    usual = fmean(weights.values()) if weights else 1.0
    left, past = (sum(weights.get(name, usual) for name in names) for names in (waiting, worked))
    return left / past


def _count_updates(config: RunConfig) -> int | None:
    steps = (config.schedule.pretrain_steps, config.schedule.train_steps)
    return None if None in steps else sum(step or 0 for step in steps)


def _find_status(folders: Folders, task: Task) -> tuple[int, str]:
    """Say how far a run is: its updates and its newest score."""
    if task.kind != "train":
        return 0, {"cost": "measured", "data": "counted"}[task.kind]
    events = read_events(folders.runs / task.name)
    if not events:
        return 0, "starting"
    return int(events[-1]["total_step"]), _describe(events)


def _describe(events: Sequence[Mapping[str, float]]) -> str:
    for name, words in (("test_accuracy", "test {:.1f} %"), ("auxiliary_loss", "auxiliary {:.4f}")):
        values = [event[name] for event in events if name in event]
        if values:
            return words.format(values[-1])
    return ""
