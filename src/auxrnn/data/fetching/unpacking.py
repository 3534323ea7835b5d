"""The members of an archive on their way into a folder: their names are checked, and all bytes are counted."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol, runtime_checkable

from auxrnn.errors import RunError

CHUNK_BYTES = 2**18
MOST_HEADER_BYTES = 2**20
MOST_LEVELS = 100
MOST_SHOWN = 100
CURE = "unpack it yourself where that is safe, and give the folder"


class Limits(NamedTuple):
    """What an archive may become at most: beyond, it was made to fill the disk."""

    num_members: int = 1_000_000
    num_bytes: int = 64 * 2**30
    ratio: int = 1000
    """How many times its own size, once more than `free_bytes` are unpacked."""
    free_bytes: int = 2**30


@runtime_checkable
class Readable(Protocol):
    """What bytes come from: a file, or what is packed in one."""

    def read(self, num_bytes: int, /) -> bytes:
        """Give the next bytes."""
        ...


@dataclass
class Unpacking:
    """An archive on its way into a folder, and how far it is."""

    archive: Path
    folder: Path
    limits: Limits
    packed_bytes: int
    num_bytes: int = 0
    num_members: int = 0
    member: str = ""

    @property
    def shown_member(self) -> str:
        """The name of the member at hand, for a message."""
        return repr(self.member[:MOST_SHOWN])

    def begin(self, name: str) -> tuple[str, ...]:
        """Take the next member, and give the parts of its path."""
        self.member = name
        self.num_members += 1
        if self.num_members > self.limits.num_members:
            self.refuse(f"one of more than {self.limits.num_members:,} members")
        if fault := _find_fault(name):
            self.refuse(fault)
        return tuple(part for part in name.split("/") if part not in ("", "."))

    def refuse(self, what: str) -> NoReturn:
        """Say what is wrong with the member at hand."""
        raise RunError(f"{self.archive} holds {self.shown_member}, {what}; {CURE}")

    def count(self, num_bytes: int) -> None:
        """Count what was unpacked: what an archive says of its own sizes may be wrong."""
        self.num_bytes += num_bytes
        if self.num_bytes > self.limits.num_bytes:
            self.refuse(f"with which it unpacks to more than {self.limits.num_bytes:,} bytes")
        is_much = self.num_bytes > self.limits.free_bytes
        if is_much and self.num_bytes > self.limits.ratio * self.packed_bytes:
            self.refuse(f"with which it unpacks to more than {self.limits.ratio:,} times its size")

    def make_folder(self, parts: tuple[str, ...]) -> Path:
        """Make a folder and those above it, and give its path."""
        path = self.folder.joinpath(*parts)
        if not path.is_dir():
            self.make_folder(parts[:-1])
            try:
                path.mkdir()
            except FileExistsError:
                self.refuse("which is there already")
            path.chmod(0o755)
        return path

    def write(self, parts: tuple[str, ...], content: Readable, *, size: int) -> None:
        """Copy a member to its file, which must be new."""
        if size > shutil.disk_usage(self.folder).free:
            reason = f"there is no space for {self.shown_member} of {size:,} bytes"
            raise RunError(f"{self.archive} cannot be unpacked into {self.folder.parent} ({reason}); free some there")
        path = self.make_folder(parts[:-1]) / parts[-1]
        if path.exists():
            self.refuse("which is there already")
        with path.open("xb") as copy:
            while chunk := content.read(CHUNK_BYTES):
                copy.write(chunk)
            if copy.tell() != size:
                raise EOFError(f"{size} bytes are announced and {copy.tell()} are there")
        path.chmod(0o644)


class Reader:
    """A file that is read once, from its begin to its end, and counted; it remembers the last that was read."""

    def __init__(self, file: Readable, count: Callable[[int], None]) -> None:
        self._file = file
        self._count = count
        self._position = 0
        self.last = b""

    def read(self, num_bytes: int) -> bytes:
        """Give the next bytes; fewer only at the end."""
        # Members are copied in smaller chunks: only a header can ask for so much at once, or, below zero, for all.
        if not 0 <= num_bytes <= MOST_HEADER_BYTES:
            raise ValueError(f"a header of {num_bytes} bytes")
        self.last = self._file.read(num_bytes)
        self._position += len(self.last)
        self._count(len(self.last))
        return self.last

    def tell(self) -> int:
        """Say how many bytes were read."""
        return self._position

    def seek(self, position: int) -> int:
        """Read on up to a position, or to the end; there is no way back."""
        if position < self._position:
            raise ValueError("an archive that leads backward")
        while self._position < position and self.read(min(CHUNK_BYTES, position - self._position)):
            pass
        return self._position


def _find_fault(name: str) -> str | None:
    parts = name.split("/")
    faults = {
        "an absolute path": name.startswith("/"),
        "a path with a backslash": "\\" in name,
        "a path with a drive": any(re.match("[A-Za-z]:", part) for part in parts),
        "a path that leads out of its folder": ".." in parts,
        f"a path of more than {MOST_LEVELS} levels": len(parts) > MOST_LEVELS,
        "which is no name for a file": "\0" in name,
    }
    return next((fault for fault, is_there in faults.items() if is_there), None)
