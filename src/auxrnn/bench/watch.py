"""How far the benchmark is and how long the rest takes, on the error stream."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from auxrnn.progress import SECONDS_BETWEEN_LINES, describe_seconds


class Watch:
    """Shows the part under way: a live bar on a terminal, now and then a line elsewhere.

    The parts come with rough costs; what is left is guessed from them and from how long the parts before took.
    """

    def __init__(self, parts: Mapping[str, float], console: Console) -> None:
        self.parts = parts
        self.console = console
        self.done = 0.0
        self.start = time.monotonic()
        self.next_line = 0.0
        # Not rich's own guess of the time left: it needs many small advances, and parts here are few and long.
        columns = (BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.description}"))
        self.bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self.task = self.bar.add_task("", total=sum(parts.values()))

    @property
    def seconds(self) -> float:
        """Give the time since the start."""
        return time.monotonic() - self.start

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Show one part while it is measured."""
        pace = self.seconds / self.done if self.done else 1.0
        left = pace * (sum(self.parts.values()) - self.done)
        self._say(f"{name}; about {describe_seconds(left)} left")
        yield
        self.done += self.parts[name]
        self.bar.update(self.task, completed=self.done)

    def _say(self, text: str) -> None:
        self.bar.update(self.task, description=text)
        if not self.console.is_terminal and self.seconds >= self.next_line:
            self.next_line = self.seconds + SECONDS_BETWEEN_LINES
            self.console.print(text, highlight=False, soft_wrap=True)
