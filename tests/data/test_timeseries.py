"""Files of the UCR and UEA archives are read case by case as they stand, or refused by line."""

import gzip

import numpy as np
import pytest

from auxrnn.config import DataConfig
from auxrnn.data.examples import Problems
from auxrnn.data.formats import SeriesFormat, TextFormat
from auxrnn.data.readers import rows
from auxrnn.data.readers.timeseries import timeseries_source
from auxrnn.data.sources import find_source
from auxrnn.errors import RunError, UsageError

TWO_CHANNELS = """# A comment,
#
@problemName Two
@timeStamps false
@missing false
@univariate false
@dimensions 2
@equalLength false
@classLabel true walk run

@data
1,2,3:-1,-2.5,1e2:walk
# between two cases

4.0:5:run
 6, 7 : 8 ,9 : walk
"""


def write(folder, content, name="Two_TRAIN.ts"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def with_cases(*cases, tags="@classLabel true a b"):
    return "\n".join([tags, "@data", *cases])


def read(files, *, has_labels=True, problems=None, like=None):
    """Give what was understood, and all examples."""
    understood = timeseries_source("mine", files, has_labels=has_labels).read(problems or Problems(), like)
    return understood, list(understood.examples)


def values(examples):
    return [example.value_T.tolist() for example in examples]


def labels(examples):
    return [example.label for example in examples]


def test_cases_of_several_channels_and_lengths_are_read(tmp_path):
    path = write(tmp_path, TWO_CHANNELS)
    understood, examples = read(path)
    assert values(examples) == [[[1, -1], [2, -2.5], [3, 100]], [[4, 5]], [[6, 8], [7, 9]]]
    assert all(example.value_T.dtype == np.float32 and example.value_T.flags.c_contiguous for example in examples)
    assert labels(examples) == ["walk", "run", "walk"]
    assert [example.place for example in examples] == [f"{path}, line {number}" for number in (12, 15, 16)]
    assert {example.part for example in examples} == {None}
    assert understood.description == "time series (.ts), 2 channels"
    assert understood.format == SeriesFormat(2)
    assert understood.num_examples is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("# between", "%between").replace("# A comment,\n#", "% A comment,\n%"),
        lambda text: text.replace("@dimensions", "@dimension"),
        lambda text: text.replace("@dimensions 2\n", ""),
        lambda text: text.replace("@classLabel", "@CLASSLABEL").replace("@data", "@Data").replace(" true", " TRUE"),
        lambda text: text.replace("@classLabel true", "@classLabel\ttrue"),
        lambda text: text.replace("true walk run", "true"),
        lambda text: text.replace("@dimensions 2", "@dimensions many"),
        lambda text: text.replace("@problemName Two\n", "").replace("@missing", "@problemName Two\n@missing"),
        lambda text: text.replace("@equalLength false", "@equalLength true\n@seriesLength 9\n@targetLabel false"),
        lambda text: text.replace("@equalLength false", "@license none\n@"),
        lambda text: text.encode().replace(b"comment", b"\xe4\xff comment"),
        lambda text: text.rstrip("\n"),
    ],
)
def test_a_header_may_be_written_in_many_ways(tmp_path, change):
    examples = read(write(tmp_path, TWO_CHANNELS))[1]
    changed = read(write(tmp_path, change(TWO_CHANNELS), "changed.ts"))[1]
    assert (values(changed), labels(changed)) == (values(examples), labels(examples))


def test_each_part_has_its_file_and_whole_numbers_are_the_same_class_in_all(tmp_path):
    train = write(tmp_path, with_cases("1,2:1.0", "3:2", "4:-1.", tags="@classLabel true 1 2.0 -1"), "A_TRAIN.ts")
    test = write(tmp_path, with_cases("5:1", "6:2.00", "7:1.5", tags="@classLabel true 1.0 2 1.5"), "A_TEST.ts")
    source = timeseries_source("mine", {"train": train, "test": test})
    examples = list(source.read(Problems(), None).examples)
    assert labels(examples) == ["1", "2", "-1", "1", "2", "1.5"]
    assert [example.part for example in examples] == ["train"] * 3 + ["test"] * 3
    assert source.files == [train, test]
    assert source.options == {"reader": "timeseries", "has_labels": True, "parts": "train, test"}
    assert timeseries_source("mine", train, has_labels=False).options["parts"] is None


def test_labels_that_are_left_open_are_none(tmp_path):
    path = write(tmp_path, with_cases("1:a", "2:?", "3:", "4: b "))
    assert labels(read(path)[1]) == ["a", None, None, "b"]


@pytest.mark.parametrize(
    ("tags", "case"),
    [("@classLabel false", "1,2:3,4"), ("@problemName A", "1,2:3,4"), ("@targetLabel true", "1,2:3,4:0.37")],
)
def test_missing_labels_are_wrong_usage_where_they_are_needed(tmp_path, assert_one_sentence, tags, case):
    path = write(tmp_path, with_cases(case, tags=tags))
    with pytest.raises(UsageError) as error:
        read(path)
    assert_one_sentence(error, path, "no labels", "@classLabel true")
    for files, has_labels in ((path, False), ({"unlabeled": path}, True)):
        examples = read(files, has_labels=has_labels)[1]
        assert (values(examples), labels(examples)) == ([[[1, 3], [2, 4]]], [None])


def test_empty_cases_are_left_out_and_counted(tmp_path):
    path, problems = write(tmp_path, with_cases("1:2:a", ": :b", tags="@classLabel true a b")), Problems()
    assert values(read(path, problems=problems)[1]) == [[[1, 2]]]
    assert problems.skipped == [f"{path}, line 4 is empty"]


def test_question_marks_nan_and_nothing_between_commas_are_gaps(tmp_path):
    path = write(tmp_path, with_cases("1,?, ,4:5,6,NaN,?:a"))
    nan = np.nan
    np.testing.assert_array_equal(values(read(path)[1])[0], [[1, 5], [nan, 6], [nan, nan], [4, nan]])


WRONG = {
    "empty-channel": (with_cases("1::b"), "line 3 has '' as value 1 of channel 2"),
    "word": (with_cases("1,two:b"), "line 3 has 'two' as value 2 of channel 1; write finite 32-bit floats"),
    "infinite": (with_cases("1,-inf:b"), "line 3 has '-inf' as value 2 of channel 1"),
    "too-large": (with_cases("1,1e39:b"), "line 3 has '1e39' as value 2 of channel 1"),
    "not-utf-8": (with_cases("1,\u00e4:b").encode("latin-1"), "as value 2 of channel 1"),
    "pairs": (with_cases("(0,1),(1,2):b"), "line 3 has '(0' as value 1 of channel 1"),
    "uneven": (with_cases("1,2:3,4:5:b"), "line 3 has channels of different lengths (1 and 2); give all channels"),
    "channels": (with_cases("1:2:a", "1:b"), "line 4 has 1 channel instead of 2 channels; put a colon after each"),
    "no-channels": (with_cases("1:a", "1"), "line 4 has 0 channels instead of 1 channel"),
    "unlisted": (with_cases("1,2:c"), "line 3 has the class 'c', which the header does not list"),
    "cut": (with_cases("1,2:a", "1,2:3,4"), "line 4 has the class '3,4', which the header does not list"),
    "no-label": (
        with_cases("1,2"),
        "line 3 has only one field; write one case per line: the values, a colon, and the class",
    ),
    "stamps": (
        with_cases("(0,1):a", tags="@timeStamps true\n@classLabel true a"),
        "has time stamps, which are not read",
    ),
    "no-cases": (with_cases(), "has no cases after its line @data"),
    "no-data": ("@classLabel true a b\n", "has no line @data"),
    "cases-before": ("@classLabel true a b\n1,2:a", "line 2 is not a header line"),
    "table": ("a,b\n1,2\n", "line 1 is not a header line"),
    "empty": ("", "has no line @data"),
    "comments": ("# one\n# two", "has no line @data"),
    "utf-16": (TWO_CHANNELS.encode("utf-16"), "line 1 is not a header line"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_files_are_refused_by_line(tmp_path, assert_one_sentence, kind):
    content, part = WRONG[kind]
    path = write(tmp_path, content)
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, path, part)


def test_a_patient_reader_finds_all_wrong_lines(tmp_path):
    content = with_cases("1,2:a", "1,x:a", "1,1e99:a", "3:4:a", "5:b")
    path, problems = write(tmp_path, content), Problems(is_patient=True)
    assert values(read(path, problems=problems)[1]) == [[[1], [2]], [[5]]]
    assert [sentence.split(" has ")[0] for sentence in problems.refused] == [f"{path}, line {n}" for n in (4, 5, 6)]


def test_files_of_one_dataset_have_the_same_channels(tmp_path, assert_one_sentence):
    train, test = write(tmp_path, with_cases("1:2:a")), write(tmp_path, with_cases("1:a"), "Two_TEST.ts")
    with pytest.raises(RunError) as error:
        read({"train": train, "test": test})
    assert_one_sentence(error, f"{test} has 1 channel instead of 2 channels")


def test_a_format_to_be_like_is_kept_and_must_fit(tmp_path, assert_one_sentence):
    path, like = write(tmp_path, TWO_CHANNELS), SeriesFormat(2, (1.0, 2.0), (3.0, 4.0), max_length=7)
    assert read(path, like=like)[0].format is like
    with pytest.raises(RunError) as error:
        read(path, like=SeriesFormat(3))
    assert_one_sentence(error, f"{path} has 2 channels instead of 3 channels")
    with pytest.raises(UsageError) as error:
        read(path, like=TextFormat())
    assert_one_sentence(error, path)


def test_a_line_without_end_is_refused(tmp_path, assert_one_sentence, monkeypatch):
    path = write(tmp_path, with_cases("1,2:a", "1" * 1000 + ":a"))
    monkeypatch.setattr(rows, "MOST_LINE_CHARACTERS", 999)
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, f"{path}, line 4 has more than 999 characters")
    monkeypatch.setattr(rows, "MOST_LINE_CHARACTERS", 1002)
    with pytest.raises(RunError, match="line 4 has"):
        read(path)


@pytest.mark.parametrize("kind", ["absent", "folder"])
def test_what_cannot_be_opened_is_refused(tmp_path, assert_one_sentence, kind):
    path = tmp_path / "A_TRAIN.ts"
    if kind == "folder":
        path.mkdir()
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, path, "cannot be read")


def test_the_space_is_guessed_from_the_first_case(tmp_path):
    path = write(tmp_path, with_cases(*["0.25,0.50,0.75:0.25,0.50,0.75:a"] * 1000))
    understood, examples = read(path)
    exact = sum(example.value_T.nbytes for example in examples)
    assert 0.95 * exact < understood.num_bytes < 1.1 * exact


def test_an_abandoned_reader_leaves_no_file_open(tmp_path):
    understood = timeseries_source("mine", write(tmp_path, TWO_CHANNELS)).read(Problems(), None)
    examples = iter(understood.examples)
    next(examples)
    del examples


def test_a_gzipped_file_and_its_test_split_are_read_alike(tmp_path):
    for part in ("TRAIN", "TEST"):
        (tmp_path / f"Two_{part}.ts.gz").write_bytes(gzip.compress(TWO_CHANNELS.encode()))
    for place in (tmp_path / "Two_TRAIN.ts.gz", tmp_path):
        understood = find_source(place, DataConfig(data=str(place))).read(Problems(), None)
        examples = list(understood.examples)
        assert values(examples[:3]) == [[[1, -1], [2, -2.5], [3, 100]], [[4, 5]], [[6, 8], [7, 9]]]
        assert [example.part for example in examples] == ["train"] * 3 + ["test"] * 3


def test_a_damaged_gzipped_file_is_refused(tmp_path):
    path = tmp_path / "Two.ts.gz"
    path.write_bytes(gzip.compress(TWO_CHANNELS.encode())[:-12])
    with pytest.raises(RunError, match="cannot be read \\(it is damaged or of another kind\\)"):
        list(find_source(path, DataConfig(data=str(path))).read(Problems(), None).examples)
