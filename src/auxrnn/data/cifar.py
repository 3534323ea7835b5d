"""The binary format of CIFAR-10: records of a label byte, then the red, green and blue planes of an image.

Dimension letters: `N` examples, `H` and `W` rows and columns of an image, `C` its channels, `R` bytes of a record.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

from auxrnn.errors import RunError
from auxrnn.files import cannot_read

SIDE = 32
NUM_CHANNELS = 3
NUM_CLASSES = 10
RECORD_SIZE = 1 + NUM_CHANNELS * SIDE * SIDE


def read_cifar10(paths: Sequence[Path]) -> tuple[UInt8[np.ndarray, "N H W C"], Int64[np.ndarray, " N"]]:
    """Return the images and labels of one or more files, in their order; the images are a view, not contiguous."""
    records_NR = np.concatenate([_read_records(path) for path in paths])
    images_NCHW = records_NR[:, 1:].reshape(-1, NUM_CHANNELS, SIDE, SIDE)
    return images_NCHW.transpose(0, 2, 3, 1), records_NR[:, 0].astype(np.int64)


def _read_records(path: Path) -> UInt8[np.ndarray, "N R"]:
    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise cannot_read(path, error) from error
    if content.size == 0 or content.size % RECORD_SIZE:
        found = f"its {content.size} bytes are not whole records of {RECORD_SIZE}"
        raise RunError(f"{path} is damaged ({found}); delete it and get it again")
    records_NR = content.reshape(-1, RECORD_SIZE)
    if (largest := records_NR[:, 0].max()) >= NUM_CLASSES:
        found = f"it holds the label {largest} where {NUM_CLASSES - 1} is the last"
        raise RunError(f"{path} is damaged ({found}); delete it and get it again")
    return records_NR
