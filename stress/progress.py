"""What a stress test prints: progress on stderr, one line per failure, one line of markdown at the end."""

import shutil
import sys
import time
from pathlib import Path
from typing import TextIO

SECONDS_BETWEEN_LINES = 10.0
ROOT = Path("runs/stress")


class Report:
    """Counts what was done and what failed; keeps the folders of failures."""

    def __init__(self, name: str, *, total: int, seed: int) -> None:
        self.name, self.total, self.seed = name, total, seed
        self.folder = (ROOT / f"{name}-{seed}").absolute()
        """Where the test works; the folders of failures stay in it."""
        self.num_failures = 0
        self.start = self.last_line = time.monotonic()
        self.first: tuple[int, float] | None = None
        """What was done, and when, at the first sign of progress: preparing is not counted."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def fail(self, what: str, *, folder: Path) -> None:
        """Print one failure, with what is needed to repeat it."""
        self.num_failures += 1
        _print(f"FAILED {self.name} --seed {self.seed}: {what}; see {folder}", sys.stdout)

    def show(self, done: int) -> None:
        """Print progress and the time left, now and then."""
        now = time.monotonic()
        first, begin = self.first = self.first or (done, now)
        if done > first and now - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = now
            left = (now - begin) / (done - first) * (self.total - done) / 60
            _print(
                f"{self.name} {done}/{self.total}, {self.num_failures} failures, {left:.1f} minutes left", sys.stderr
            )

    def end(self, done: str, figure: str) -> int:
        """Print the line for the table in the docs, and return the number of failures."""
        minutes = (time.monotonic() - self.start) / 60
        _print(f"took {minutes:.1f} minutes", sys.stderr)
        _print(f"| {done} | {figure} |", sys.stdout)
        return self.num_failures


def _print(line: str, stream: TextIO) -> None:
    stream.write(f"{line}\n")
    stream.flush()
