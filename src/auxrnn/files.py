"""Files and folders: atomic writes, checksums, locks between processes, the user's cache, sizes in words."""

import hashlib
import logging
import os
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from auxrnn.errors import RunError

CACHE_DIR_VARIABLE = "AUXRNN_CACHE_DIR"

logger = logging.getLogger(__name__)


def write_aside(path: Path, content: bytes | str) -> None:
    """Write a file atomically: a crash leaves the old one or the new one, never half of either."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with aside.open("xb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
            flush(aside)
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        # The folder itself, so that the rename survives a power cut.
        flush(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_read(path: Path | str, error: OSError) -> RunError:
    """Return the error for a file that cannot be read: why, and what to do."""
    reason = error.strerror or "unknown reason"
    return RunError(f"{path} cannot be read ({reason}); check that it is there and that you may read it")


def cannot_write(path: Path, error: OSError) -> RunError:
    """Return an error that says which file could not be written, why, and what to do."""
    return RunError(f"cannot write {path} ({error.strerror}); free some space there or choose another folder")


def flush(path: Path) -> None:
    """Force a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def find_checksum(path: Path | str, kind: str = "sha256") -> str:
    """Return the checksum of a file's content."""
    try:
        with open(path, "rb") as content:  # noqa: PTH123 - may be one of many thousands, and Path is slower
            return hashlib.file_digest(content, kind).hexdigest()
    except OSError as error:
        raise cannot_read(path, error) from error


def checksum_files(files: Sequence[Path], *, appearance: str | None = None) -> str:
    """Return the checksum of some files: of their contents, and of their names below the folder they share.

    Contents are read once. The checksum is remembered in the cache for as long as paths, sizes and times of
    modification stay the same (`appearance`, where the caller knows them already).
    """
    known = cache_dir() / "checksums" / (appearance or find_appearance(files))
    if known.is_file():
        return known.read_text().strip()
    names = [os.path.abspath(file) for file in files]  # noqa: PTH100 - many thousands, and Path.absolute is slower
    root = os.path.commonpath([os.path.dirname(name) for name in names])  # noqa: PTH120 - the same
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{os.path.relpath(name, root)}\0{find_checksum(name)}\0".encode(errors="surrogateescape"))
    write_aside(known, digest.hexdigest() + "\n")
    return digest.hexdigest()


def find_appearance(files: Sequence[Path]) -> str:
    """Return a digest of the paths of files, their sizes and when they were last modified."""
    here, digest = Path.cwd(), hashlib.sha256()
    for file in files:
        try:
            status = os.stat(file)  # noqa: PTH116 - many thousands, and Path.stat is slower
        except OSError as error:
            raise cannot_read(file, error) from error
        seen = f"{os.path.join(here, file)}\0{status.st_size}\0{status.st_mtime_ns}\0"  # noqa: PTH118 - the same
        digest.update(seen.encode(errors="surrogateescape"))
    return digest.hexdigest()


@contextmanager
def locked(path: Path, *, waiting_for: str) -> Iterator[None]:
    """Hold a lock between processes; it ends with the process, however that ends, and its file goes with it."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 - slow to import, and rarely needed

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning("waiting for another process that is %s", waiting_for)
        lock.acquire()
    try:
        yield
    finally:
        # Who waits for a file that is gone by then makes it anew.
        path.unlink(missing_ok=True)
        lock.release()


def user_cache() -> Path:
    """Return the folder for downloads and decoded data of this user."""
    default = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or default).expanduser() / "auxrnn"


def cache_dir() -> Path:
    """Return the folder for decoded data: $AUXRNN_CACHE_DIR, else one in the user's cache."""
    return Path(os.environ.get(CACHE_DIR_VARIABLE) or user_cache() / "decoded").expanduser()


def describe_bytes(count: int) -> str:
    """Return a number of bytes in the largest unit that keeps it above one."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def printable(text: str | Path) -> str:
    """Return a name on one line that every terminal can show."""
    return "".join(character if character.isprintable() else "?" for character in str(text))
