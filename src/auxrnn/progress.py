"""Progress of long work on the error stream: a live bar on a terminal, now and then a line elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from auxrnn.files import printable
from auxrnn.training.loop import Tick
from auxrnn.training.optimizers import Phase

SECONDS_BETWEEN_LINES = 15.0


@contextmanager
def show_training(phases: list[Phase]) -> Iterator[Callable[[Tick], None]]:
    """Yield what shows an update: phase, losses, accuracy, time left."""
    console, last_line = Console(stderr=True), time.monotonic()
    started: dict[str, tuple[float, int]] = {}
    with make_bars(console) as bars:
        tasks = {each.name: bars.add_task(each.name, total=each.num_steps, start=False, status="") for each in phases}

        def observe(tick: Tick) -> None:
            nonlocal last_line
            now, name, total = time.monotonic(), tick.phase.name, tick.phase.num_steps
            # Never the test split: nobody should choose by it.
            validation = {kind: score for kind, score in tick.scores.items() if kind.startswith("validation_")}
            status = describe_scores(tick.means | validation)
            # The first update seen may not be the phase's first: a resumed run begins in the middle.
            start, first_step = started.setdefault(name, (now, tick.step))
            bars.start_task(tasks[name])
            bars.update(tasks[name], completed=tick.step, status=status)
            if not console.is_terminal and (tick.step == total or now - last_line > SECONDS_BETWEEN_LINES):
                last_line = now
                left = (now - start) / max(tick.step - first_step, 1) * (total - tick.step)
                text = f"{name} {tick.step}/{total}  {status}  {describe_seconds(left)} left"
                console.print(text, highlight=False, markup=False, soft_wrap=True)

        yield observe


@contextmanager
def show_reading(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Yield what shows how many examples are read, and of how many; silent where nothing has to be read."""
    console, last_line, name = Console(stderr=True), time.monotonic(), printable(name)
    bars = make_bars(console)

    def observe(done: int, total: int | None) -> None:
        nonlocal last_line
        if not bars.tasks:
            bars.start()
            bars.add_task(f"reading {name}", status="")
        bars.update(bars.task_ids[0], completed=done, total=total)
        if not console.is_terminal and time.monotonic() - last_line > SECONDS_BETWEEN_LINES:
            last_line = time.monotonic()
            of = "" if total is None else f" of {total:,}"
            console.print(f"reading {name}: {done:,}{of}", highlight=False, markup=False, soft_wrap=True)

    try:
        yield observe
    finally:
        bars.stop()


def make_bars(console: Console) -> Progress:
    """Return bars whose tasks carry a `status`; on anything but a terminal they stay silent."""
    name, status = TextColumn("{task.description:>16}", markup=False), TextColumn("{task.fields[status]}", markup=False)
    columns = (name, BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn(), status)
    return Progress(*columns, console=console, disable=not console.is_terminal)


def describe_scores(scores: dict[str, float]) -> str:
    """Return losses and accuracies in a few words."""
    words = {
        "supervised_loss": "loss {:.3f}",
        "auxiliary_loss": "auxiliary {:.4f}",
        "train_accuracy": "train {:.1f}%",
        "validation_accuracy": "validation {:.1f}%",
        "test_accuracy": "test {:.1f}%",
        "test_balanced_accuracy": "balanced {:.1f}%",
        "test_macro_f1": "macro F1 {:.1f}%",
    }
    return "  ".join(form.format(scores[name]) for name, form in words.items() if name in scores)


def describe_seconds(seconds: float) -> str:
    """Return a span of time as a person would say it."""
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    days = seconds / 86400
    return f"{days:.0f} days" if days < 730 else f"{days / 365:,.0f} years"
