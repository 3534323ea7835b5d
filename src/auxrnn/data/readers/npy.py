"""Arrays in .npy and .npz files, read block by block; what their headers promise is checked first.

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
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Shaped
from numpy.lib import format as npy

from auxrnn.errors import RunError

HEADER_BYTES = 2**14
"""More than numpy accepts as a header, which it refuses from 10,000 characters on."""
BLOCK_BYTES = 2**22
LARGEST_LOADED = 2**30
"""How many bytes are loaded at once, where an array or a sequence cannot be read in blocks."""
LARGEST_UNPACKED = 2**36
SUSPICIOUS_UNPACKED = 2**30
SUSPICIOUS_RATIO = 1000
HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class StoredArray(NamedTuple):
    """An array that a file was found to hold; its values are not read yet."""

    path: Path
    key: str | None
    """Its name inside an .npz; None for an .npy."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_fortran: bool
    """Whether the first axis changes fastest."""
    offset: int
    """How many bytes of the file come before the values."""

    @property
    def place(self) -> str:
        """The file, and the name inside it, for error messages: "data.npz, x" or "x.npy"."""
        return _name_place(self.path, self.key)

    @property
    def num_bytes(self) -> int:
        """How many bytes the values take."""
        return math.prod(self.shape) * self.dtype.itemsize


def list_keys(path: Path) -> list[str]:
    """Return the names of the arrays in an .npz; raise `RunError` for a zip bomb."""
    with _telling_damage(str(path)), path.open("rb") as file, zipfile.ZipFile(file) as archive:
        packed = os.fstat(file.fileno()).st_size
        unpacked = sum(member.file_size for member in archive.infolist())
        is_bomb = unpacked > SUSPICIOUS_UNPACKED and unpacked > SUSPICIOUS_RATIO * packed
        if is_bomb or unpacked > LARGEST_UNPACKED:
            found = f"would unpack from {packed:,} to {unpacked:,} bytes, which is refused"
            raise RunError(f"{path} {found}; save large arrays as .npy files instead")
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def open_array(path: Path, key: str | None, *, kinds: str, cure: str) -> StoredArray:
    """Read the header of an array; raise `RunError` unless it is of these kinds of type, whole and not empty."""
    with _telling_damage(_name_place(path, key)), _open_bytes(path, key) as (file, size):
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


def load_array(stored: StoredArray) -> Shaped[np.ndarray, "..."]:
    """Return all of an array: mapped from an .npy, loaded from an .npz."""
    order: Literal["C", "F"] = "F" if stored.is_fortran else "C"
    with _telling_damage(stored.place):
        if stored.key is None:
            mapped = np.memmap(stored.path, stored.dtype, "r", stored.offset, stored.shape, order)
            # A memmap is several times slower to index than the plain array that it is.
            return mapped.view(np.ndarray)
        if stored.num_bytes > LARGEST_LOADED:
            what = f"takes {stored.num_bytes:,} bytes that can only be loaded at once"
            raise RunError(f"{stored.place} {what}; save it as an .npy file, or in the order of np.ascontiguousarray")
        with _open_bytes(stored.path, stored.key) as (file, _size):
            file.read(stored.offset)
            return np.frombuffer(file.read(stored.num_bytes), stored.dtype).reshape(stored.shape, order=order)


def read_blocks(stored: StoredArray) -> Iterator[Shaped[np.ndarray, "..."]]:
    """Yield an array in blocks of some entries of its first axis, in constant memory."""
    entry_bytes = stored.num_bytes // stored.shape[0]
    starts = range(0, stored.shape[0], max(1, BLOCK_BYTES // entry_bytes))
    if stored.key is None or stored.is_fortran:
        whole = load_array(stored)
        yield from (whole[start : start + starts.step] for start in starts)
        return
    with _telling_damage(stored.place), _open_bytes(stored.path, stored.key) as (file, _size):
        file.read(stored.offset)
        for start in starts:
            num_entries = min(starts.step, stored.shape[0] - start)
            data = file.read(num_entries * entry_bytes)
            yield np.frombuffer(data, stored.dtype).reshape(num_entries, *stored.shape[1:])


def _name_place(path: Path, key: str | None) -> str:
    if key is None:
        return str(path)
    return f"{path}, {key}" if key.isprintable() else f"{path}, {key!r}"


@contextmanager
def _telling_damage(place: str) -> Iterator[None]:
    try:
        yield
    except RunError:
        raise
    except OSError as error:
        found = f"cannot be read ({error.strerror or 'it is damaged'})"
        raise RunError(f"{place} {found}; check that the file is there") from error
    except Exception as error:  # numpy and zipfile report damage by many kinds of exception
        raise RunError(
            f"{place} cannot be read (it is damaged or of another kind); save it with numpy again"
        ) from error


@contextmanager
def _open_bytes(path: Path, key: str | None) -> Iterator[tuple[io.BufferedIOBase, int]]:
    """Open the bytes of an array in the .npy format, with their number."""
    with path.open("rb") as file:
        if key is None:
            yield file, os.fstat(file.fileno()).st_size
            return
        with zipfile.ZipFile(file) as archive, archive.open(f"{key}.npy") as member:
            assert isinstance(member, zipfile.ZipExtFile)
            yield member, archive.getinfo(f"{key}.npy").file_size


def _read_header(path: Path, key: str | None, file: io.BufferedIOBase) -> StoredArray:
    # Numpy would trust the length of the header and read as much; these first bytes hold any honest one.
    beginning = io.BytesIO(file.read(HEADER_BYTES))
    read = HEADER_READERS[npy.read_magic(beginning)]
    with warnings.catch_warnings():
        # Numpy warns about headers written by Python 2, which are fine.
        warnings.simplefilter("ignore")
        shape, is_fortran, dtype = read(beginning)
    return StoredArray(path, key, shape, dtype, is_fortran, beginning.tell())
