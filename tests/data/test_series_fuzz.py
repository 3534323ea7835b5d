"""Whatever bytes they are given, the readers of arrays and time series succeed or say one sentence."""

import io

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from auxrnn.data.examples import Problems
from auxrnn.data.readers.arrays import array_source
from auxrnn.data.readers.timeseries import timeseries_source
from auxrnn.errors import RunError, UsageError

X_NTD = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
TIME_SERIES = b"""# comment
@problemName A
@timeStamps false
@dimensions 2
@classLabel true 1 2 run
@data
1,2.5,-3e4:4,5,6:1.0
7:8:2
9,10:11,12:run
"""
WORDS = [b"1", b"-2.5", b"nan", b"?", b"1e99", b",", b":", b"\n", b" ", b"#", b"a", b"true", b"false", b"@data\n",
         b"@classLabel ", b"@targetLabel ", b"@timeStamps ", b"@dimensions ", b"\xff", b"\xc3\xa4"]  # fmt: skip
HEADER_WORDS = [b"'descr'", b"'<f4'", b"'|O'", b"'<U2'", b"'>i8'", b"'|V3'", b"'<M8[s]'", b"[('a','<f4')]", b"(", b")",
                b"{", b"}", b",", b":", b"3", b"-1", b"2L", b"1e5", b"'shape'", b"'fortran_order'", b"True", b"False",
                b"10" * 30, b"[" * 50, b"\\d", b"\n", b" "]  # fmt: skip
MUTATIONS = st.lists(
    st.tuples(st.sampled_from(["flip", "cut", "insert", "drop"]), st.integers(0, 2**16), st.binary(max_size=8)),
    max_size=4,
)


def to_bytes(save, *arrays, **named):
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


NAMED = {"x": X_NTD, "y": np.array(["a", "b", ""]), "lengths": np.array([2, 1, 2])}
PARTS = {"x_train": X_NTD.astype("f8"), "y_train": np.array([0, -1, 2]), "x_test": np.asfortranarray(X_NTD)}
VALID = {
    "x.npy": to_bytes(np.save, X_NTD),
    "plain.npz": to_bytes(np.savez, **NAMED),
    "packed.npz": to_bytes(np.savez_compressed, **NAMED),
    "parts.npz": to_bytes(np.savez, **PARTS),
    "A.ts": TIME_SERIES,
}
several = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def mutate(content, mutations):
    """Flip, cut off, insert or leave out some bytes."""
    for kind, position, extra in mutations:
        at = position % (len(content) + 1)
        if kind == "flip":
            flipped = bytes(a ^ b for a, b in zip(content[at:], extra, strict=False))
            content = content[:at] + flipped + content[at + len(flipped) :]
        elif kind == "cut":
            content = content[:at]
        else:
            content = content[:at] + (extra if kind == "insert" else b"") + content[at + len(extra) :]
    return content


def read(path, *, has_labels):
    """Read a file to its end, at once and patiently; give how many examples came."""
    source = (
        timeseries_source("mine", path, has_labels=has_labels)
        if path.suffix == ".ts"
        else array_source("mine", path, has_labels=has_labels)
    )
    num_examples = 0
    for problems in (Problems(), Problems(is_patient=True)):
        try:
            for found in source.read(problems, None).examples:
                assert found.value_T.dtype == np.float32
                assert found.value_T.ndim == 2
                assert found.value_T.size
                assert not np.isinf(found.value_T).any()
                assert found.label != ""
                num_examples += 1
        except (RunError, UsageError) as error:
            sentences = [str(error)]
        else:
            sentences = []
        for sentence in sentences + problems.refused:
            assert str(path.parent) in sentence
            assert "\n" not in sentence
            assert "; " in sentence
    return num_examples


@pytest.mark.parametrize("name", VALID)
def test_what_is_changed_below_can_be_read(tmp_path, name):
    (tmp_path / name).write_bytes(VALID[name])
    assert read(tmp_path / name, has_labels=name.endswith(".ts")) >= 6


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".ts"])
@several
@given(content=st.binary(max_size=200), has_labels=st.booleans())
def test_random_bytes_give_a_sentence(tmp_path, suffix, content, has_labels):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    assert read(path, has_labels=has_labels) == 0


@pytest.mark.parametrize("name", VALID)
@several
@given(mutations=MUTATIONS, has_labels=st.booleans())
def test_a_changed_file_gives_examples_or_a_sentence(tmp_path, name, mutations, has_labels):
    path = tmp_path / name
    path.write_bytes(mutate(VALID[name], mutations))
    read(path, has_labels=has_labels)


@several
@given(words=st.lists(st.sampled_from(HEADER_WORDS), max_size=20), is_new=st.booleans())
def test_a_strange_header_of_an_array_gives_examples_or_a_sentence(tmp_path, words, is_new):
    header, path = b"".join(words), tmp_path / "x.npy"
    start = b"\x93NUMPY\x02\x00" if is_new else b"\x93NUMPY\x01\x00"
    path.write_bytes(start + len(header).to_bytes(4 if is_new else 2, "little") + header + bytes(48))
    read(path, has_labels=False)


@pytest.mark.parametrize("role", ["y", "lengths"])
@several
@given(
    dtype=st.sampled_from(["<U1", "<U2", ">U1", "S3", "f8", "f4", "f2", "g", "?", "i8", "u8", "u1", "c8", "M8[s]"]),
    content=st.binary(min_size=48, max_size=48),
)
@example(dtype="<U1", content=b"\xff" * 48)
@example(dtype="g", content=bytes(39) + b"\x80\x00x" + bytes(6))
def test_any_bytes_as_labels_or_lengths_give_examples_or_a_sentence(tmp_path, role, dtype, content):
    array = np.frombuffer(content[: 3 * np.dtype(dtype).itemsize], dtype)
    (tmp_path / f"{role}.npy").write_bytes(to_bytes(np.save, array))
    (tmp_path / "x.npy").write_bytes(VALID["x.npy"])
    read(tmp_path / "x.npy", has_labels=False)


@several
@given(words=st.lists(st.sampled_from(WORDS), max_size=40), has_header=st.booleans(), has_labels=st.booleans())
def test_strange_time_series_give_examples_or_a_sentence(tmp_path, words, has_header, has_labels):
    path = tmp_path / "A.ts"
    header = b"@classLabel true 1 2 a\n@data\n" if has_header else b""
    path.write_bytes(header + b"".join(words))
    read(path, has_labels=has_labels)
