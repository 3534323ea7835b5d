"""Writing files so that a crash leaves the old one or the new one, never half of either."""

import os
import tempfile
from pathlib import Path

from auxrnn.errors import RunError


def write_aside(path: Path, content: bytes | str) -> None:
    """Write to a file beside `path`, flush it to the disk, and rename it; on failure nothing is left behind."""
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
        _flush_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> RunError:
    """Say in one sentence that a file could not be written, why, and what to do."""
    return RunError(f"cannot write {path} ({error.strerror}); free some space there or choose another folder")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _flush_folder(folder: Path) -> None:
    """Flush the folder itself, so that the rename survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
