"""CIFAR-10's records are read plane by plane, and damaged files are refused by name."""

import numpy as np
import pytest

from auxrnn.data.cifar import read_cifar10
from auxrnn.errors import RunError


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
def test_a_damaged_file_is_refused_by_name(tmp_path, assert_one_sentence, content):
    path = tmp_path / "batch.bin"
    path.write_bytes(content)
    with pytest.raises(RunError) as error:
        read_cifar10([path])
    assert_one_sentence(error, path, "damaged")


def test_a_missing_file_is_refused_by_name(tmp_path, assert_one_sentence):
    with pytest.raises(RunError) as error:
        read_cifar10([tmp_path / "absent.bin"])
    assert_one_sentence(error, tmp_path / "absent.bin", "No such file")
