"""Files and folders: atomic writes, checksums, locks between processes, the user's cache, sizes in words."""

import errno
import fcntl
import hashlib
import json
import logging
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from auxrnn.errors import RunError, UsageError

CACHE_DIR_VARIABLE = "AUXRNN_CACHE_DIR"
SUMS = "sums.json"
"""Holds the checksums of the files beside it, and one of its own."""
NEXT = ".next"
"""Ends the name in the sums under which a file has a second checksum, while it is replaced by another."""
ASIDE = ".aside"
"""Ends the names of files that are being written."""

MISREAD = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)
"""What comes of reading a JSON file that holds something else than was written."""

logger = logging.getLogger(__name__)


def write_aside(path: Path, content: bytes | str) -> None:
    """Write a file atomically: a crash leaves the old one or the new one, never half of either."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{ASIDE}")
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


def remove_asides(folder: Path, name: str = "*") -> None:
    """Remove what a killed process left half-written; the caller holds the lock of whoever writes there."""
    for path in folder.glob(f".{name}.*{ASIDE}"):
        path.unlink(missing_ok=True)


def cannot_read(path: Path | str, error: OSError) -> RunError:
    """Return the error for a file that cannot be read: why, and what to do."""
    reason = error.strerror or "unknown reason"
    return RunError(f"{path} cannot be read ({reason}); check that it is there and that you may read it")


def cannot_write(path: Path, error: OSError) -> RunError:
    """Return an error that says which file could not be written, why, and what to do."""
    return RunError(f"cannot write {path} ({error.strerror}); {find_cure(error)} or choose another folder")


def find_cure(error: OSError) -> str:
    """Return what may help against an error in writing."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return "free some space there" if is_full else "check that you may write there"


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


def digest(content: bytes | str) -> str:
    """Return the checksum of some content."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def write_sums(folder: Path, sums: Mapping[str, str]) -> None:
    """Keep the checksums of some files beside them."""
    write_aside(folder / SUMS, json.dumps({"files": sums, "sha256": digest(json.dumps(sums))}, indent=1) + "\n")


def read_sums(folder: Path) -> dict[str, str]:
    """Return the checksums that were kept in a folder; none where there are none."""
    path = folder / SUMS
    if not path.exists():
        return {}
    with reading(path):
        kept = json.loads(path.read_bytes())
        if kept["sha256"] != digest(json.dumps(kept["files"])):
            raise ValueError("edited")
        return dict(kept["files"])


def read_checked(path: Path) -> bytes:
    """Return a file's content, which must be as its folder's sums say, where there are any."""
    sums = read_sums(path.parent)
    with reading(path):
        content = path.read_bytes()
    if sums and digest(content) not in (sums.get(path.name), sums.get(path.name + NEXT)):
        raise damaged(path)
    return content


def check_sums(folder: Path) -> None:
    """Refuse a folder in which one of the files is not as its sums say."""
    for name in read_sums(folder):
        read_checked(folder / name.removesuffix(NEXT))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say of a file that the block cannot read, or that holds something else than was written, that it is damaged."""
    try:
        yield
    except (OSError, *MISREAD) as error:
        raise damaged(path) from error


def damaged(path: Path) -> RunError:
    """Return the error for a file of a run folder that is not as it was written."""
    cure = "put it back as it was, or train again into another folder"
    if path.suffix == ".safetensors":
        cure = f"delete {path.with_name('model.safetensors')}, and `auxrnn resume {path.parent}` writes it again"
    return RunError(f"{path} is missing, damaged or edited; {cure}")


def checksum_files(files: Sequence[Path], *, appearance: str | None = None) -> str:
    """Return the checksum of some files: of their contents, and of their names below the folder they share.

    Contents are read once. The checksum is remembered in the cache for as long as the files look the same
    (`appearance`, where the caller knows it already).
    """
    appearance = appearance or find_appearance(files)
    known = cache_dir() / "checksums" / appearance
    lock = known.with_suffix(".lock")
    # A lock that a killed process left goes when it is taken and released.
    if (checksum := _recall(known)) is None or lock.exists():
        checksum = checksum or checksum_together(files)
        # Where nothing can be written, nothing is remembered.
        with suppress(OSError, RunError):
            known.parent.mkdir(parents=True, exist_ok=True)
            with locked(lock, waiting_for="reading the same files"):
                remove_asides(known.parent, appearance)
                write_aside(known, f"{checksum} {digest(appearance + checksum)}\n")
    return checksum


def _recall(known: Path) -> str | None:
    """Return the checksum that was remembered under a name; None if it is not there, or not whole."""
    try:
        checksum, proof = known.read_text().split()
    except (OSError, ValueError):
        return None
    return checksum if proof == digest(known.name + checksum) else None


def checksum_together(files: Sequence[Path]) -> str:
    """Read some files and return the checksum of contents and names."""
    names = [os.path.abspath(file) for file in files]  # noqa: PTH100 - many thousands, and Path.absolute is slower
    root = os.path.commonpath([os.path.dirname(name) for name in names])  # noqa: PTH120 - the same
    total = hashlib.sha256()
    for name in names:
        total.update(f"{os.path.relpath(name, root)}\0{find_checksum(name)}\0".encode(errors="surrogateescape"))
    return total.hexdigest()


def find_appearance(files: Sequence[Path]) -> str:
    """Return a digest of what files look like from outside: paths, sizes, places on the disk, times of change."""
    here, seen = Path.cwd(), hashlib.sha256()
    for file in files:
        try:
            status = os.stat(file)  # noqa: PTH116 - many thousands, and Path.stat is slower
        except OSError as error:
            raise cannot_read(file, error) from error
        looks = (os.path.join(here, file), status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)  # noqa: PTH118 - the same
        seen.update("\0".join(map(str, looks)).encode(errors="surrogateescape") + b"\0")
    return seen.hexdigest()


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


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep a second process from training in the same folder; the lock ends with the process, however it ends."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held the lock before may have removed the folder, and another process may have made it anew.
            is_same = os.path.samestat(os.fstat(handle), os.stat(folder))  # noqa: PTH116 - beside a handle
        except (BlockingIOError, FileNotFoundError):
            is_same = False
        if not is_same:
            raise RunError(f"another process is training in {folder}; wait for it or stop it first")
        yield
    finally:
        os.close(handle)


def is_locked(folder: Path) -> bool:
    """Return whether some process is training in a folder."""
    try:
        with lock(folder):
            return False
    except RunError:
        return True


def user_cache() -> Path:
    """Return the folder for downloads and decoded data of this user."""
    default = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return expand(os.environ.get("XDG_CACHE_HOME") or default) / "auxrnn"


def cache_dir() -> Path:
    """Return the folder for decoded data: $AUXRNN_CACHE_DIR, else one in the user's cache."""
    return expand(os.environ.get(CACHE_DIR_VARIABLE) or user_cache() / "decoded")


def expand(path: Path | str) -> Path:
    """Replace ~ and ~NAME at the start of a path by the home folder they mean."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path} begins with a home folder that is not known; give the whole path") from error


def describe_bytes(count: int) -> str:
    """Return a number of bytes in the largest unit that keeps it above one."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def printable(text: str | Path) -> str:
    """Return a name on one line that every terminal can show."""
    return "".join(character if character.isprintable() else "?" for character in str(text))
