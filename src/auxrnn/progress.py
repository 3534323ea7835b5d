"""Progress of long work on the error stream: a live bar on a terminal, now and then a line elsewhere."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from auxrnn.training.loop import Tick
from auxrnn.training.optimizers import Phase

SECONDS_BETWEEN_LINES = 15.0


class TrainingProgress:
    """Shows a training: phase, update, losses, accuracy, time left."""

    def __init__(self, phases: list[Phase], console: Console) -> None:
        self.console = console
        self.bar = make_bars(console)
        self.tasks: dict[str, TaskID] = {
            phase.name: self.bar.add_task(phase.name, total=phase.num_steps, start=False, status="") for phase in phases
        }
        self.started: dict[str, tuple[float, int]] = {}
        self.last_line = time.monotonic()

    def __enter__(self) -> "TrainingProgress":
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def observe(self, tick: Tick) -> None:
        """Show one update."""
        now = time.monotonic()
        name = tick.phase.name
        if name not in self.started:
            # The first update seen may not be the phase's first: a resumed run begins in the middle.
            self.started[name] = (now, tick.step)
            self.bar.start_task(self.tasks[name])
        self.bar.update(self.tasks[name], completed=tick.step, status=_describe_tick(tick))
        is_last = tick.step == tick.phase.num_steps
        if not self.console.is_terminal and (is_last or now - self.last_line > SECONDS_BETWEEN_LINES):
            self.last_line = now
            self.console.print(self._line(tick, now), highlight=False, soft_wrap=True)

    def _line(self, tick: Tick, now: float) -> str:
        start, first_step = self.started[tick.phase.name]
        done = tick.step - first_step
        left = (now - start) / done * (tick.phase.num_steps - tick.step) if done else 0.0
        place = f"{tick.phase.name} {tick.step}/{tick.phase.num_steps}"
        return f"{place}  {_describe_tick(tick)}  {describe_seconds(left)} left"


class ReadingProgress:
    """Shows how far a dataset is read for the first time; silent where nothing has to be read."""

    def __init__(self, name: str, console: Console) -> None:
        self.console = console
        self.name = name
        self.bar = make_bars(console)
        self.task: TaskID | None = None
        self.last_line = time.monotonic()

    def __enter__(self) -> "ReadingProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def observe(self, done: int, total: int | None) -> None:
        """Show that so many examples are read."""
        if self.task is None:
            self.bar.start()
            self.task = self.bar.add_task(f"reading {self.name}", total=total, status="")
        self.bar.update(self.task, completed=done, total=total)
        now = time.monotonic()
        if not self.console.is_terminal and now - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = now
            of = "" if total is None else f" of {total:,}"
            self.console.print(f"reading {self.name}: {done:,}{of}", highlight=False, soft_wrap=True)


def make_bars(console: Console) -> Progress:
    """Return bars whose tasks carry a `status`; on anything but a terminal they stay silent."""
    return Progress(
        TextColumn("{task.description:>16}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}"),
        console=console,
        disable=not console.is_terminal,
    )


def _describe_tick(tick: Tick) -> str:
    """Describe the training batches, and the validation split if it was just evaluated; never the test split."""
    validation = {name: score for name, score in tick.scores.items() if name.startswith("validation_")}
    return describe_scores(tick.means | validation)


def describe_scores(scores: dict[str, float]) -> str:
    """Return losses and accuracies in a few words."""
    words = []
    if "supervised_loss" in scores:
        words.append(f"loss {scores['supervised_loss']:.3f}")
    if "auxiliary_loss" in scores:
        words.append(f"auxiliary {scores['auxiliary_loss']:.4f}")
    accuracies = {split: scores.get(f"{split}_accuracy") for split in ("train", "validation", "test")}
    words += [f"{split} {accuracy:.1f}%" for split, accuracy in accuracies.items() if accuracy is not None]
    if "test_macro_f1" in scores:
        words.append(f"balanced {scores['test_balanced_accuracy']:.1f}%  macro F1 {scores['test_macro_f1']:.1f}%")
    return "  ".join(words)


def describe_seconds(seconds: float) -> str:
    """Return a span of time as a person would say it."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.0f} days"
