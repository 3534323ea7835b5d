"""Commands of our own in processes of their own, several at a time, none of them left behind."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Running(Protocol):
    """A command under way, or done."""

    @property
    def returncode(self) -> int | Any:
        """Its exit code, once it has one."""

    def poll(self) -> int | None:
        """Give its exit code; None while it runs."""

    def terminate(self) -> None:
        """Ask it to stop."""

    def wait(self) -> int:
        """Wait for its end."""


class Start(Protocol):
    """Whatever can run one of our commands."""

    def __call__(self, words: Sequence[str], *, log: Path, out: Path | None = None) -> Running:
        """Run `auxrnn WORDS`; what it says is appended to `log`, and so is its result unless `out` takes that."""


class Done(NamedTuple):
    """A command that has ended already."""

    returncode: int

    def poll(self) -> int:
        """Give its exit code."""
        return self.returncode

    def terminate(self) -> None:
        """Leave it: there is nothing to stop."""

    def wait(self) -> int:
        """Give its exit code."""
        return self.returncode


def start(words: Sequence[str], *, log: Path, out: Path | None = None) -> Running:
    """Start a command in a process of its own."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as said, log.open("ab") if out is None else out.open("wb") as result:
        return subprocess.Popen([sys.executable, "-m", "auxrnn", *words], stdout=result, stderr=said)  # noqa: S603 - our own command


def last_words(log: Path) -> str:
    """Give the last thing that a process said: of one that failed, why."""
    last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
    return last[0].removeprefix("auxrnn: ")


@contextmanager
def ending(active: Mapping[str, Running]) -> Iterator[None]:
    """Leave no process behind, whatever happens; a run told to stop keeps what it has."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        for process in active.values():
            process.terminate()
        for process in active.values():
            process.wait()
        signal.signal(signal.SIGTERM, previous)
