"""The IDX format of MNIST: a magic number, the shape, then the bytes, plain or packed with gzip."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from auxrnn.errors import RunError
from auxrnn.files import cannot_read

UNSIGNED_BYTE = 8
GZIP_MAGIC = b"\x1f\x8b"


def read_idx(path: Path) -> UInt8[np.ndarray, "..."]:
    """Return the array of unsigned bytes in an IDX file; raise `RunError` unless the file is whole."""
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise RunError(f"{path} is damaged (it does not unpack); delete it and get it again") from error
    except OSError as error:
        raise cannot_read(path, error) from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTE or content[3] == 0:
        raise RunError(f"{path} is not an IDX file of unsigned bytes; replace it with the file its dataset publishes")
    header_size = 4 + 4 * content[3]
    # A header cut short is filled up with zeros: the size below then gives it away.
    shape = tuple(np.frombuffer(content[4:header_size].ljust(header_size - 4, b"\0"), dtype=">u4").tolist())
    if len(content) != header_size + math.prod(shape):
        found = f"it holds {len(content)} bytes where its header says {header_size + math.prod(shape)}"
        raise RunError(f"{path} is damaged ({found}); delete it and get it again")
    return np.frombuffer(content, dtype=np.uint8, offset=header_size).reshape(shape)
