"""Archives are unpacked whole or not at all, and nothing in them is trusted: neither names nor sizes."""

import bz2
import gzip
import lzma
import shutil
import stat
import tarfile
import tempfile
import zipfile
from contextlib import closing
from pathlib import Path
from typing import IO, cast

from auxrnn.data.fetching.unpacking import CHUNK_BYTES, Limits, Reader, Unpacking
from auxrnn.errors import RunError

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
"""How the names of archives end; what they are, their first bytes say."""
ZIP_MAGIC = (b"PK\3\4", b"PK\5\6", b"PK\7\10")
END_OF_TAR = bytes(tarfile.BLOCKSIZE)
IS_ENCRYPTED = 1


def unpack(archive: Path, target: Path, *, limits: Limits | None = None) -> None:
    """Unpack a zip, or a tar of any packing, into a new folder, which appears only when it is complete.

    If the folder is there, nothing is done. Where two processes unpack at once, the folder of the first stays. On
    failure nothing is left behind, and a `RunError` says why.
    """
    if target.is_dir():
        return
    if not archive.is_file():
        raise RunError(f"{archive} is not a file; give an archive ({', '.join(ARCHIVE_SUFFIXES)})")
    if target.exists():
        raise RunError(f"{target} is in the way of what {archive} unpacks to; move it away")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise _cannot_write(archive, target, error) from error
    try:
        _fill(aside, archive, target, limits or Limits())
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _fill(aside: Path, archive: Path, target: Path, limits: Limits) -> None:
    unpacking = Unpacking(archive, aside, limits, packed_bytes=archive.stat().st_size)
    try:
        unpack_members = _unpack_zip if _is_zip(archive) else _unpack_tar
        unpack_members(unpacking)
        # A folder made by mkdtemp is for its owner alone; data may be shared.
        aside.chmod(0o755)
        aside.rename(target)
    except RunError:
        raise
    except Exception as error:  # each kind of archive reports damage by many kinds of exception
        if target.is_dir():
            return
        if isinstance(error, OSError) and error.strerror:
            raise _cannot_write(archive, target, error) from error
        where = f" at {unpacking.shown_member}" if unpacking.member else ""
        if isinstance(error, NotImplementedError):
            raise RunError(f"{archive} is packed in a way that is not known here{where}; pack it as .tar.gz") from error
        raise RunError(f"{archive} is truncated or damaged{where}; get it again") from error


def _unpack_zip(unpacking: Unpacking) -> None:
    with zipfile.ZipFile(unpacking.archive) as members:
        for info in members.infolist():
            parts = unpacking.begin(info.filename)
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                unpacking.refuse("a link or a device")
            if info.flag_bits & IS_ENCRYPTED:
                unpacking.refuse("which is encrypted")
            if info.is_dir() or stat.S_ISDIR(mode):
                unpacking.make_folder(parts)
                continue
            if not parts:
                unpacking.refuse("which has no name")
            with members.open(info) as content:
                unpacking.write(parts, Reader(content, unpacking.count), size=info.file_size)


def _unpack_tar(unpacking: Unpacking) -> None:
    with unpacking.archive.open("rb") as packed, closing(_open_packed(packed)) as file:
        reader = Reader(file, unpacking.count)
        with tarfile.open(fileobj=cast("IO[bytes]", reader), mode="r:") as members:
            while (member := members.next()) is not None:
                _unpack_member(unpacking, members, member)
                # It would remember them all, and has no documented way to forget.
                members.members.clear()  # type: ignore[attr-defined]
        # It takes a damaged header for the end, which is a block of zeros.
        if reader.last != END_OF_TAR:
            raise EOFError("the end is missing")
        # What is packed has a checksum at its own end.
        while reader.read(CHUNK_BYTES):
            pass


def _unpack_member(unpacking: Unpacking, members: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    parts = unpacking.begin(member.name)
    if member.isdir():
        unpacking.make_folder(parts)
        return
    if not member.isreg() or member.issparse():
        unpacking.refuse("a link, a device or a sparse file")
    content = members.extractfile(member)
    if not parts or content is None:
        unpacking.refuse("which has no name")
    with content:
        unpacking.write(parts, content, size=member.size)


def _open_packed(file: IO[bytes]) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile | IO[bytes]:
    """Give what a packed file holds; unlike those of `tarfile`, these readers notice a missing end."""
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(file)
    return lzma.LZMAFile(file) if magic == b"\xfd7zXZ\0" else file


def _is_zip(archive: Path) -> bool:
    with archive.open("rb") as file:
        return file.read(4) in ZIP_MAGIC


def _cannot_write(archive: Path, target: Path, error: OSError) -> RunError:
    cure = "check both, and whether there is space"
    return RunError(f"{archive} cannot be unpacked into {target.parent} ({error.strerror}); {cure}")
