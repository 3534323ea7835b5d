"""Arrays in .npy files, mapped into memory, and in .npz files, read block by block.

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

from auxrnn.data.examples import refusing_damage
from auxrnn.data.folders import printable
from auxrnn.errors import RunError

HEADER_BYTES = 2**14
"""More than numpy accepts as a header, which it refuses from 10,000 characters on."""
BLOCK_BYTES = 2**22
LARGEST_BLOCK = 2**30
"""How many bytes of an .npz are loaded at once, where it cannot be read in smaller blocks."""
LARGEST_UNPACKED, SUSPICIOUS_UNPACKED, SUSPICIOUS_RATIO = 2**36, 2**30, 1000
SAVE_AGAIN = "save it with numpy again"
HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class StoredArray(NamedTuple):
    """An array that a file was found to hold; its values are not read yet."""

    place: str
    """The file, and the name inside it, for error messages: "data.npz, x" or "x.npy"."""
    path: Path
    key: str | None
    """Its name inside an .npz; None for an .npy."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    offset: int
    """How many bytes of the file come before the values."""

    @property
    def num_bytes(self) -> int:
        """How many bytes the values take."""
        return math.prod(self.shape) * self.dtype.itemsize


def list_keys(path: Path) -> list[str]:
    """Return the names of the arrays in an .npz; raise `RunError` for a zip bomb."""
    with refusing_damage(path, SAVE_AGAIN), zipfile.ZipFile(path) as archive:
        packed, unpacked = path.stat().st_size, sum(member.file_size for member in archive.infolist())
        is_bomb = unpacked > SUSPICIOUS_UNPACKED and unpacked > SUSPICIOUS_RATIO * packed
        if is_bomb or unpacked > LARGEST_UNPACKED:
            found = f"would unpack from {packed:,} to {unpacked:,} bytes, which is refused"
            raise RunError(f"{path} {found}; save large arrays as .npy files instead")
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def open_array(path: Path, key: str | None, *, kinds: str, cure: str) -> StoredArray:
    """Read the header of an array; raise `RunError` unless it is of these kinds of type, whole and not empty."""
    place = str(path) if key is None else printable(f"{path}, {key}")
    with refusing_damage(place, SAVE_AGAIN), _open_bytes(path, key) as (file, size), warnings.catch_warnings():
        # Numpy warns about headers written by Python 2, which are fine.
        warnings.simplefilter("ignore")
        # It would also trust the length of the header and read as much; these first bytes hold any honest one.
        beginning = io.BytesIO(file.read(HEADER_BYTES))
        shape, is_fortran, dtype = HEADER_READERS[npy.read_magic(beginning)](beginning)
        found = StoredArray(place, path, key, shape, dtype, "F" if is_fortran else "C", beginning.tell())
    if dtype.kind not in kinds:
        what = "Python objects, which are never loaded" if dtype.hasobject else f"values of type {dtype.name}"
        raise RunError(f"{place} holds {what}; {cure}")
    if size != found.offset + found.num_bytes or min(shape, default=0) < 0:
        what = f"its header says {found.offset + found.num_bytes:,} bytes and it has {size:,}"
        raise RunError(f"{place} is damaged ({what}); {SAVE_AGAIN}")
    if not found.num_bytes or not shape:
        raise RunError(f"{place} has no entries, with the shape {list(shape)}; {cure}")
    return found


def load_array(stored: StoredArray) -> Shaped[np.ndarray, "..."]:
    """Return all of an array: mapped from an .npy, loaded from an .npz."""
    blocks = list(read_blocks(stored))
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def read_blocks(stored: StoredArray) -> Iterator[Shaped[np.ndarray, "..."]]:
    """Yield some entries of the first axis at a time; an .npy is mapped as one block, which takes no memory."""
    place, path, key, shape, dtype, order, offset = stored
    with refusing_damage(place, SAVE_AGAIN):
        if key is None:
            # A memmap is several times slower to index than the plain array that it is.
            yield np.memmap(path, dtype, "r", offset, shape, order).view(np.ndarray)
            return
        row_bytes = stored.num_bytes // shape[0]
        step = max(1, BLOCK_BYTES // row_bytes) if order == "C" else shape[0]
        if step * row_bytes > LARGEST_BLOCK:
            what = f"takes {step * row_bytes:,} bytes that can only be loaded at once"
            raise RunError(f"{place} {what}; save it as an .npy file, or in the order of np.ascontiguousarray")
        with _open_bytes(path, key) as (file, _size):
            file.read(offset)
            for start in range(0, shape[0], step):
                num_read = min(step, shape[0] - start)
                block = np.frombuffer(file.read(num_read * row_bytes), dtype)
                yield block.reshape((num_read, *shape[1:]), order=order)


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
