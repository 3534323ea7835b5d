"""Files and folders: atomic writes, locks between processes, the user's cache, sizes in words."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from auxrnn.errors import RunError

CACHE_DIR_VARIABLE = "AUXRNN_CACHE_DIR"

logger = logging.getLogger(__name__)


def write_aside(path: Path, content: bytes | str) -> None:
    """Write a file atomically: a crash leaves the old one or the new one, never half of either."""
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(aside).chmod(0o666 & ~_umask())
            Path(aside).replace(path)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise
        # The folder itself, so that the rename survives a power cut.
        flush(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_read(path: Path, error: OSError) -> RunError:
    """Return the error for a file that cannot be read: why, and what to do."""
    return RunError(f"{path} cannot be read ({error.strerror or 'unknown reason'}); check that the file is there")


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
