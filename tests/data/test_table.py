"""Tables of texts are read row by row, each with its place, or refused in one sentence."""

import builtins
import csv
import gc
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auxrnn.data.examples import Problems, to_label
from auxrnn.data.formats import SeriesFormat, TextFormat
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers import rows as table_rows
from auxrnn.data.readers.table import TableOptions, table_source
from auxrnn.errors import RunError, UsageError

NAMED = TableOptions(text_column="text", label_column="label")


def write(folder, content, name="my.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(files, options=NAMED, *, like=None, problems=None):
    """Read a table whole, as what was understood, and the texts, labels, places and parts of the examples."""
    understood = table_source("mine", files, options).read(Problems() if problems is None else problems, like)
    return understood, list(understood.examples)


def texts_of(examples):
    return ["".join(map(chr, example.value_T)) for example in examples]


def labels_of(examples):
    return [example.label for example in examples]


def lines_of(examples):
    return [int(example.place.rpartition(" ")[2]) for example in examples]


def test_a_table_gives_each_row_with_its_label_and_place(tmp_path):
    path = write(tmp_path, "text,label\ngood,pos\nbad,neg\n")
    understood, examples = read(path)
    assert texts_of(examples) == ["good", "bad"]
    assert [example[1:] for example in examples] == [
        ("pos", f"{path}, line 2", None, None),
        ("neg", f"{path}, line 3", None, None),
    ]
    assert understood.description == "table of texts in CSV, text in column text, labels in column label"
    assert understood.format == TextFormat(columns=("text",))
    assert understood.class_names is None
    assert understood.num_examples is None
    assert understood.num_bytes == 4 * path.stat().st_size


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("my.csv", 'label,text\r\npos,"a ""b"", c"\r\n', "CSV"),
        ("my.csv", '\ufefflabel;text\npos;a "b", c\n', "CSV"),
        ("my.csv", 'label\ttext\rpos\ta "b", c\r', "CSV"),
        ("MY.TSV", '\nlabel\ttext\n   \npos\t"a ""b"", c"\n\n', "TSV"),
        ("my.jsonl", '\n{"label": "pos", "text": "a \\"b\\", c"}\n', "JSON Lines"),
        ("my.ndjson", '\ufeff{"text": "a \\"b\\", c", "label": "pos", "more": [1]}', "JSON Lines"),
    ],
)
def test_every_kind_of_file_gives_the_same(tmp_path, name, content, title):
    understood, examples = read(write(tmp_path, content, name))
    assert (texts_of(examples), labels_of(examples)) == (['a "b", c'], ["pos"])
    assert f"table of texts in {title}, text in column text, labels in" in understood.description


def test_tokens_are_characters_or_bytes_in_lower_case_if_asked(tmp_path):
    path = write(tmp_path, "text,label\n\u00c4b\U0001f600,1\n")
    (characters,) = read(path)[1]
    assert characters.value_T.dtype == np.uint32
    assert characters.value_T.tolist() == [0xC4, ord("b"), 0x1F600]
    understood, (lower,) = read(path, NAMED._replace(tokens="bytes", is_lowercase=True))
    assert lower.value_T.dtype == np.uint8
    assert bytes(lower.value_T) == "\u00e4b\U0001f600".encode()
    assert understood.format == TextFormat(tokens="bytes", is_lowercase=True, columns=("text",))
    assert understood.num_bytes == path.stat().st_size


def test_a_row_is_placed_on_the_line_where_it_begins_as_an_editor_counts(tmp_path):
    content = 'text,label\n\n"a\nb\r\nc",1\nd,"1\n"\n"x\u2028\x0by",2\r\ne,2'
    _, examples = read(write(tmp_path, content))
    assert texts_of(examples) == ["a\nb\r\nc", "d", "x\u2028\x0by", "e"]
    assert lines_of(examples) == [3, 6, 8, 9]
    assert labels_of(examples) == ["1", "1", "2", "2"]


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.sampled_from("ab"))))
@settings(max_examples=40)
def test_what_csv_writes_is_read_again(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "written.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("text", "label"), ("first", "a"), *rows])
    problems = Problems()
    _, examples = read(path, problems=problems)
    kept = [text for text, _ in rows if text.strip()]
    assert texts_of(examples) == ["first", *kept]
    assert problems.num_skipped == len(rows) - len(kept)


def test_rows_without_a_label_have_none_and_rows_without_a_text_are_counted(tmp_path):
    path = write(tmp_path, "text,label\na, \nb,\n  ,1\n,1\nc, pos \n")
    problems = Problems()
    _, examples = read(path, problems=problems)
    assert labels_of(examples) == [None, None, "pos"]
    assert problems.skipped == [f"{path}, line 4 has no text", f"{path}, line 5 has no text"]
    assert problems.num_refused == 0


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (1, "1"),
        (1.0, "1"),
        ("1", "1"),
        (" 1.00 ", "1"),
        (-2.0, "-2"),
        (2.5, "2.5"),
        ("2.50", "2.50"),
        ("v1.0", "v1.0"),
        ("1.0.0", "1.0.0"),
        (True, "true"),
        (False, "false"),
        (1e300, "1e+300"),
        (None, None),
        (float("nan"), None),
        ("\t", None),
    ],
)
def test_a_number_is_the_same_class_however_it_is_written(value, label):
    assert to_label(value) == label


def test_several_columns_are_joined_by_a_space(tmp_path):
    path = write(tmp_path, "title,a+b,content,label\nT,x,C,1\n,y,D,2\n")
    understood, examples = read(path, NAMED._replace(text_column="title + content"))
    assert texts_of(examples) == ["T C", " D"]
    assert understood.format.columns == ("title", "content")
    assert "text in column title and content, labels in column label" in understood.description
    assert texts_of(read(path, NAMED._replace(text_column="3+title"))[1]) == ["C T", "D "]
    assert texts_of(read(path, NAMED._replace(text_column="a+b"))[1]) == ["x", "y"]


def test_each_part_has_its_own_file_and_columns_are_found_by_name(tmp_path):
    train = write(tmp_path, "id,words,mood\n1,a,pos\n2,b,neg\n", "train.csv")
    test = write(tmp_path, '{"mood": "neg", "words": "c"}\n', "test.jsonl")
    files = {"test": test, "train": train}
    source = table_source("mine", files, TableOptions("2", "mood"))
    understood = source.read(Problems(), None)
    examples = list(understood.examples)
    assert [example.part for example in examples] == ["test", "train", "train"]
    assert texts_of(examples) == ["c", "a", "b"]
    assert labels_of(examples) == ["neg", "pos", "neg"]
    assert understood.description.startswith("table of texts in CSV, text in column words")
    assert understood.num_bytes == 4 * (train.stat().st_size + test.stat().st_size)
    assert list(source.files) == [test, train]


def test_the_options_of_a_source_tell_all_that_its_examples_depend_on(tmp_path):
    path, names = tmp_path / "a.csv", tmp_path / "classes.txt"
    sources = [
        table_source("mine", files, options)
        for files in (path, {"train": path}, {"test": path}, tmp_path / "a.tsv")
        for options in (
            TableOptions(),
            TableOptions(text_column="a"),
            TableOptions(label_column="a"),
            TableOptions(tokens="bytes"),
            TableOptions(is_lowercase=True),
            TableOptions(has_labels=False),
            TableOptions(class_names=names),
        )
    ]
    keys = {json.dumps(source.options, sort_keys=True) for source in sources}
    assert len(keys) == len(sources)
    assert all(source.options["reader"] == "table" for source in sources)
    assert names in sources[6].files


@pytest.mark.parametrize(
    ("row", "line", "part"),
    [
        (b"x", 3, "has 1 column where the first row has 2; give it 2"),
        (b"x,1,", 3, "has 3 columns where the first row has 2"),
        (b"caf\xe9,1", 3, "is not valid UTF-8 text, or has a NUL character; save the file as UTF-8"),
        (b"a\xed\xa0\x80,1", 3, "is not valid UTF-8"),
        (b'"x\n\xff",1', 3, "is not valid UTF-8"),
        (b"a\0b,1", 3, "has a NUL character"),
        (b'"x\ny\0",1', 3, "has a NUL character"),
        (b'"x" y,1', 3, "has text after a closing quote; close a quote, and double one inside a text"),
        (b'"a\nb","x\ny\n"z,1', 3, "has text after a closing quote"),
    ],
)
def test_a_bad_row_is_refused_by_its_line_and_the_rest_can_still_be_read(
    tmp_path, assert_one_sentence, row, line, part
):
    path = write(tmp_path, b"text,label\ngood,1\n" + row + b"\nlast,2\n")
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, f"{path}, line {line} ", part)
    problems = Problems(is_patient=True)
    _, examples = read(path, problems=problems)
    assert texts_of(examples) == ["good", "last"]
    assert problems.refused == [str(error.value)]


def test_a_quote_that_is_never_closed_is_named_where_it_opens(tmp_path, assert_one_sentence):
    path = write(tmp_path, 'text,label\ngood,1\n"a\nb","x\ny,2\nz,2\n')
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, f"{path}, line 3 opens a quote that is never closed, or has")
    problems = Problems(is_patient=True)
    assert texts_of(read(path, problems=problems)[1]) == ["good"]
    assert problems.refused == [str(error.value)]


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ('{"text": "x"', "is not JSON (Expecting"),
        ("1" * 5000, "is not JSON (it is too large)"),
        ("[" * 100_000, "is not JSON (it is too large)"),
        ("[1]", "is JSON but not an object; write it as"),
        ('{"text": 3}', "has a text of type int; write it as a text in quotes"),
        ('{"text": {"a": 1}, "label": 1}', "has a text of type dict"),
        ('{"text": "x", "label": ["a"]}', "has a label of type list; give it a word or a number"),
        ('{"text": "x", "label": {}}', "has a label of type dict"),
        ('{"text": "x\\ud800", "label": 1}', "is not valid UTF-8"),
        ('{"text": "x", "label": "\\udc80"}', "is not valid UTF-8"),
        ('{"text": "x\\u0000", "label": 1}', "is not valid UTF-8 text, or has a NUL character"),
    ],
)
def test_a_bad_line_of_json_is_refused_and_the_rest_can_still_be_read(tmp_path, assert_one_sentence, row, part):
    good, last = '{"text": "good", "label": 1}', '{"text": "last", "label": null}'
    path = write(tmp_path, "\n".join([good, row, "", last]), "my.jsonl")
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, f"{path}, line 2 {part}")
    problems = Problems(is_patient=True)
    _, examples = read(path, problems=problems)
    assert (texts_of(examples), labels_of(examples), lines_of(examples)) == (["good", "last"], ["1", None], [1, 4])
    assert problems.refused == [str(error.value)]


def test_values_of_json_that_are_missing_or_no_texts_are_understood(tmp_path):
    rows = [
        {"text": "a", "label": 1.0},
        {"text": "b"},
        {"text": None, "label": True},
        {"text": "c", "label": True},
        {"text": "d", "label": float("nan")},
    ]
    problems = Problems()
    _, examples = read(write(tmp_path, "\n".join(map(json.dumps, rows)), "my.jsonl"), problems=problems)
    assert texts_of(examples) == ["a", "b", "c", "d"]
    assert labels_of(examples) == ["1", None, "true", None]
    assert problems.num_skipped == 1


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("my.csv", "", "has no rows; give it at least one"),
        ("my.csv", "\ufeff\n \n\n", "has no rows"),
        ("my.csv", "text,label\n\n", "has no rows"),
        ("my.csv", 'text,"label\na,1\n', "line 1 opens a quote that is never closed"),
        ("my.csv", "text,label\na,1,1\nb,1,1\n", "line 2 has 3 columns where the first row has 2"),
        ("my.jsonl", "", "has no rows"),
        ("my.jsonl", "{\n}\n", "line 1 is not JSON"),
    ],
)
def test_a_table_without_rows_that_can_be_read_is_refused(tmp_path, assert_one_sentence, name, content, part):
    path = write(tmp_path, content, name)
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, path, part)


def test_a_name_that_two_columns_have_is_refused_and_a_number_is_not(tmp_path, assert_one_sentence):
    path = write(tmp_path, "words,words,label\na,b,1\nc,d,2\n", "my.csv")
    with pytest.raises(UsageError) as error:
        read(path, TableOptions(text_column="words"))
    assert_one_sentence(error, path, "more than one column 'words'", "--text-column")
    assert len(list(read(path, TableOptions(text_column="2", label_column="label")))) == 2


@pytest.mark.parametrize("name", ["absent.csv", "folder.csv", "absent.jsonl", "folder.txt", "absent.parquet"])
def test_a_file_that_cannot_be_opened_is_refused(tmp_path, assert_one_sentence, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    if name.startswith("folder"):
        path.mkdir()
    with pytest.raises(RunError) as error:
        read(path, TableOptions(has_labels=False))
    assert_one_sentence(error, path)


@pytest.mark.parametrize(
    ("train", "test", "part"),
    [
        ("text,label\na,1\n", "text,mood\na,1\n", "has no column 'label' (it has 'text', 'mood')"),
        ("text,label\na,1\n", "a,1\nb,2\n", "has no column 'text'"),
        ("text,label\na,1\n", "text,label\n", "has no rows"),
        ("text,label\na,1\n", "", "has no rows"),
        ("text,label\na,1\n", b"text,label\xff\n", "has no column 'label'"),
        ("1,a b c\n2,d e f\n", "1,a b c,\n", "has 3 columns where"),
    ],
)
def test_a_part_that_does_not_fit_the_training_file_is_refused_by_name(
    tmp_path, assert_one_sentence, train, test, part
):
    files = {"train": write(tmp_path, train, "train.csv"), "test": write(tmp_path, test, "test.csv")}
    options = NAMED if train.startswith("text") else TableOptions("2", "1")
    with pytest.raises((RunError, UsageError)) as error:
        read(files, options)
    assert_one_sentence(error, f"{files['test']}", part)
    problems = Problems(is_patient=True)
    assert {example.part for example in read(files, options, problems=problems)[1]} == {"train"}
    assert problems.refused == [str(error.value)]
    assert problems.num_refused == 1


def test_a_part_without_labels_fits_where_none_are_needed(tmp_path):
    files = {"train": write(tmp_path, "text,label\na,1\n", "a.csv"), "test": write(tmp_path, "text\nb\n", "b.csv")}
    _, examples = read(files, TableOptions(has_labels=False))
    assert (texts_of(examples), labels_of(examples)) == (["a", "b"], ["1", None])


def test_a_file_of_one_text_a_line_has_no_labels(tmp_path, assert_one_sentence):
    path = write(tmp_path, "\ufefftext\nb, c\r\n\nd\x0be", "my.txt")
    with pytest.raises(UsageError) as error:
        read(path, TableOptions())
    assert_one_sentence(
        error, path, "is the label (it has 'text'); add a column of labels, or give the file as --unlabeled"
    )
    problems = Problems()
    understood, examples = read(path, TableOptions(has_labels=False), problems=problems)
    assert texts_of(examples) == ["text", "b, c", "d\x0be"]
    assert (labels_of(examples), lines_of(examples)) == ([None] * 3, [1, 2, 4])
    assert problems.skipped == [f"{path}, line 3 has no text"]
    assert understood.description == "texts, one per line"


def test_bad_lines_of_a_file_of_texts_are_refused(tmp_path, assert_one_sentence):
    path = write(tmp_path, b"a\nb\xff\nc\n", "my.txt")
    options, problems = TableOptions(has_labels=False), Problems(is_patient=True)
    assert texts_of(read(path, options, problems=problems)[1]) == ["a", "c"]
    with pytest.raises(RunError) as error:
        read(path, options)
    assert_one_sentence(error, f"{path}, line 2 is not valid UTF-8")
    assert problems.refused == [str(error.value)]


def test_class_names_are_numbered_by_their_lines(tmp_path):
    names = write(tmp_path, "Zebra\r\nAnt\n\n", "classes.txt")
    understood, examples = read(write(tmp_path, "text,label\na,2\nb,1.0\nc,\n"), NAMED._replace(class_names=names))
    assert list(understood.class_names.items()) == [("1", "Zebra"), ("2", "Ant")]
    assert labels_of(examples) == ["2", "1", None]


@pytest.mark.parametrize(
    ("names", "part"),
    [
        ("", "classes.txt does not name one class on each line"),
        ("a\n\nb\n", "classes.txt does not name one class on each line"),
        ("a\nb\na\n", "classes.txt does not name one class on each line"),
        (b"a\n\xff\n", "classes.txt cannot be read as a list of class names"),
    ],
)
def test_wrong_class_names_are_refused(tmp_path, assert_one_sentence, names, part):
    options = NAMED._replace(class_names=write(tmp_path, names, "classes.txt"))
    with pytest.raises(RunError) as error:
        read(write(tmp_path, "text,label\na,3\n"), options)
    assert_one_sentence(error, part)


def test_a_model_is_given_texts_as_it_was_trained_on_them(tmp_path):
    path = write(tmp_path, "title,review,mood\nT,Long TEXT,x\nU,Longer TEXT,y\n")
    like = TextFormat(tokens="bytes", alphabet=None, is_lowercase=True, max_length=3, columns=("title",))
    understood, examples = read(path, TableOptions(has_labels=False), like=like)
    assert [bytes(example.value_T) for example in examples] == [b"t", b"u"]
    assert understood.format == TextFormat(tokens="bytes", is_lowercase=True, columns=("title",))
    _, examples = read(path, TableOptions(text_column="review", has_labels=False), like=like)
    assert [bytes(example.value_T) for example in examples] == [b"long text", b"longer text"]


@pytest.mark.parametrize("like", [ImageFormat(2, 2, 1), SeriesFormat(1)])
def test_a_model_of_another_kind_is_given_no_texts(tmp_path, assert_one_sentence, like):
    with pytest.raises(UsageError) as error:
        read(write(tmp_path, "text,label\na,1\n"), like=like)
    assert_one_sentence(error, "mine is a table of texts where the model reads")


@pytest.fixture
def small_limit(monkeypatch):
    """A small limit in place of the real one, for csv too, which keeps it for the whole process."""
    limit = csv.field_size_limit(1000)
    monkeypatch.setattr(table_rows, "MOST_CHARACTERS", 1000)
    yield 1000
    csv.field_size_limit(limit)


@pytest.mark.parametrize(
    ("name", "content", "place", "part"),
    [
        ("my.csv", "text,label\n{},1\n", "line 2", "has a field of"),
        ("my.csv", 'text,label\n"{}",1\n', "line 2", "has a field of"),
        ("my.csv", 'text,label\na,1\nb,"{}\n' + "x\n" * 1000, "line 3", "has a field of"),
    ],
)
def test_fields_that_are_too_long_are_refused(tmp_path, assert_one_sentence, small_limit, name, content, place, part):
    path = write(tmp_path, content.format("x" * (small_limit + 1)), name)
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, f"{path}, {place}", part)
    problems = Problems(is_patient=True)
    read(path, problems=problems)
    assert problems.refused == [str(error.value)]


def test_a_line_without_an_end_is_refused_and_ends_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(table_rows, "MOST_LINE_CHARACTERS", 100)
    path = write(tmp_path, "text,label\na,1\n" + "x" * 1000 + ",1\nb,2\n")
    problems = Problems(is_patient=True)
    assert texts_of(read(path, problems=problems)[1]) == ["a"]
    assert problems.refused == [f"{path}, line 3 has more than 100 characters; make it shorter"]


def test_rows_are_read_one_by_one_and_the_file_is_closed_when_nobody_wants_more(tmp_path):
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("text,label\n")
        file.writelines(f"{'some words ' * 1000}{index},{index % 3}\n" for index in range(400))
    examples = iter(table_source("mine", path, NAMED).read(Problems(), None).examples)
    next(examples)
    tracemalloc.start()
    for _ in range(300):
        next(examples)
    assert tracemalloc.get_traced_memory()[1] < 400_000 < path.stat().st_size / 10
    tracemalloc.stop()
    # A file that is left open gives a warning, which is an error here.
    del examples
    gc.collect()


def test_the_real_dbpedia_is_understood(shared_dbpedia):
    files = {"train": shared_dbpedia / "train.csv", "test": shared_dbpedia / "test.csv"}
    source = table_source("dbpedia", files, TableOptions("3", "1", is_lowercase=True))
    understood = source.read(Problems(), None)
    columns = "text in column 3, labels in column 1"
    assert understood.description == f"table of texts in CSV without a header, {columns}"
    first = next(iter(understood.examples))
    assert (first.label, first.place) == ("3", f"{files['train']}, line 1")
    assert texts_of([first])[0].startswith("thomas e. breitenbach (born july 29 1951")


@pytest.fixture
def write_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def write(columns, name="my.parquet", **options):
        parquet.write_table(pyarrow.table(columns), tmp_path / name, **options)
        return tmp_path / name

    return write


def test_parquet_gives_the_rows_of_its_columns(write_parquet):
    texts = [f"text {index}" for index in range(600)]
    columns = {"id": range(600), "label": [index % 3 / 1.0 for index in range(600)], "text": texts}
    columns = {name: list(values) for name, values in columns.items()}
    columns["more"] = ["x" * 1000 + str(index) for index in range(600)]
    columns["text"][7], columns["label"][8], columns["label"][9] = None, None, float("nan")
    del texts[7]
    path = write_parquet(columns, row_group_size=100, compression="none")
    problems = Problems()
    understood, examples = read(path, TableOptions(), problems=problems)
    assert texts_of(examples) == texts
    assert labels_of(examples)[:9] == ["0", "1", "2", "0", "1", "2", "0", None, None]
    assert [examples[6].place, examples[-1].place] == [f"{path}, row 7", f"{path}, row 600"]
    assert problems.skipped == [f"{path}, row 8 has no text"]
    assert 4 * len("".join(texts)) < understood.num_bytes
    assert "in Parquet, text in column text, labels in column label" in understood.description


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ({"text": [b"a"], "label": [1]}, "row 1 has a text of type bytes"),
        ({"text": ["a"], "label": [[1]]}, "row 1 has a label of type list"),
        ({"text": ["a\0"], "label": [1]}, "row 1 is not valid UTF-8 text, or has a NUL character"),
        ({"text": [], "label": []}, "has no rows"),
    ],
)
def test_wrong_values_of_parquet_are_refused(write_parquet, assert_one_sentence, columns, part):
    path = write_parquet(columns)
    with pytest.raises(RunError) as error:
        read(path)
    assert_one_sentence(error, path, part)


def test_damaged_parquet_is_refused_and_other_parts_can_still_be_read(write_parquet, assert_one_sentence):
    rows = {"text": [f"{index} words {index**2}" for index in range(3000)], "label": [1, 2] * 1500}
    files = {"train": write_parquet(rows, "a.parquet", row_group_size=1500), "test": write_parquet(rows, "b.parquet")}
    content = bytearray(files["train"].read_bytes())
    half = len(content) // 2
    content[half : half + 2000] = b"\xff" * 2000
    files["train"].write_bytes(content)
    with pytest.raises(RunError) as error:
        read(files)
    assert_one_sentence(error, files["train"], "cannot be read as Parquet", "write it again")
    problems = Problems(is_patient=True)
    _, examples = read(files, problems=problems)
    assert sum(example.part == "test" for example in examples) == 3000
    assert problems.refused == [str(error.value)]


def test_without_pyarrow_the_command_that_brings_it_is_given(tmp_path, monkeypatch, assert_one_sentence):
    real_import = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UsageError) as error:
        read(write(tmp_path, b"", "my.parquet"))
    assert_one_sentence(error, "my.parquet", "pip install 'auxrnn[parquet]'")
