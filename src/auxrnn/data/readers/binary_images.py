"""Images as plain bytes: the IDX files of MNIST, and the records of CIFAR-10.

Dimension letters: `N` examples, `H` and `W` rows and columns of an image, `C` its channels, `R` bytes of a record.
"""

import gzip
import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

from auxrnn.errors import RunError
from auxrnn.files import cannot_read

UNSIGNED_BYTE = 8
GZIP_MAGIC = b"\x1f\x8b"
CIFAR_SHAPE = (3, 32, 32)
CIFAR_CLASSES = 10


def read_idx(path: Path) -> UInt8[np.ndarray, "..."]:
    """Return the unsigned bytes of an IDX file (a magic number, the shape, the values), plain or packed with gzip."""
    content = _read(path)
    try:
        content = gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(path, "it does not unpack") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTE or content[3] == 0:
        raise RunError(f"{path} is not an IDX file of unsigned bytes; replace it with the file its dataset publishes")
    header_size = 4 + 4 * content[3]
    # A header cut short is filled up with zeros: the size below then gives it away.
    shape = tuple(np.frombuffer(content[4:header_size].ljust(header_size - 4, b"\0"), dtype=">u4").tolist())
    if len(content) != header_size + math.prod(shape):
        raise _damaged(path, f"it has {len(content)} bytes where its header says {header_size + math.prod(shape)}")
    return np.frombuffer(content, dtype=np.uint8, offset=header_size).reshape(shape)


def read_cifar10(paths: Sequence[Path]) -> tuple[UInt8[np.ndarray, "N H W C"], Int64[np.ndarray, " N"]]:
    """Return the images and labels of one or more files, in their order; the images are a view, not contiguous."""
    records_NR = np.concatenate([_read_records(path) for path in paths])
    return records_NR[:, 1:].reshape(-1, *CIFAR_SHAPE).transpose(0, 2, 3, 1), records_NR[:, 0].astype(np.int64)


def _read_records(path: Path) -> UInt8[np.ndarray, "N R"]:
    """Return records of a label, then the red, green and blue plane of an image."""
    content, size = _read(path), 1 + math.prod(CIFAR_SHAPE)
    if not content or len(content) % size:
        raise _damaged(path, f"its {len(content)} bytes are not whole records of {size}")
    records_NR = np.frombuffer(content, dtype=np.uint8).reshape(-1, size)
    if (largest := records_NR[:, 0].max()) >= CIFAR_CLASSES:
        raise _damaged(path, f"it holds the label {largest} where {CIFAR_CLASSES - 1} is the last")
    return records_NR


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise cannot_read(path, error) from error


def _damaged(path: Path, found: str) -> RunError:
    return RunError(f"{path} is damaged ({found}); delete it and get it again")
