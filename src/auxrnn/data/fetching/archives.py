"""Archives are unpacked completely or not at all, and nothing in them is trusted: neither names nor sizes."""

import bz2
import gzip
import lzma
import stat
import tarfile
import tempfile
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, NoReturn, cast

from auxrnn.errors import RunError

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
"""Endings of archive names; the kind of an archive is decided by its first bytes."""
END_OF_TAR = bytes(tarfile.BLOCKSIZE)
CHUNK_BYTES = 2**18
MOST_HEADER_BYTES = 2**20
MOST_LEVELS = 100
IS_ENCRYPTED = 1


class Limits(NamedTuple):
    """What an archive may unpack to; one that unpacks to more was made to fill the disk."""

    num_members: int = 1_000_000
    num_bytes: int = 64 * 2**30
    ratio: int = 1000
    """How many times its own size, once more than `free_bytes` are unpacked."""
    free_bytes: int = 2**30


LIMITS = Limits()


def unpack(archive: Path, target: Path, *, limits: Limits = LIMITS) -> None:
    """Unpack a zip, or a tar with any compression, into a new folder that appears only when it is complete.

    If everything lies in one folder, that folder is left out. If the target exists, nothing is done. On failure
    nothing is left behind, and a `RunError` says why.
    """
    if target.is_dir():
        return
    if not archive.is_file():
        raise RunError(f"{archive} is not a file; give an archive ({', '.join(ARCHIVE_SUFFIXES)})")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as aside:
            folder = Path(aside) / "content"
            folder.mkdir()
            _extract(archive, folder, limits)
            _skip_outer_folders(folder).rename(target)
    except OSError as error:
        # Another process may have been faster.
        if not target.is_dir():
            cure = "check both, and whether there is space"
            raise RunError(f"{archive} cannot be unpacked into {target} ({error.strerror}); {cure}") from error


def _extract(archive: Path, folder: Path, limits: Limits) -> None:
    budget = UnpackingBudget(archive, limits, archive.stat().st_size)
    try:
        with archive.open("rb") as file:
            is_zip = file.read(2) == b"PK"
        (_extract_zip if is_zip else _extract_tar)(archive, folder, budget)
    except RunError:
        raise
    except Exception as error:  # each kind of archive reports damage by many kinds of exception
        if isinstance(error, OSError) and error.strerror:
            raise
        where = f" at {budget.member!r}" if budget.member else ""
        if isinstance(error, NotImplementedError):
            raise RunError(f"{archive} has an unknown compression{where}; pack it as .tar.gz") from error
        raise RunError(f"{archive} is truncated or damaged{where}; get it again") from error


def _skip_outer_folders(folder: Path) -> Path:
    visible = [entry for entry in folder.iterdir() if not entry.name.startswith((".", "__MACOSX"))]
    return _skip_outer_folders(visible[0]) if len(visible) == 1 and visible[0].is_dir() else folder


@dataclass
class UnpackingBudget:
    """How much of an archive is unpacked, and what of it is refused."""

    archive: Path
    limits: Limits
    packed_bytes: int
    num_bytes: int = 0
    num_members: int = 0
    member: str = ""

    def begin(self, name: str) -> None:
        """Count the next member, and refuse a name that leads elsewhere."""
        self.member = name[:100]
        self.num_members += 1
        if self.num_members > self.limits.num_members:
            self.refuse(f"one of more than {self.limits.num_members:,} members")
        parts = name.split("/")
        if name.startswith("/") or ".." in parts:
            self.refuse("a path that leads out of its folder")
        if len(parts) > MOST_LEVELS:
            self.refuse(f"a path of more than {MOST_LEVELS} levels")

    def spend(self, num_bytes: int) -> None:
        """Count unpacked bytes, and refuse too many."""
        self.num_bytes += num_bytes
        if self.num_bytes > self.limits.num_bytes:
            self.refuse(f"with which it unpacks to more than {self.limits.num_bytes:,} bytes")
        if self.num_bytes > max(self.limits.free_bytes, self.limits.ratio * self.packed_bytes):
            self.refuse(f"with which it unpacks to more than {self.limits.ratio:,} times its size")

    def refuse(self, what: str) -> NoReturn:
        """Raise an error that says what is wrong with the current member."""
        raise RunError(f"{self.archive} holds {self.member!r}, {what}; unpack it yourself and give the folder")


def _extract_zip(archive: Path, folder: Path, budget: UnpackingBudget) -> None:
    with zipfile.ZipFile(archive) as members:
        for info in members.infolist():
            budget.begin(info.filename)
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                budget.refuse("a link or a device")
            if info.flag_bits & IS_ENCRYPTED:
                budget.refuse("which is encrypted")
            # No more than this comes out, whatever is packed.
            budget.spend(info.file_size)
            path = Path(members.extract(info, folder))
            if path.is_file() and path.stat().st_size != info.file_size:
                raise EOFError(f"{info.file_size} bytes are announced")


def _extract_tar(archive: Path, folder: Path, budget: UnpackingBudget) -> None:
    with archive.open("rb") as packed, closing(_decompress(packed)) as file:
        reader = TarReader(file, budget)
        with tarfile.open(fileobj=cast("IO[bytes]", reader), mode="r:") as members:
            while (member := members.next()) is not None:
                budget.begin(member.name)
                if not member.isdir() and (not member.isreg() or member.issparse()):
                    budget.refuse("a link, a device or a sparse file")
                members.extract(member, folder, filter="data")
                # It would remember a million of them, and has no documented way to forget.
                members.members.clear()  # type: ignore[attr-defined]
        # A damaged header is taken for the end, which is a block of zeros.
        if reader.last != END_OF_TAR:
            raise EOFError("the end is missing")
        # Compressed data has a checksum at its own end.
        while reader.read(CHUNK_BYTES):
            pass


def _decompress(file: IO[bytes]) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile | IO[bytes]:
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(file)
    return lzma.LZMAFile(file) if magic == b"\xfd7zXZ\0" else file


class TarReader:
    """A file that `tarfile` reads from beginning to end; all bytes are counted, and none are read twice."""

    def __init__(self, file: gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile | IO[bytes], budget: UnpackingBudget) -> None:
        self._file = file
        self._budget = budget
        self._position = 0
        self.last = b""

    def read(self, num_bytes: int) -> bytes:
        """Return the next bytes; fewer only at the end."""
        # Members are copied in smaller chunks: only a damaged header asks for more at once, or for a negative number.
        if not 0 <= num_bytes <= MOST_HEADER_BYTES:
            raise ValueError(f"a header of {num_bytes} bytes")
        self.last = self._file.read(num_bytes)
        self._position += len(self.last)
        self._budget.spend(len(self.last))
        return self.last

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._position

    def seek(self, position: int) -> int:
        """Read on up to a position, or to the end."""
        if position < self._position:
            raise ValueError("an archive that leads backward")
        while self._position < position and self.read(min(CHUNK_BYTES, position - self._position)):
            pass
        return self._position
