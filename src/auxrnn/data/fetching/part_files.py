"""The beginning of a file that is being downloaded, kept beside its place so that a broken download can go on.

`NAME.part` holds the bytes so far and `NAME.part.json` what the server said of the file they are from.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from auxrnn.files import write_aside

logger = logging.getLogger(__name__)


class Version(NamedTuple):
    """What a server says of a file, by which one sees later whether it is still the same."""

    url: str
    etag: str | None
    modified: str | None
    num_bytes: int | None


class PartFile:
    """A beginning of a file, open for this process alone."""

    def __init__(self, file: BinaryIO, target: Path) -> None:
        self.target = target
        self.path = part_path(target)
        self._file = file
        self._note = self.path.with_name(f"{self.path.name}.json")
        self.version = _read_note(self._note)
        self.is_patched = True
        """Whether the bytes came in several answers, which may be of several files all the same."""
        if self.version is None:
            self.clear()

    @property
    def size(self) -> int:
        """How many bytes are there."""
        return self._file.seek(0, os.SEEK_END)

    @property
    def is_complete(self) -> bool:
        """Whether all bytes are there that the server spoke of."""
        return self.version is not None and self.size == self.version.num_bytes

    def begin(self, version: Version) -> None:
        """Throw away what is there, and be the beginning of a file that the server describes so."""
        self.clear()
        write_aside(self._note, json.dumps(version._asdict()))
        self.version = version
        self.is_patched = False

    def append(self, block: bytes) -> None:
        """Add the next bytes."""
        self._file.write(block)

    def clear(self) -> None:
        """Throw away what is there."""
        self._file.truncate(0)
        self._note.unlink(missing_ok=True)
        self.version = None

    def flush(self) -> None:
        """Bring all bytes to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Put the file in its place, whole."""
        self.flush()
        self.path.replace(self.target)
        self._note.unlink(missing_ok=True)


def part_path(target: Path) -> Path:
    """Give the path under which the beginning of a file is kept."""
    return target.with_name(f"{target.name}.part")


@contextmanager
def open_part(target: Path) -> Iterator[PartFile]:
    """Give what is kept of a file for this process alone; a second process waits here for the first.

    What is kept stays for the next time, unless it is nothing.
    """
    path = part_path(target)
    with _open_alone(path) as file:
        part = PartFile(file, target)
        try:
            yield part
        finally:
            # Only while the lock is held may it be removed: the next process could have begun with it.
            if part.size == 0:
                part.clear()
                path.unlink(missing_ok=True)


def _open_alone(path: Path) -> BinaryIO:
    """Open a file to append to and lock it; the lock ends with the process, however it ends."""
    while True:
        file = path.open("ab")
        try:
            _lock(file, path)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except BaseException:
            file.close()
            raise
        # While this process waited, the other one finished the file or gave it up.
        file.close()


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        logger.warning("another process is downloading %s; waiting for it", path)
        fcntl.flock(file, fcntl.LOCK_EX)


def _read_note(path: Path) -> Version | None:
    try:
        return Version(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
