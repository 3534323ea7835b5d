"""What files hold, as one checksum, remembered for as long as the files look the same from outside."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from auxrnn.data.folders import name_files
from auxrnn.errors import RunError
from auxrnn.files import write_aside


def find_checksum(files: Sequence[Path], *, memory: Path, appearance: str | None = None) -> str:
    """Give the checksum of some files: of their contents, and of their names below the folder they share.

    Contents are read once. Then the checksum is kept in the folder `memory` under the files' paths, sizes and times of
    change, so that looking at these is enough; whoever has looked already gives what `describe_appearance` gave.
    """
    known = memory / (appearance or describe_appearance(files))
    if known.is_file():
        return known.read_text().strip()
    checksum = _read_checksum(files)
    write_aside(known, checksum + "\n")
    return checksum


def describe_appearance(files: Sequence[Path]) -> str:
    """Give a digest of the paths of files, their sizes and when they were last changed."""
    here = Path.cwd()
    seen = []
    for name in name_files(files):
        try:
            status = os.stat(name)  # noqa: PTH116 - a hundred thousand times, and Path.stat is slower
        except OSError as error:
            raise _cannot_read(name, error) from error
        seen.append(f"{os.path.join(here, name)}\0{status.st_size}\0{status.st_mtime_ns}\0")  # noqa: PTH118 - the same
    return hashlib.sha256("".join(seen).encode(errors="surrogateescape")).hexdigest()


def _read_checksum(files: Sequence[Path]) -> str:
    names = [os.path.abspath(name) for name in name_files(files)]  # noqa: PTH100 - a hundred thousand times
    root = os.path.commonpath([os.path.dirname(name) for name in names])  # noqa: PTH120 - the same
    digest = hashlib.sha256()
    for name in names:
        try:
            with Path(name).open("rb") as content:
                found = hashlib.file_digest(content, "sha256").hexdigest()
        except OSError as error:
            raise _cannot_read(name, error) from error
        digest.update(f"{os.path.relpath(name, root)}\0{found}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _cannot_read(name: str, error: OSError) -> RunError:
    return RunError(f"{name} cannot be read ({error.strerror}); check that it is there and its permissions")
