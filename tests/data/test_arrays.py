"""Arrays are read as they were saved, one sequence at a time, or refused by file, name and example."""

import tracemalloc

import numpy as np
import pytest

from auxrnn.data.examples import Problems
from auxrnn.data.formats import SeriesFormat, TextFormat
from auxrnn.data.readers.arrays import array_source, is_array_folder
from auxrnn.errors import RunError, UsageError

X_NTD = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
Y_N = np.array([0, 2, 1])


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def save_folder(folder, **arrays):
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


def read(path, *, has_labels=True, problems=None, like=None):
    """Give what was understood, and all examples."""
    understood = array_source("mine", path, has_labels=has_labels).read(problems or Problems(), like)
    return understood, list(understood.examples)


def values(examples):
    return [example.value_T.tolist() for example in examples]


def labels(examples):
    return [example.label for example in examples]


@pytest.mark.parametrize(
    "x", [X_NTD, np.asfortranarray(X_NTD), X_NTD.astype(">f8"), X_NTD[:, :, 0]], ids=["C", "Fortran", "big", "flat"]
)
@pytest.mark.parametrize("form", ["plain", "packed", "file", "folder"])
def test_sequences_come_back_as_they_were_saved(tmp_path, x, form):
    path = tmp_path / "data.npz"
    if form == "plain":
        np.savez(path, x=x, y=Y_N)
    elif form == "packed":
        np.savez_compressed(path, x=x, y=Y_N)
    else:
        path = save_folder(tmp_path / "data", x=x, y=Y_N)
        path = path / "x.npy" if form == "file" else path
    understood, examples = read(path)
    assert values(examples) == x.reshape(3, 4, -1).tolist()
    assert all(example.value_T.dtype == np.float32 and example.value_T.flags.c_contiguous for example in examples)
    assert labels(examples) == ["0", "2", "1"]
    array = f"{path}, x" if path.suffix == ".npz" else str(path / "x.npy" if path.is_dir() else path)
    assert [example.place for example in examples] == [f"{array}, example {index}" for index in range(3)]
    assert {example.part for example in examples} == {None}
    assert understood.format == SeriesFormat(x.size // 12)
    assert (understood.num_examples, understood.num_bytes) == (3, 4 * x.size)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8", "g"])
def test_numbers_of_any_width_become_floats(tmp_path, dtype):
    x = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    _, examples = read(save(tmp_path / "data.npz", x=x), has_labels=False)
    assert values(examples) == [[[0], [1], [1]], [[1], [0], [1]]]


@pytest.mark.parametrize("form", ["npz", "folder"])
def test_reading_takes_constant_memory(tmp_path, form):
    x = np.zeros((400, 10000))
    path = save(tmp_path / "x.npz", x=x) if form == "npz" else save_folder(tmp_path / "x", x=x)
    understood = array_source("mine", path, has_labels=False).read(Problems(), None)
    tracemalloc.start()
    try:
        assert sum(len(example.value_T) for example in understood.examples) == x.size
        assert tracemalloc.get_traced_memory()[1] < 0.75 * x.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.array([3, -1, 12]), ["3", None, "12"]),
        (np.array([[3], [-1], [0]], dtype=np.int8), ["3", None, "0"]),
        (np.array([3, 255, 0], dtype=np.uint8), ["3", "255", "0"]),
        (np.array([3.0, np.nan, -1.0]), ["3", None, "-1"]),
        (np.array([True, False, True]), ["true", "false", "true"]),
        (np.array(["dog", "", "b\u00e4r"]), ["dog", None, "b\u00e4r"]),
        (np.array(["dog", "", "b\u00e4r"]).astype(">U9"), ["dog", None, "b\u00e4r"]),
        (np.array([b"dog", b"", "b\u00e4r".encode()]), ["dog", None, "b\u00e4r"]),
    ],
)
def test_labels_are_named_as_they_were_meant(tmp_path, y, expected):
    assert labels(read(save(tmp_path / "data.npz", x=X_NTD, y=y))[1]) == expected
    assert labels(read(save_folder(tmp_path / "data", x=X_NTD, y=y))[1]) == expected


@pytest.mark.parametrize(
    ("x_name", "y_name", "lengths_name"),
    [("x", "y", "lengths"), ("X", "Y", "length"), ("data", "label", "len"), ("sequences", "target", "lengths"),
     ("anything", "labels", "lengths"), ("arr_0", "y", "lengths")],
)  # fmt: skip
def test_arrays_are_found_by_their_usual_names(tmp_path, x_name, y_name, lengths_name):
    arrays = {x_name: X_NTD, y_name: Y_N, lengths_name: np.array([1, 2, 3])}
    _, examples = read(save(tmp_path / "data.npz", **arrays))
    assert [len(example.value_T) for example in examples] == [1, 2, 3]
    assert labels(examples) == ["0", "2", "1"]


def test_the_plainest_name_wins(tmp_path):
    path = save(tmp_path / "data.npz", x=X_NTD, data=X_NTD[:1], y=Y_N, labels=np.array(["a", "b", "c"]))
    assert labels(read(path)[1]) == ["0", "2", "1"]


@pytest.mark.parametrize("form", ["npz", "folder"])
def test_parts_come_from_the_names_and_in_their_order(tmp_path, form):
    arrays = {
        "x_test": X_NTD[:1], "y_test": Y_N[:1], "X_train": X_NTD[:, :3], "Y_train": Y_N, "lengths_train": Y_N + 1,
        "x_valid": X_NTD[:2], "y_valid": Y_N[:2], "x_unlabeled": X_NTD[1:],
    }  # fmt: skip
    path = save(tmp_path / "data.npz", **arrays) if form == "npz" else save_folder(tmp_path / "data", **arrays)
    understood, examples = read(path)
    parts = ["train"] * 3 + ["validation"] * 2 + ["test"] + ["unlabeled"] * 2
    assert [example.part for example in examples] == parts
    assert labels(examples) == ["0", "2", "1", "0", "2", "0", None, None]
    assert [len(example.value_T) for example in examples] == [1, 3, 2, 4, 4, 4, 4, 4]
    sizes = "(3 train, 2 validation, 1 test, 2 unlabeled)"
    assert understood.description == f"arrays, 8 sequences of up to 4 steps of 2 channels {sizes}"
    assert understood.num_bytes == 4 * 2 * (3 * 3 + 5 * 4)


@pytest.mark.parametrize(
    ("x_name", "y_name", "lengths_name"),
    [("x", "y", "lengths"), ("X_train", "y_train", "lengths_train"), ("x_val", "labels_val", "len_val"),
     ("heart", "heart_y", "heart_lengths"), ("data", "data_y", "data_lengths"), ("xray", "xray_y", "xray_lengths"),
     ("z_test", "z_test_y", "z_test_length")],
)  # fmt: skip
def test_labels_and_lengths_are_found_beside_a_file(tmp_path, x_name, y_name, lengths_name):
    decoys = {"other": X_NTD, "y_test": Y_N[::-1], f"{y_name}_labels": Y_N[::-1], "target": Y_N[::-1]}
    arrays = {x_name: X_NTD, y_name: Y_N, lengths_name: np.array([1, 2, 3])} | decoys
    folder = save_folder(tmp_path / "folder", **arrays)
    source = array_source("mine", folder / f"{x_name}.npy")
    names = [f"{name}.npy" for name in (x_name, y_name, lengths_name)]
    assert [file.name for file in source.files] == names
    assert source.options == {"reader": "arrays", "has_labels": True, "is_folder": False}
    examples = list(source.read(Problems(), None).examples)
    assert [len(example.value_T) for example in examples] == [1, 2, 3]
    assert labels(examples) == ["0", "2", "1"]
    assert {example.part for example in examples} == {None}


def test_a_folder_is_known_by_its_sequences_and_gives_only_what_is_used(tmp_path):
    folder = save_folder(tmp_path / "folder", x_train=X_NTD, y_train=Y_N, other=X_NTD)
    (folder / "notes.txt").write_text("none")
    assert is_array_folder(folder)
    assert not is_array_folder(save_folder(tmp_path / "other", y=Y_N, data=X_NTD))
    files = array_source("mine", folder).files
    assert [file.name for file in files] == ["x_train.npy", "y_train.npy"]


def test_padding_is_left_out_and_may_hold_anything(tmp_path):
    x = np.array([[1, 2, np.nan], [3, np.inf, np.nan], [4, 5, 6]])
    understood, examples = read(save(tmp_path / "data.npz", x=x, y=Y_N, lengths=np.array([2, 1, 3], dtype=np.uint8)))
    assert values(examples) == [[[1], [2]], [[3]], [[4], [5], [6]]]
    assert understood.description == "arrays, 3 sequences of up to 3 steps of 1 channel"


def test_nan_is_a_gap(tmp_path):
    x = np.array([[1, np.nan], [np.nan, 4]])
    np.testing.assert_array_equal(values(read(save(tmp_path / "data.npz", x=x, y=Y_N[:2]))[1]), x[:, :, None])


def test_sequences_of_length_zero_are_left_out_and_counted(tmp_path):
    path, problems = save(tmp_path / "data.npz", x=X_NTD, y=Y_N, lengths=np.array([2, 0, 4])), Problems()
    _, examples = read(path, problems=problems)
    assert labels(examples) == ["0", "1"]
    assert problems.skipped == [f"{path}, x, example 1 is empty"]


def test_a_format_to_be_like_is_kept_and_must_fit(tmp_path, assert_one_sentence):
    path, like = save(tmp_path / "data.npz", x=X_NTD), SeriesFormat(2, (1.0, 2.0), (3.0, 4.0), max_length=7)
    assert read(path, has_labels=False, like=like)[0].format is like
    with pytest.raises(RunError) as error:
        read(path, has_labels=False, like=SeriesFormat(1))
    assert_one_sentence(error, f"{path}, x has 2 channels instead of 1 channel")
    with pytest.raises(UsageError) as error:
        read(path, has_labels=False, like=TextFormat())
    assert_one_sentence(error, path)


WRONG = {
    "pickled": ({"x": np.array([[1], [1, 2], [3]], dtype=object)}, "x holds Python objects, which are never loaded"),
    "pickled-y": ({"x": X_NTD, "y": np.array(["a", 1, None], dtype=object)}, "y holds Python objects"),
    "pickled-lengths": ({"x": X_NTD, "y": Y_N, "lengths": np.array([1, 2, None], dtype=object)}, "Python objects"),
    "complex": ({"x": X_NTD * 1j}, "x holds values of type complex64"),
    "words": ({"x": np.full((3, 2), "a")}, "x holds values of type str"),
    "dates": ({"x": np.zeros((3, 2), dtype="M8[s]")}, "x holds values of type datetime64"),
    "records": ({"x": np.zeros((3, 2), dtype=[("a", "f4")])}, "x holds values of type void"),
    "no-axes": ({"x": np.array(1.0)}, "x has no entries, with the shape []"),
    "one-axis": ({"x": np.arange(3)}, "x has the shape [3]"),
    "four-axes": ({"x": np.zeros((3, 2, 2, 1))}, "x has the shape [3, 2, 2, 1]"),
    "no-sequences": ({"x": X_NTD[:0]}, "x has no entries, with the shape [0, 4, 2]"),
    "no-steps": ({"x": X_NTD[:, :0]}, "x has no entries, with the shape [3, 0, 2]"),
    "no-channels": ({"x": X_NTD[:, :, :0]}, "x has no entries, with the shape [3, 4, 0]"),
    "one-hot": ({"x": X_NTD, "y": np.eye(3)}, "y has the shape [3, 3] where [3] is needed"),
    "one-label": ({"x": X_NTD, "y": np.array(1)}, "y has no entries, with the shape []"),
    "few-labels": ({"x": X_NTD, "y": Y_N[:2]}, "y has the shape [2] where [3] is needed"),
    "complex-labels": ({"x": X_NTD, "y": Y_N * 1j}, "y holds values of type complex128"),
    "half-labels": ({"x": X_NTD, "y": Y_N / 2}, "x, example 2 has the label 0.5; save whole numbers"),
    "endless-labels": ({"x": X_NTD, "y": Y_N * np.array([1, np.inf, 1])}, "x, example 1 has the label inf"),
    "broken-words": ({"x": X_NTD, "y": np.array([b"a", b"\xff", b"c"])}, "x, example 1 has a label that is not valid"),
    "half-a-character": ({"x": X_NTD, "y": np.array(["a", "b", "\ud800"])}, "2 has a label that is not valid"),
    "few-lengths": ({"x": X_NTD, "y": Y_N, "lengths": Y_N[:2]}, "lengths has the shape [2] where [3] is needed"),
    "broken-lengths": ({"x": X_NTD, "y": Y_N, "lengths": Y_N + 0.5}, "lengths holds values of type float64"),
    "long": ({"x": X_NTD, "y": Y_N, "lengths": Y_N + 3}, "x, example 1 has the length 5; give it a length"),
    "negative": ({"x": X_NTD, "y": Y_N, "lengths": Y_N - 1}, "x, example 0 has the length -1; give it a length"),
    "endless": ({"x": np.array([[1, 2], [3, 0], [-np.inf, 0]]), "y": Y_N}, "2 has -inf at step 0"),
    "channel": ({"x": np.where(X_NTD == 13, np.inf, X_NTD), "y": Y_N}, "x, example 1 has inf at step 2, channel 1"),
    "too-large": ({"x": X_NTD.astype("f8") * 1e38, "y": Y_N}, "has 4e+38 at step 2, channel 0; fill it in, scale"),
    "x-and-test": ({"x": X_NTD, "x_test": X_NTD}, "holds x beside x_test; call the first x_train"),
    "no-x": ({"a": X_NTD, "b": Y_N}, "holds the arrays ['a', 'b'] and none called x"),
    "y-only": ({"y": Y_N}, "and none called x"),
    "nothing": ({}, "and none called x"),
    "channels": ({"x_train": X_NTD, "x_test": X_NTD[..., 0]}, "x_test has 1 channel instead of 2"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_arrays_are_refused_by_file_name_and_example(tmp_path, assert_one_sentence, kind):
    arrays, part = WRONG[kind]
    path = save(tmp_path / "data.npz", **arrays)
    with pytest.raises(RunError) as error:
        read(path, has_labels=False)
    assert_one_sentence(error, path, part)


def test_a_patient_reader_finds_all_wrong_examples(tmp_path):
    x = np.array([[1, 2], [-np.inf, 0], [3, 4], [5, np.inf], [6, 7]])
    y, lengths = np.array([0, 0, 0.5, 1, 1]), np.array([2, 2, 2, 2, 9])
    path, problems = save(tmp_path / "data.npz", x=x, y=y, lengths=lengths), Problems(is_patient=True)
    assert [example.place for example in read(path, problems=problems)[1]] == [f"{path}, x, example 0"]
    assert [sentence.partition(";")[0].removeprefix(f"{path}, ") for sentence in problems.refused] == [
        "x, example 1 has -inf at step 0, channel 0",
        "x, example 2 has the label 0.5",
        "x, example 3 has inf at step 1, channel 0",
        "x, example 4 has the length 9",
    ]


@pytest.mark.parametrize(
    ("name", "x_name"),
    [("data.npz", "arr_0"), ("data.npz", "X_test"), ("data/x_val.npy", "x_val"), ("data", "x_train")],
)
def test_missing_labels_are_wrong_usage_where_they_are_needed(tmp_path, assert_one_sentence, name, x_name):
    path = tmp_path / name
    if path.suffix == ".npz":
        save(path, **{x_name: X_NTD})
    else:
        save_folder(tmp_path / "data", **{x_name: X_NTD})
    with pytest.raises(UsageError) as error:
        read(path)
    assert_one_sentence(error, "has no labels; add them: np.savez")
    assert labels(read(path, has_labels=False)[1]) == [None] * 3
