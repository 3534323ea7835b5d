"""Archives are unpacked completely or not at all, and nothing in them is trusted: neither names nor sizes."""

import bz2
import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from auxrnn.errors import RunError
from auxrnn.files import locked

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
"""Endings of archive names; the kind of an archive is decided by its first bytes."""
CHUNK_BYTES = 2**18
# An archive that unpacks to more was made to fill the disk or the memory.
MOST_MEMBERS = 1_000_000
MOST_LEVELS = 100
MOST_HEADER_BYTES = 2**20
MOST_BYTES = 64 * 2**30
MOST_RATIO, FREE_BYTES = 1000, 2**30
"""An archive may unpack to this many times its own size, and to this many bytes in any case."""
IS_ENCRYPTED = 1
OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
"""How a compressed tar is opened, by its first bytes."""


def unpack(archive: Path, target: Path) -> None:
    """Unpack a zip, or a tar with any compression, into a new folder that appears only when it is complete.

    If everything lies in one folder, that folder is left out. If the target exists, nothing is done. On failure
    nothing is left behind, and a `RunError` says why.
    """
    aside, lock = target.with_name(f".{target.name}"), target.with_name(f".{target.name}.lock")
    if target.is_dir() and not lock.exists():
        return
    if not target.is_dir() and not archive.is_file():
        raise RunError(f"{archive} is not a file; give an archive ({', '.join(ARCHIVE_SUFFIXES)})")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock, waiting_for=f"unpacking {archive}"), _emptied(aside):
            if not target.is_dir():
                aside.mkdir()
                _extract(archive, aside)
                _skip_outer_folders(aside).rename(target)
    except OSError as error:
        cure = "check both, and whether there is space"
        raise RunError(f"{archive} cannot be unpacked into {target} ({error.strerror}); {cure}") from error


@contextmanager
def _emptied(folder: Path) -> Iterator[None]:
    """Remove a folder before, which a killed process may have left, and after; earlier versions added to its name."""
    for left in [folder, *folder.parent.glob(f"{folder.name}-*")]:
        shutil.rmtree(left, ignore_errors=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _extract(archive: Path, folder: Path) -> None:
    budget = UnpackingBudget(archive)
    try:
        with archive.open("rb") as file:
            head = file.read(6)
        if head.startswith(b"PK"):
            _extract_zip(archive, folder, budget)
            return
        opener = next((opener for magic, opener in OPENERS.items() if head.startswith(magic)), open)
        with opener(archive, "rb") as file:
            _extract_tar(file, folder, budget)
    except RunError:
        raise
    except Exception as error:  # each kind of archive reports damage by many kinds of exception
        if isinstance(error, OSError) and error.strerror:
            raise
        where = f" at {budget.member!r}" if budget.member else ""
        raise RunError(f"{archive} is truncated, damaged or of an unknown compression{where}; get it again") from error


def _skip_outer_folders(folder: Path) -> Path:
    visible = [entry for entry in folder.iterdir() if not entry.name.startswith((".", "__MACOSX"))]
    return _skip_outer_folders(visible[0]) if len(visible) == 1 and visible[0].is_dir() else folder


@dataclass
class UnpackingBudget:
    """How much of an archive is unpacked, and what of it is refused."""

    archive: Path
    num_bytes: int = 0
    num_members: int = 0
    member: str = ""

    def begin(self, name: str, num_bytes: int) -> None:
        """Count the next member, and refuse a name that leads elsewhere or a size that is too much."""
        self.member = name[:100]
        self.num_members += 1
        parts = name.split("/")
        if self.num_members > MOST_MEMBERS:
            self.refuse(f"one of more than {MOST_MEMBERS:,} members")
        if name.startswith("/") or ".." in parts:
            self.refuse("a path that leads out of its folder")
        if len(parts) > MOST_LEVELS:
            self.refuse(f"a path of more than {MOST_LEVELS} levels")
        self.spend(num_bytes)

    def spend(self, num_bytes: int) -> None:
        """Count unpacked bytes, and refuse too many."""
        self.num_bytes += num_bytes
        if self.num_bytes > MOST_BYTES:
            self.refuse(f"with which it unpacks to more than {MOST_BYTES:,} bytes")
        if self.num_bytes > max(FREE_BYTES, MOST_RATIO * self.archive.stat().st_size):
            self.refuse(f"with which it unpacks to more than {MOST_RATIO:,} times its size")

    def refuse(self, what: str) -> NoReturn:
        """Raise an error that says what is wrong with the current member."""
        raise RunError(f"{self.archive} holds {self.member!r}, {what}; unpack it yourself and give the folder")


def _extract_zip(archive: Path, folder: Path, budget: UnpackingBudget) -> None:
    with zipfile.ZipFile(archive) as members:
        for info in members.infolist():
            # No more than the announced size comes out, whatever is packed.
            budget.begin(info.filename, info.file_size)
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                budget.refuse("a link or a device")
            if info.flag_bits & IS_ENCRYPTED:
                budget.refuse("which is encrypted")
            path = Path(members.extract(info, folder))
            if path.is_file() and path.stat().st_size != info.file_size:
                raise EOFError(f"{info.file_size} bytes are announced")


def _extract_tar(file: BufferedIOBase, folder: Path, budget: UnpackingBudget) -> None:
    reader = TarReader(file)
    with tarfile.open(fileobj=cast("IO[bytes]", reader), mode="r:") as members:
        while (member := members.next()) is not None:
            if member.size < 0:
                raise ValueError("a member that leads backward")
            budget.begin(member.name, member.size)
            if not member.isdir() and (not member.isreg() or member.issparse()):
                budget.refuse("a link, a device or a sparse file")
            members.extract(member, folder, filter="data")
            # It would remember a million of them, and has no documented way to forget.
            members.members.clear()  # type: ignore[attr-defined]
    # A damaged header is taken for the end, which is a block of zeros.
    if reader.last != bytes(tarfile.BLOCKSIZE):
        raise EOFError("the end is missing")
    # Compressed data has a checksum at its own end.
    while block := file.read(CHUNK_BYTES):
        budget.spend(len(block))


class TarReader:
    """A file that refuses to read a header that would fill the memory, and remembers what it read last."""

    def __init__(self, file: BufferedIOBase) -> None:
        self.seek = file.seek
        self.tell = file.tell
        self.last = b""
        self._file = file

    def read(self, num_bytes: int) -> bytes:
        """Return the next bytes; fewer only at the end."""
        # Members are copied in smaller chunks: only a damaged header asks for more at once, or for a negative number.
        if not 0 <= num_bytes <= MOST_HEADER_BYTES:
            raise ValueError(f"a header of {num_bytes} bytes")
        self.last = self._file.read(num_bytes)
        return self.last
