"""Arrays in .npy and .npz files, read piece by piece, without belief in what their headers promise.

Nothing is unpickled, and no memory is taken before the file is known to hold what its header says.
"""

import io
import math
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Shaped
from numpy.lib import format as npy

from auxrnn.data.examples import Problems
from auxrnn.errors import RunError

HEADER_BYTES = 2**14
"""More than numpy takes for a header, which it refuses from 10,000 characters on."""
BLOCK_BYTES = 2**22
LARGEST_LOADED = 2**30
"""How many bytes are loaded at once, where an array or a sequence cannot be read piece by piece."""
LARGEST_UNPACKED = 2**36
SUSPICIOUS_UNPACKED = 2**30
SUSPICIOUS_RATIO = 1000
HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@runtime_checkable
class Readable(Protocol):
    """An open file, or an open member of an archive."""

    def read(self, size: int, /) -> bytes:
        """Give the next bytes, as many as there are."""


class StoredArray(NamedTuple):
    """An array that a file was found to hold; its values are not read yet."""

    path: Path
    key: str | None
    """Its name inside of an .npz; None for an .npy."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_fortran: bool
    """Whether the first axis changes fastest."""
    offset: int
    """How many bytes of the file come before the values."""

    @property
    def place(self) -> str:
        """The file, and the name inside it, for error messages."""
        return place_of(self.path, self.key)

    @property
    def num_bytes(self) -> int:
        """How many bytes the values take."""
        return math.prod(self.shape) * self.dtype.itemsize


def place_of(path: Path, key: str | None) -> str:
    """Name an array for error messages: "data.npz, x" or "x.npy"."""
    if key is None:
        return str(path)
    return f"{path}, {key}" if key.isprintable() else f"{path}, {key!r}"


def list_keys(path: Path) -> list[str]:
    """Give the names of the arrays in an .npz; raise `RunError` for a bomb."""
    with _telling_damage(Problems(), str(path)), path.open("rb") as file, zipfile.ZipFile(file) as archive:
        packed = os.fstat(file.fileno()).st_size
        unpacked = sum(member.file_size for member in archive.infolist())
        is_bomb = unpacked > SUSPICIOUS_UNPACKED and unpacked > SUSPICIOUS_RATIO * packed
        if is_bomb or unpacked > LARGEST_UNPACKED:
            raise RunError(
                f"{path} would unpack from {packed:,} to {unpacked:,} bytes, which is refused; "
                "save large arrays as .npy files instead"
            )
        names = archive.namelist()
    return [name.removesuffix(".npy") for name in names if name.endswith(".npy")]


def open_array(path: Path, key: str | None, *, kinds: str, cure: str) -> StoredArray:
    """Read the header of an array; raise `RunError` unless it is of these kinds of type, whole and not empty."""
    with _telling_damage(Problems(), place_of(path, key)), _open_bytes(path, key) as (file, size):
        found = _read_header(path, key, file)
        if found.dtype.kind not in kinds:
            is_pickled = found.dtype.hasobject
            what = "Python objects, which are never loaded" if is_pickled else f"values of type {found.dtype.name}"
            raise RunError(f"{found.place} holds {what}; {cure}")
        if size != found.offset + found.num_bytes or min(found.shape, default=0) < 0:
            what = f"its header says {found.offset + found.num_bytes:,} bytes and it has {size:,}"
            raise RunError(f"{found.place} is damaged ({what}); save it with numpy again")
        if not found.num_bytes:
            raise RunError(f"{found.place} is empty, with the shape {list(found.shape)}; {cure}")
    return found


def load_column(stored: StoredArray) -> Shaped[np.ndarray, " N"]:
    """Give all of an array as one column: mapped from an .npy, loaded from an .npz."""
    with _telling_damage(Problems(), stored.place):
        array = _load(stored)
    return array.reshape(-1)


def read_blocks(stored: StoredArray, problems: Problems) -> Iterator[Shaped[np.ndarray, "..."]]:
    """Give an array in blocks of some entries of its first axis, in constant memory; stop where it is damaged."""
    entry_bytes = stored.num_bytes // stored.shape[0]
    starts = range(0, stored.shape[0], max(1, BLOCK_BYTES // entry_bytes))
    with _telling_damage(problems, stored.place):
        if stored.key is None or stored.is_fortran:
            whole = _load(stored)
            for start in starts:
                yield whole[start : start + starts.step]
            return
        with _open_bytes(stored.path, stored.key) as (file, _size):
            file.read(stored.offset)
            for start in starts:
                num_entries = min(starts.step, stored.shape[0] - start)
                data = file.read(num_entries * entry_bytes)
                yield np.frombuffer(data, stored.dtype).reshape(num_entries, *stored.shape[1:])


@contextmanager
def _telling_damage(problems: Problems, place: str) -> Iterator[None]:
    try:
        yield
    except RunError:
        raise
    except OSError as error:
        problems.refuse(place, f"cannot be read ({error.strerror or 'it is damaged'})", "check that the file is there")
    except Exception:  # numpy and zipfile report damage by many kinds of exception
        problems.refuse(place, "cannot be read (it is damaged or of another kind)", "save it with numpy again")


@contextmanager
def _open_bytes(path: Path, key: str | None) -> Iterator[tuple[Readable, int]]:
    """Open the bytes of an array in the .npy format, with their number."""
    with path.open("rb") as file:
        if key is None:
            yield file, os.fstat(file.fileno()).st_size
            return
        with zipfile.ZipFile(file) as archive, archive.open(f"{key}.npy") as member:
            yield member, archive.getinfo(f"{key}.npy").file_size


def _load(stored: StoredArray) -> Shaped[np.ndarray, "..."]:
    order: Literal["C", "F"] = "F" if stored.is_fortran else "C"
    if stored.key is None:
        mapped = np.memmap(stored.path, stored.dtype, mode="r", offset=stored.offset, shape=stored.shape, order=order)
        # A memmap is several times slower to index than the plain array that it is.
        return mapped.view(np.ndarray)
    if stored.num_bytes > LARGEST_LOADED:
        what = f"takes {stored.num_bytes:,} bytes that can only be loaded at once"
        raise RunError(f"{stored.place} {what}; save it as an .npy file, or in the order of np.ascontiguousarray")
    with _open_bytes(stored.path, stored.key) as (file, _size):
        file.read(stored.offset)
        data = file.read(stored.num_bytes)
    return np.frombuffer(data, stored.dtype).reshape(stored.shape, order=order)


def _read_header(path: Path, key: str | None, file: Readable) -> StoredArray:
    # Numpy would believe the length of the header and read as much; these first bytes hold any honest one.
    beginning = io.BytesIO(file.read(HEADER_BYTES))
    read = HEADER_READERS[npy.read_magic(beginning)]
    with warnings.catch_warnings():
        # Headers of Python 2 are fine, and a damaged one is refused below.
        warnings.simplefilter("ignore")
        shape, is_fortran, dtype = read(beginning)
    return StoredArray(path, key, shape, dtype, is_fortran, beginning.tell())
