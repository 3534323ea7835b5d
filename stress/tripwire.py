"""Counts the file operations of a process and kills it at one of them: before, after, or in the middle of a write."""

import builtins
import io
import json
import os
import signal
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

WATCHED = ("open", "fsync", "replace", "rename", "unlink", "remove", "rmdir", "mkdir", "truncate")
LONGEST_TEXT = 120
Task = Callable[[], int]


def list_operations(task: Task, path: Path) -> Task:
    """Return a task that does the same and then lists its file operations in a JSON file."""

    def listing() -> int:
        tripwire = Tripwire()
        tripwire.install()
        code = task()
        operations = list(tripwire.operations)
        path.write_text(json.dumps(operations))
        return code

    return listing


def kill_at(task: Task, number: int, *, is_after: bool) -> Task:
    """Return a task that is killed at one of its file operations."""

    def killed() -> int:
        Tripwire(kill_at=number, is_after=is_after).install()
        return task()

    return killed


class Tripwire:
    """Watches this process from `install` on. Without a number to kill at, it only lists the operations."""

    def __init__(self, *, kill_at: int | None = None, is_after: bool = False) -> None:
        self.kill_at, self.is_after = kill_at, is_after
        self.operations: list[str] = []

    def install(self) -> None:
        """Replace the functions of this process that change files."""
        for name in WATCHED:
            setattr(os, name, self._watch(getattr(os, name), name))
        builtins.open = io.open = self._make_open(io.open)

    def _is_due(self, operation: str) -> bool:
        self.operations.append(operation[:LONGEST_TEXT])
        return self.kill_at == len(self.operations) - 1

    def _watch(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            is_due = self._is_due(f"{name} {arguments[0]}")
            if is_due and not self.is_after:
                self._die()
            result = function(*arguments, **options)
            if is_due:
                self._die()
            return result

        return watched

    def _make_open(self, function: Callable[..., Any]) -> Any:
        watched_open = self._watch(function, "open")

        def open_watched(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if isinstance(file, int) or not set(mode) & set("wax+"):
                return function(file, mode, *arguments, **options)
            opened = watched_open(file, mode, *arguments, **options)
            opened.write = self._make_write(opened)
            return opened

        return open_watched

    def _make_write(self, file: IO[Any]) -> Callable[[Any], int]:
        function = file.write

        def write(content: Any) -> int:
            # Once per file: some are written in many small pieces.
            del file.write
            is_due = self._is_due(f"write {content[:LONGEST_TEXT]!r}")
            if is_due and not self.is_after:
                content = content[: len(content) // 2]
            size = function(content)
            if is_due:
                file.flush()
                self._die()
            return size

        return write

    def _die(self) -> None:
        side = "after" if self.is_after else "before the end of"
        sys.stderr.write(f"{side} operation {self.kill_at}, {self.operations[-1]}\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def find_boundaries(operations: list[str]) -> list[int]:
    """Return the numbers of the operations at evaluations and results, and of all those between two phases."""
    lines = [number for number, operation in enumerate(operations) if '"event"' in operation]
    evaluations = [number for number in lines if '"train", "phase"' not in operations[number]]
    found = {number + shift for number in evaluations for shift in (-1, 0, 1)}
    for number, following in pairwise(lines):
        if _phase(operations[number]) != _phase(operations[following]):
            found |= set(range(number, following))
    return sorted(found & set(range(len(operations))))


def _phase(operation: str) -> str:
    return operation.partition('"phase": ')[2].partition(",")[0]
