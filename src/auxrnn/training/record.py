"""One line of JSON per event, in a file that never keeps half a line or an event twice."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from auxrnn.errors import RunError
from auxrnn.files import cannot_write


@runtime_checkable
class Recorder(Protocol):
    """Where events go."""

    def write(self, event: dict[str, Any]) -> None:
        """Keep one event."""

    def flush(self) -> int:
        """Make sure that all events so far are kept; return a mark to rewind to."""

    def rewind(self, mark: int) -> None:
        """Forget all events after the mark."""


class FileRecorder:
    """Events as lines of a file; a mark is its size in bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, event: dict[str, Any]) -> None:
        """Append one line, or none at all."""
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with self.path.open("ab") as file:
                file.write((json.dumps(event) + "\n").encode())
        except OSError as error:
            with contextlib.suppress(OSError):  # where the file could not even be opened there is nothing to cut
                os.truncate(self.path, size)
            raise cannot_write(self.path, error) from error

    def flush(self) -> int:
        """Flush the file to the disk and return its size."""
        try:
            with self.path.open("ab") as file:
                os.fsync(file.fileno())
                return file.tell()
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def rewind(self, mark: int) -> None:
        """Cut the file back to its size at the mark."""
        try:
            self.path.touch()
            if self.path.stat().st_size < mark:
                raise RunError(
                    f"{self.path} has lost lines that its checkpoint counts; train again into another folder"
                )
            os.truncate(self.path, mark)
        except OSError as error:
            raise cannot_write(self.path, error) from error


class ListRecorder:
    """Events in a list, for training without a folder; a mark is their number."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: dict[str, Any]) -> None:
        """Append one event."""
        self.events.append(event)

    def flush(self) -> int:
        """Return the number of events."""
        return len(self.events)

    def rewind(self, mark: int) -> None:
        """Drop the events after the mark."""
        del self.events[mark:]
