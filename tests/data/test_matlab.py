"""MATLAB files are read as scipy reads them, and damaged ones are refused; scipy itself would crash on some."""

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from auxrnn.data.readers.dogs import read_matlab

KINDS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


def saved(variables, **options):
    file = io.BytesIO()
    savemat(file, variables, **options)
    return file.getvalue()


def cells_of(strings):
    cells = np.empty((len(strings), 1), dtype=object)
    cells[:, 0] = strings
    return cells


def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(what, shape, name, *pieces):
    """Make an array as MATLAB writes it."""
    flags = element(6, struct.pack("<II", what, 0))
    dimensions = element(5, struct.pack(f"<{len(shape)}i", *shape))
    return element(14, flags + dimensions + element(1, name) + b"".join(pieces))


@settings(max_examples=60)
@given(
    strings=st.lists(NAMES, min_size=1, max_size=5),
    numbers=st.lists(st.integers(0, 127), min_size=1, max_size=5),
    kind=st.sampled_from(KINDS),
    is_packed=st.booleans(),
)
def test_names_and_numbers_are_read_as_scipy_reads_them(strings, numbers, kind, is_packed):
    variables = {"files": cells_of(strings), "labels": np.array(numbers, dtype=kind)[:, None], "other": {"a": 1}}
    content = saved(variables, do_compression=is_packed)
    found, expected = read_matlab(content), loadmat(io.BytesIO(content))
    assert found["files"] == [str(cell.item()) for cell in expected["files"].ravel()] == strings
    assert np.array_equal(found["labels"], expected["labels"].ravel())
    assert found["labels"].dtype == expected["labels"].dtype
    assert found["other"] is None


def test_letters_of_two_bytes_are_read():
    cell = matrix(4, (1, 10), b"", element(4, "name/\u00e4.jpg".encode("utf-16-le")))
    # Whole doubles are kept as small integers.
    labels = matrix(6, (2, 1), b"labels", element(3, struct.pack("<2h", 300, 7)))
    found = read_matlab(bytes(126) + b"IM" + matrix(1, (1, 1), b"files", cell) + labels)
    assert found["files"] == ["name/\u00e4.jpg"]
    assert found["labels"].tolist() == [300, 7]


def test_cells_of_anything_but_strings_are_not_read():
    cells = np.empty(2, dtype=object)
    cells[:] = ["a", np.zeros(3)]
    assert read_matlab(saved({"x": cells, "y": cells_of(["b"])})) == {"x": None, "y": ["b"]}


def test_cells_inside_of_cells_are_not_followed_down():
    inner = matrix(4, (1, 0), b"")
    for _ in range(2000):
        inner = matrix(1, (1, 1), b"x", inner)
    assert read_matlab(bytes(126) + b"IM" + inner) == {"x": None}


def test_what_unpacks_to_too_much_is_refused(monkeypatch):
    content = saved({"x": np.zeros(10_000)}, do_compression=True)
    assert len(read_matlab(content)["x"]) == 10_000
    monkeypatch.setattr("auxrnn.data.readers.dogs.MOST_BYTES", 10_000)
    with pytest.raises(ValueError, match="cut off"):
        read_matlab(content)


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_cut_file_is_refused_or_ends_between_two_variables(is_packed):
    content = saved({"files": cells_of(["a/b", "c/d"]), "labels": np.arange(9.0)}, do_compression=is_packed)
    whole = set()
    for length in range(len(content)):
        try:
            whole.add(tuple(read_matlab(content[:length])))
        except ValueError:
            continue
    assert whole == {(), ("files",)}


@settings(max_examples=200)
@given(data=st.data(), is_packed=st.booleans())
def test_a_fuzzed_file_is_read_or_refused(data, is_packed):
    content = bytearray(saved({"files": cells_of(["a/b", "c/d"]), "labels": np.arange(9)}, do_compression=False))
    for place in data.draw(st.lists(st.integers(124, len(content) - 1), max_size=5)):
        content[place] = data.draw(st.sampled_from([0, 1, 4, 14, 15, 127, 255]) | st.integers(0, 255))
    if is_packed:
        # Packed after the damage, or its checksum would hide it.
        packed = zlib.compress(bytes(content[128:]))
        content = content[:128] + struct.pack("<II", 15, len(packed)) + packed
    try:
        found = read_matlab(bytes(content))
    except ValueError:
        return
    assert all(value is None or len(value) < 1000 for value in found.values())
