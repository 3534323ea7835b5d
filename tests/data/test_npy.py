"""Files that are damaged, not what they seem, or traps give one sentence, without a byte unpickled or taken in vain."""

import io
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy_format

from auxrnn.data.examples import Problems
from auxrnn.data.readers import arrays
from auxrnn.data.readers.arrays import array_source
from auxrnn.errors import RunError

X_NT = np.random.default_rng(0).standard_normal((5, 400))


def read(path, problems=None):
    source = array_source("mine", path, has_labels=False)
    return list(source.read(problems or Problems(), None).examples)


def refuse(path):
    """Give the error of a file that must not be read."""
    with pytest.raises(RunError) as error:
        read(path)
    return error


def to_bytes(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def header(descr="<f8", shape=(5, 400), *, version=(1, 0)):
    """Give the first bytes of an .npy file, true or not."""
    file = io.BytesIO()
    write = npy_format.write_array_header_1_0 if version == (1, 0) else npy_format.write_array_header_2_0
    write(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def pack(path, content, *, name="x.npy", compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(name, content)
    return path


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_both_versions_of_the_header_are_read(tmp_path, version):
    path = tmp_path / "x.npy"
    path.write_bytes(header(version=version) + X_NT.tobytes())
    assert [example.value_T[:, 0].tolist() for example in read(path)] == X_NT.astype(np.float32).tolist()


def test_the_header_of_an_old_python_is_read_without_a_warning(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(header().replace(b"(5, 400)", b"(5L, 400L)").replace(b"  \n", b"\n") + X_NT.tobytes())
    assert len(read(path)) == 5


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("kind", ["absent", "folder-in-its-place", "empty", "text", "the-other", "cut", "cut-header"])
def test_what_cannot_be_read_is_refused_by_file(tmp_path, assert_one_sentence, suffix, kind):
    path, whole = tmp_path / f"x{suffix}", tmp_path / f"whole{suffix}"
    (np.save if suffix == ".npy" else np.savez)(whole, X_NT)
    content = whole.read_bytes()
    if kind == "folder-in-its-place":
        path.mkdir()
    elif kind != "absent":
        other = pack(tmp_path / "other", to_bytes(X_NT)).read_bytes() if suffix == ".npy" else to_bytes(X_NT)
        contents = {"empty": b"", "text": b"no array at all", "the-other": other, "cut": content[:-1]}
        path.write_bytes(contents.get(kind, content[:40]))
    assert_one_sentence(refuse(path), path)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize(
    "content",
    [
        header() + X_NT.tobytes()[:-8],
        header() + X_NT.tobytes() + bytes(8),
        header(shape=(5, 10**15)) + X_NT.tobytes(),
        header(shape=(-5, -400)) + X_NT.tobytes(),
        header(shape=(True, 2000)) + X_NT.tobytes()[:-1],
        header(descr="|O") + pickle.dumps([1]),
        header(descr="<U0", shape=(5, 400)),
        header(shape="all") + X_NT.tobytes(),
        header()[:-1].replace(b"'descr'", b"'decsr'") + X_NT.tobytes(),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100,
        b"\x93NUMPY\x09\x00" + header()[8:] + X_NT.tobytes(),
    ],
    ids=[
        "short",
        "long",
        "absurd",
        "negative",
        "bool",
        "pickle",
        "no-width",
        "no-shape",
        "no-descr",
        "huge",
        "version",
    ],
)
def test_a_header_that_does_not_tell_the_truth_is_refused(tmp_path, assert_one_sentence, suffix, content):
    path = tmp_path / f"x{suffix}"
    if suffix == ".npz":
        pack(path, content)
    else:
        path.write_bytes(content)
    tracemalloc.start()
    try:
        assert_one_sentence(refuse(path), path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_nothing_is_ever_unpickled(tmp_path, assert_one_sentence, suffix):
    sprung, path = tmp_path / "sprung", tmp_path / f"trap{suffix}"
    (np.save if suffix == ".npy" else np.savez)(path, np.array([[Trap(sprung)]], dtype=object))
    assert_one_sentence(refuse(path), path, "Python objects, which are never loaded")
    path.write_bytes(pickle.dumps(Trap(sprung)))
    assert_one_sentence(refuse(path), path)
    assert not sprung.exists()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_flipped_bit_in_an_archive_is_found(tmp_path, assert_one_sentence, compression):
    path = pack(tmp_path / "x.npz", to_bytes(X_NT), compression=compression)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert_one_sentence(refuse(path), f"{path}, x")


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_patient_reader_goes_on_after_a_damaged_array(tmp_path, order):
    path, problems = tmp_path / "x.npz", Problems(is_patient=True)
    x_train = np.tile(X_NT, (2, 1))
    np.savez(path, x_train=np.array(x_train, order=order), x_test=X_NT[:2] + 1)
    content = bytearray(path.read_bytes())
    content[content.index(x_train.tobytes(order)[-100:])] ^= 1
    path.write_bytes(content)
    examples = read(path, problems)
    assert [example.part for example in examples][-2:] == ["test", "test"]
    assert [sentence.partition(" cannot")[0] for sentence in problems.refused] == [f"{path}, x_train"]


def test_a_locked_archive_is_refused(tmp_path, assert_one_sentence):
    path = pack(tmp_path / "x.npz", to_bytes(X_NT))
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    content[6] |= 1
    path.write_bytes(content)
    assert_one_sentence(refuse(path), path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, assert_one_sentence, monkeypatch, compression):
    monkeypatch.setattr(arrays, "SUSPICIOUS_UNPACKED", 2**22)
    path = pack(tmp_path / "x.npz", to_bytes(np.zeros((2**10, 2**10))), compression=compression)
    monkeypatch.setattr(arrays, "SUSPICIOUS_RATIO", 900)
    assert_one_sentence(refuse(path), path, "would unpack from", "8,388,736 bytes")
    monkeypatch.setattr(arrays, "SUSPICIOUS_UNPACKED", 2**24)
    assert len(read(path)) == 2**10
    monkeypatch.setattr(arrays, "LARGEST_UNPACKED", 2**22)
    assert_one_sentence(refuse(path), path, "would unpack from")


def test_a_size_that_only_the_archive_claims_is_refused(tmp_path, assert_one_sentence):
    path = pack(tmp_path / "x.npz", header(shape=(2**20, 2**12)) + bytes(100))
    content = path.read_bytes()
    size, claimed = len(header()) + 100, len(header()) + 2**32 - 1
    assert content.count(size.to_bytes(4, "little")) == 4
    path.write_bytes(content.replace(size.to_bytes(4, "little"), (claimed % 2**32).to_bytes(4, "little")))
    assert_one_sentence(refuse(path), path)


def test_what_must_be_loaded_at_once_has_a_limit(tmp_path, assert_one_sentence, monkeypatch):
    monkeypatch.setattr(arrays, "LARGEST_BLOCK", X_NT.nbytes - 1)
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 4096)
    np.savez(tmp_path / "rows.npz", x=X_NT)
    assert len(read(tmp_path / "rows.npz")) == 5
    np.savez(tmp_path / "columns.npz", x=np.asfortranarray(X_NT))
    assert_one_sentence(refuse(tmp_path / "columns.npz"), "columns.npz, x takes 16,000 bytes", "ascontiguousarray")
    np.save(tmp_path / "columns.npy", np.asfortranarray(X_NT))
    assert len(read(tmp_path / "columns.npy")) == 5


def test_an_abandoned_reader_leaves_no_file_open(tmp_path):
    np.savez(tmp_path / "x.npz", x=X_NT)
    source = array_source("mine", tmp_path / "x.npz", has_labels=False)
    examples = iter(source.read(Problems(), None).examples)
    next(examples)
    del examples


def test_a_name_that_cannot_be_printed_is_told_in_one_line(tmp_path, assert_one_sentence):
    path = pack(tmp_path / "x.npz", to_bytes(np.zeros(3)), name="two\nlines.npy")
    assert_one_sentence(refuse(path), "x.npz, two?lines")
