"""Tables of numbers are read in both layouts, and told from tables of texts; what is unclear is asked in a sentence."""

import gzip
import json
import re

import numpy as np
import pytest

from auxrnn.config import DataConfig
from auxrnn.data.datasets import load
from auxrnn.data.examples import Problems
from auxrnn.data.formats import SeriesFormat
from auxrnn.data.readers import numbers
from auxrnn.data.sources import find_source
from auxrnn.errors import RunError, UsageError

WIDE = "id,t0,t1,t2,label\n7,1,2.5,-3e1,up\n8,4,5,,down\n9,6,,,up\n"
LONG = "id,time,x,y,label\na,2,3,4,up\na,1,1,2,up\nb,1,5,6,down\n"


def read(path, *, has_labels=True, like=None, problems=None, **options):
    """Give what was understood, and all examples."""
    source = find_source(path, DataConfig(data=str(path), **options), has_labels=has_labels, like=like)
    understood = source.read(problems or Problems(), like)
    return understood, list(understood.examples)


def write(folder, content, name="my.csv"):
    (folder / name).write_text(content)
    return folder / name


def values(examples):
    return [example.value_T.tolist() for example in examples]


def labels(examples):
    return [example.label for example in examples]


def test_a_row_is_a_series_that_ends_at_its_last_number(tmp_path):
    path = write(tmp_path, WIDE)
    understood, examples = read(path)
    assert values(examples) == [[[1], [2.5], [-30]], [[4], [5]], [[6]]]
    assert labels(examples) == ["up", "down", "up"]
    assert [example.place for example in examples] == [f"{path}, line {number}" for number in (2, 3, 4)]
    assert all(example.value_T.dtype == np.float32 for example in examples)
    assert understood.format == SeriesFormat(1, columns=("t0", "t1", "t2"))
    assert understood.description.endswith("steps in 3 columns, from t0 to t2, labels in column label")


@pytest.mark.parametrize("gap", ["", "NaN", " ? "])
def test_a_number_that_is_missing_is_a_gap_in_its_series(tmp_path, gap):
    for content, expected in (
        (WIDE.replace("2.5", gap), [[1], [np.nan], [-30]]),
        (LONG.replace("3,4", f"{gap},4"), [[1, 2], [np.nan, 4]]),
    ):
        np.testing.assert_array_equal(read(write(tmp_path, content))[1][0].value_T, expected)


def test_gaps_of_tables_are_counted_or_refused_as_those_of_arrays_are(tmp_path, assert_one_sentence):
    wide, long = write(tmp_path, WIDE.replace("2.5", "")), write(tmp_path, LONG.replace("3,4", ",4"), "long.csv")
    for path, place in ((wide, "line 2 has nan at step 1, channel 0"), (long, "series a has nan at step 1, channel 0")):
        facts = load(DataConfig(data=str(path))).facts
        assert (facts.num_missing, facts.num_gappy) == (1, 1)
        with pytest.raises(RunError) as error:
            load(DataConfig(data=str(path), missing="refuse"))
        assert_one_sentence(error, f"{path}, {place}; fill it in, or give --missing mask")


def test_a_column_without_a_name_is_left_out(tmp_path):
    _, examples = read(write(tmp_path, WIDE.replace("id,", ",")))
    assert values(examples)[0] == [[1], [2.5], [-30]]


def test_a_row_of_the_archive_begins_with_its_class_and_the_test_split_lies_beside_it(tmp_path):
    path = write(tmp_path, "1.0000000e+00\t0.5\t1\n2.0000000e+00\t1.5\t2\n", "Gun_TRAIN.tsv")
    write(tmp_path, "2\t7\t8\n", "Gun_TEST.tsv")
    for where in (path, tmp_path):
        _, examples = read(where)
        assert labels(examples) == ["1", "2", "2"]
        assert [example.part for example in examples] == ["train", "train", "test"]
        assert values(examples) == [[[0.5], [1]], [[1.5], [2]], [[7], [8]]]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1)])
def test_rows_of_steps_become_series_sorted_by_time_whether_adjacent_or_not(tmp_path, order):
    header, *rows = LONG.splitlines()
    understood, examples = read(write(tmp_path, "\n".join([header, *(rows[index] for index in order)])))
    found = {example.label: example.value_T.tolist() for example in examples}
    assert found == {"up": [[1, 2], [3, 4]], "down": [[5, 6]]}
    assert understood.format == SeriesFormat(2, columns=("x", "y"), series_column="id", time_column="time")


def test_adjacent_series_come_one_after_the_other(tmp_path, monkeypatch):
    rows = "".join(f"s{row // 2},{row},{row},{row // 2 % 2}\n" for row in range(20))
    path, num_open = write(tmp_path, "id,time,x,label\n" + rows), []
    finish = numbers._finish
    monkeypatch.setattr(numbers, "_finish", lambda series, part: num_open.append(len(series)) or finish(series, part))
    assert len(read(path)[1]) == 10
    assert max(num_open) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2024-03-01T10:00:00", "2024-03-01T09:59:59.5"),
        ("10", "9"),
        ("2024-03-01 01:00+00:00", "2024-03-01 01:30+01:00"),
    ],
)
def test_times_are_numbers_or_moments(tmp_path, first, second):
    _, examples = read(write(tmp_path, f"id,when,x,z,label\na,{first},1,1,u\na,{second},2,2,u\n"), time_column="when")
    assert values(examples) == [[[2, 2], [1, 1]]]


def test_the_user_names_columns(tmp_path):
    path = write(tmp_path, "who,when,x,note,z,kind\n1,1,1,hm,9,u\n1,0,2,hm,8,u\n")
    options = {"series_column": "who", "time_column": "when", "value_columns": "z+1", "label_column": "kind"}
    _, examples = read(path, **options)
    assert (values(examples), labels(examples)) == ([[[8, 1], [9, 1]]], ["u"])


@pytest.mark.parametrize("suffix", [".csv.gz", ".jsonl", ".jsonl.gz", ".parquet"])
def test_other_kinds_of_tables_give_the_same(tmp_path, suffix):
    header, *rows = (line.split(",") for line in LONG.splitlines())
    path, kinds = tmp_path / f"my{suffix}", (str, int, float, float, str)
    records = [{name: kind(cell) for name, kind, cell in zip(header, kinds, row, strict=True)} for row in rows]
    content = LONG if "csv" in suffix else "\n".join(map(json.dumps, records))
    if suffix == ".parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(records), path)
    else:
        path.write_bytes(gzip.compress(content.encode()) if suffix.endswith(".gz") else content.encode())
    _, examples = read(path)
    assert (values(examples), labels(examples)) == ([[[1, 2], [3, 4]], [[5, 6]]], ["up", "down"])


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        (WIDE.replace("2.5", "inf"), {}, "line 2 has 'inf' in column 't1'; fill it in with a finite 32-bit float"),
        (WIDE.replace("2.5", "1e99"), {}, "line 2 has '1e99' in column 't1'; fill it in with a finite 32-bit float"),
        (WIDE + "1,2,3,4,up,5\n", {}, "line 5 has 6 columns where the first row has 5; give it at most 5"),
        (LONG.replace("a,1,1,2,up", "a,1,1,2,down"), {}, "has the label 'down' where its series began with 'up'; give"),
        (LONG.replace("a,1", ",1"), {}, "line 3 does not say which series it belongs to; give it the name of one"),
        (LONG.replace("a,1", "a,noon"), {}, "has the time 'noon' in column 'time'; write a number, or a date and time"),
        ("id,time,x,y,label\n", {"value_columns": "x"}, "has no series; give it at least one row of numbers"),
    ],
)
def test_a_wrong_row_is_refused_by_its_line(tmp_path, content, options, sentence):
    with pytest.raises(RunError, match=re.escape(sentence)):
        read(write(tmp_path, content), **options)


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        (
            "t0,t1,t2\n1,2,3\n",
            {},
            "does not say which column is the label (it has 't0', 't1', 't2'); give --label-column",
        ),
        ("time,x,z,label\n1,2,3,u\n", {}, "has a column 'time', and none that says which series a row belongs to (it"),
        ("t0,t1,note,label\n1,2,hm,u\n", {}, "by name or by number from 1 (or --value-columns, for numbers)"),
        (WIDE, {"value_columns": "t0+label"}, "holds words in 'label'"),
        (WIDE, {"value_columns": "t0+t9"}, "has no column 't9'"),
        (WIDE, {"text_column": "t0+t1"}, "has numbers in 't0', 't1', not texts; give --value-columns t0+t1 instead"),
        ('{"a\\udcf7": 1, "b": 2}\n' * 2, {"text_column": "1+2"}, "give --value-columns 1+b instead"),
        (WIDE, {"tokens": "integers"}, "tokens is characters or bytes, integers is for arrays"),
    ],
)
def test_what_is_not_clear_is_asked_in_one_sentence(tmp_path, content, options, sentence):
    name = "my.jsonl" if content.startswith("{") else "my.csv"
    with pytest.raises(UsageError, match=re.escape(sentence)):
        read(write(tmp_path, content, name), **options)


@pytest.mark.parametrize(
    "content",
    ["text,label\n1,a\n2,b\n", "text,t0,label\nwords,1,a\nmore,2,b\n", "label,text\na,0110\nb,1001\n"],
)
def test_texts_stay_texts(tmp_path, content):
    assert "table of texts" in read(write(tmp_path, content))[0].description


@pytest.mark.parametrize("content", ["t1,t0\n2,1\n", "label,t0,t1,new\nup,1,2,7\n", "1,2\n"])
def test_new_tables_are_read_by_the_columns_of_the_training_data(tmp_path, content):
    like = SeriesFormat(1, (0.0,), (1.0,), columns=("t0", "t1") if "t" in content else ("2", "3"))
    _, examples = read(write(tmp_path, content), has_labels=False, like=like)
    assert values(examples) == [[[1], [2]]]


def test_a_new_table_without_the_columns_of_the_training_data_is_refused(tmp_path):
    like = SeriesFormat(2, (0.0,) * 2, (1.0,) * 2, columns=("x", "y"), series_column="id", time_column="time")
    with pytest.raises(RunError, match="has no column 'y', which the training data has; give it the same columns"):
        read(write(tmp_path, "id,time,x\n1,1,1\n"), has_labels=False, like=like)
    with pytest.raises(RunError, match="has no column 'x', which the training data has; give it the same columns"):
        read(write(tmp_path, "0.5,1.5\n"), has_labels=False, like=like)


def test_what_would_unpack_to_absurd_sizes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("auxrnn.data.archives.FREE_BYTES", 2**12)
    monkeypatch.setattr("auxrnn.data.archives.MOST_RATIO", 5)
    path = tmp_path / "my.csv.gz"
    path.write_bytes(gzip.compress(b"id,t0,t1,label\n" + b"1,1,1,up\n" * 2000))
    with pytest.raises(RunError, match="with which it unpacks to more than 5 times its size"):
        read(path)
