"""Idx files are read as written, and anything but a whole file is refused by name."""

import gzip
import struct

import numpy as np
import pytest

from auxrnn.data.idx import read_idx
from auxrnn.errors import RunError

WHOLE = bytes([0, 0, 8, 3]) + struct.pack(">III", 2, 3, 4) + bytes(range(24))
PACKED = gzip.compress(WHOLE)
DAMAGED = {
    "empty": b"",
    "no-magic": bytes([1, 0, 8, 3]) + WHOLE[4:],
    "floats": bytes([0, 0, 13, 3]) + WHOLE[4:],
    "no-axes": bytes([0, 0, 8, 0, 7]),
    "header-cut": WHOLE[:10],
    "cut": WHOLE[:-1],
    "trailing": WHOLE + b"\0",
    "packed-cut": PACKED[:-9],
    "packed-flipped": PACKED[:20] + bytes([PACKED[20] ^ 0xFF]) + PACKED[21:],
    "packed-trailing": PACKED + b"more",
    "packed-cut-inside": gzip.compress(WHOLE[:-1]),
}


@pytest.mark.parametrize("content", [WHOLE, PACKED], ids=["plain", "gzip"])
def test_bytes_come_back_in_their_shape_whatever_the_name(tmp_path, content):
    path = tmp_path / "images.bin"
    path.write_bytes(content)
    assert np.array_equal(read_idx(path), np.arange(24, dtype=np.uint8).reshape(2, 3, 4))


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_is_refused_by_name(tmp_path, assert_one_sentence, kind):
    path = tmp_path / "images-ubyte"
    path.write_bytes(DAMAGED[kind])
    with pytest.raises(RunError) as error:
        read_idx(path)
    assert_one_sentence(error, path)


def test_a_missing_file_is_refused_by_name(tmp_path, assert_one_sentence):
    with pytest.raises(RunError) as error:
        read_idx(tmp_path / "absent")
    assert_one_sentence(error, tmp_path / "absent", "No such file")
