"""A folder of one file per sequence is sorted into classes by its sub-folders, whatever the kind of its files."""

import numpy as np
import pytest

from auxrnn.config import DataConfig
from auxrnn.data.examples import Problems
from auxrnn.data.formats import SeriesFormat, TextFormat
from auxrnn.data.sources import find_source
from auxrnn.errors import RunError, UsageError


def save(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_text(content)
    else:
        np.save(path, content)


def read(path, *, has_labels=True, like=None, problems=None, **options):
    source = find_source(path, DataConfig(data=str(path), **options), has_labels=has_labels, like=like)
    understood = source.read(problems or Problems(), like)
    return understood, list(understood.examples)


def test_tables_are_series_with_a_channel_in_each_column(tmp_path):
    save(tmp_path, "up/1.csv", "time,a,b\n1,3,4\n0,1,2\n")
    save(tmp_path, "down/2.tsv", "5\t6\n7\t8\n")
    understood, examples = read(tmp_path)
    found = {example.label: example.value_T.tolist() for example in examples}
    assert found == {"up": [[1, 2], [3, 4]], "down": [[5, 6], [7, 8]]}
    assert understood.format == SeriesFormat(2, is_file=True)
    assert understood.description == "folder of files, 2 series of 2 channels, 2 classes"


def test_arrays_are_series_and_parts_lie_above_the_classes(tmp_path):
    for part in ("train", "test"):
        save(tmp_path, f"{part}/up/1.npy", np.arange(3))
        save(tmp_path, f"{part}/down/1.npy", np.ones((2, 1)))
    _, examples = read(tmp_path)
    found = [(example.part, example.label, example.value_T.tolist()) for example in examples]
    one = [("down", [[1], [1]]), ("up", [[0], [1], [2]])]
    assert found == [(part, *rest) for part in ("train", "test") for rest in one]


def test_a_text_is_a_whole_file_also_in_prediction(tmp_path):
    save(tmp_path, "up/1.txt", "one\ntwo\n")
    save(tmp_path, "down/2.txt", "three")
    understood, examples = read(tmp_path, tokens="bytes")
    assert {bytes(example.value_T) for example in examples} == {b"one\ntwo\n", b"three"}
    assert understood.format == TextFormat("bytes", is_file=True)
    _, (alone,) = read(tmp_path / "up" / "1.txt", has_labels=False, like=understood.format, tokens="bytes")
    assert bytes(alone.value_T) == b"one\ntwo\n"


def test_gaps_are_read_as_in_arrays(tmp_path):
    save(tmp_path, "up/1.csv", "1,2\n3,\n")
    save(tmp_path, "up/2.npy", np.array([[1, 2], [3, np.nan]]))
    for example in read(tmp_path)[1]:
        np.testing.assert_array_equal(example.value_T, [[1, 2], [3, np.nan]])


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("up/2.csv", "1,2\n3,x\n", "line 2 has 'x' in column '2'; write a number"),
        ("up/2.csv", "1,2\n3,1e99\n", "line 2 has '1e99' in column '2'; fill it in with a finite 32-bit float"),
        ("up/2.csv", "1\n2\n", "2.csv has 1 channel instead of 2 channels; give all files the same channels"),
        ("up/2.csv", "a,b\n", "line 1 has 'a' in column '1'; write a number"),
        ("up/2.npy", np.ones((2, 2, 2)), "has the shape [2, 2, 2]; save one series of numbers in each file"),
        ("up/2.npy", np.full((2, 2), np.inf), "2.npy has inf at step 0, channel 0; fill it in"),
    ],
)
def test_a_wrong_file_is_refused_by_its_name(tmp_path, name, content, sentence):
    save(tmp_path, "down/1.csv", "1,2\n3,4\n")
    save(tmp_path, name, content)
    with pytest.raises(RunError) as refused:
        read(tmp_path)
    assert sentence in str(refused.value)
    problems = Problems(is_patient=True)
    assert len(read(tmp_path, problems=problems)[1]) <= 2
    assert sentence in problems.refused[0]


def test_texts_and_series_need_folders_of_their_own(tmp_path):
    save(tmp_path, "down/1.csv", "1,2\n3,4\n")
    save(tmp_path, "up/1.txt", "words")
    with pytest.raises(
        UsageError, match=r"holds \.txt files beside others; texts and series need folders of their own"
    ):
        read(tmp_path)
