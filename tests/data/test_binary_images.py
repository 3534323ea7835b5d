"""IDX files and CIFAR-10's records are read as written; anything but a whole file is refused by name."""

import gzip
import struct

import numpy as np
import pytest

from auxrnn.data.images import read_cifar10, read_idx
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
def test_a_damaged_idx_file_is_refused_by_name(tmp_path, assert_one_sentence, kind):
    path = tmp_path / "images-ubyte"
    path.write_bytes(DAMAGED[kind])
    with pytest.raises(RunError) as error:
        read_idx(path)
    assert_one_sentence(error, path)


def record(label, first):
    """A label, then planes that count rows, columns and a constant."""
    row, column = np.indices((32, 32), dtype=np.uint8)
    return bytes([label]) + row.tobytes() + column.tobytes() + np.full((32, 32), first, np.uint8).tobytes()


def test_each_pixel_holds_its_own_red_green_and_blue(tmp_path):
    one, two = tmp_path / "one.bin", tmp_path / "two.bin"
    one.write_bytes(record(9, 100) + record(0, 101))
    two.write_bytes(record(3, 102))
    images_NHWC, label_N = read_cifar10([one, two])
    assert label_N.tolist() == [9, 0, 3]
    assert images_NHWC.shape == (3, 32, 32, 3)
    assert images_NHWC[0, 5, 7].tolist() == [5, 7, 100]
    assert images_NHWC[2, 31, 0].tolist() == [31, 0, 102]


@pytest.mark.parametrize("content", [b"", record(1, 0)[:-1], record(1, 0) + b"\0", record(10, 0)])
def test_damaged_records_are_refused_by_name(tmp_path, assert_one_sentence, content):
    path = tmp_path / "batch.bin"
    path.write_bytes(content)
    with pytest.raises(RunError) as error:
        read_cifar10([path])
    assert_one_sentence(error, path, "damaged")


@pytest.mark.parametrize("read", [read_idx, lambda path: read_cifar10([path])])
def test_a_missing_file_is_refused_by_name(tmp_path, assert_one_sentence, read):
    with pytest.raises(RunError) as error:
        read(tmp_path / "absent")
    assert_one_sentence(error, tmp_path / "absent", "No such file")
