"""The columns of a table are those that the user names or that have well-known names; else the user is asked."""

import csv
import io

import numpy as np
import pytest

from auxrnn.data.examples import Problems
from auxrnn.data.formats import TextFormat
from auxrnn.data.readers.table import TableOptions, table_source
from auxrnn.errors import UsageError
from command import call

UNSAID = TableOptions()
HEADERLESS = TableOptions("2", "1")
ROWS = [["pos", "a fine film", "1"], ["neg", "nobody laughed", "2"]]


def write(folder, rows, name="my.csv", delimiter=","):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter).writerows(rows)
    (folder / name).write_text(buffer.getvalue(), newline="")
    return folder / name


def understand(path, options=UNSAID, like=None):
    """Say what the columns are, and give the first example's text and label."""
    understood = table_source("mine", path, options).read(Problems(), like)
    first = next(iter(understood.examples))
    return understood.description.partition(", ")[2], "".join(map(chr, first.value_T)), first.label


@pytest.mark.parametrize(
    ("header", "text", "label"),
    [
        (["label", "text", "id"], "text", "label"),
        ([" Stars", "Review Text ", "x"], "Review Text", "Stars"),
        (["y", "tweet", ""], "tweet", "y"),
        (["class", "title", "author"], "title", "class"),
        (["Category", "review-body", "n"], "review-body", "Category"),
    ],
)
def test_columns_with_well_known_names_are_taken(tmp_path, header, text, label):
    found = understand(write(tmp_path, [header, *ROWS]))
    assert found == (f"text in column {text}, labels in column {label}", "a fine film", "pos")


@pytest.mark.parametrize(
    ("header", "part"),
    [
        (
            ["label", "title", "content"],
            "is the text (it has 'label', 'title', 'content'); give --text-column, by name",
        ),
        (
            ["label", "text", "stars"],
            "is the label (it has 'label', 'text', 'stars'); give --label-column, by name",
        ),
        (
            ["text", "essay", "id"],
            "is the text and which the label (it has 'text', 'essay', 'id'); give --text",
        ),
        (
            ["mood", "essay", "id"],
            "the text and which the label (it has 'mood', 'essay', 'id'); give --text-colu",
        ),
        (["mood", "x" * 99, ""], f"(it has 'mood', '{'x' * 12}...{'x' * 13}', ''); give --text-column and --lab"),
        (ROWS[0], "(it has 'pos', 'a fine film', '1'); give --text-column and --label-column, by name"),
        ([*"abcdefghijklmn"], "'l', ...)"),
        (
            ["text"],
            "is the label (it has 'text'); add a column of labels, or give the file as --unlabeled",
        ),
    ],
)
def test_what_the_names_do_not_settle_is_asked(tmp_path, assert_one_sentence, header, part):
    path = write(tmp_path, [header, ["x"] * len(header)])
    with pytest.raises(UsageError) as error:
        understand(path)
    assert_one_sentence(error, path, part)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_the_one_that_is_not_in_quotes(tmp_path, delimiter):
    others = "".join(9 * other for other in ",;\t" if other != delimiter)
    rows = [[f'a "{others}', "pos"], ["b", "neg"]]
    found, first, label = understand(write(tmp_path, rows, delimiter=delimiter), TableOptions("1", "2"))
    assert (first, label) == (rows[0][0], "pos")
    assert found == "text in column 1, labels in column 2"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (
            TableOptions(text_column="boddy"),
            "has no column 'boddy' (it has 'id', 'class', 'title', 'body'); give --text-column one",
        ),
        (TableOptions(text_column="body+clas"), "has no column 'clas' (it has 'id', "),
        (TableOptions(text_column="5"), "has no column '5' (it has"),
        (TableOptions(label_column="0"), "has no column '0' (it has"),
        (TableOptions(text_column=""), "has no column ''"),
        (TableOptions(text_column="4+body", label_column="body"), "'body' of"),
    ],
)
def test_columns_that_are_not_there_are_refused_with_those_that_are(tmp_path, assert_one_sentence, options, part):
    path = write(tmp_path, [["id", "class", "title", "body"], ["1", "pos", "x", "y"]])
    with pytest.raises(UsageError) as error:
        understand(path, options)
    assert_one_sentence(error, path, part)


def test_a_column_without_a_name_has_a_number_only(tmp_path, assert_one_sentence):
    path = write(tmp_path, [["", "text", "label"], ["so", "and so", "on"]])
    with pytest.raises(UsageError) as error:
        understand(path, TableOptions(text_column=""))
    assert_one_sentence(error, path, "has no column '' (it has '', 'text', 'label'); give --text-column")
    found = ("text in column 1, labels in column label", "so", "on")
    assert understand(path, TableOptions(text_column="1")) == found


def test_names_for_a_table_without_a_header_are_refused(tmp_path, assert_one_sentence):
    path = write(tmp_path, ROWS)
    for name in ("body", "4"):
        with pytest.raises(UsageError) as error:
            understand(path, TableOptions(text_column=name))
        assert_one_sentence(
            error, f"{path} has no column {name!r} (it has '1', '2', '3'); give --text-column one that all files have"
        )


def test_a_name_that_nobody_reads_to_its_end_is_not_shown_to_its_end(tmp_path, assert_one_sentence):
    with pytest.raises(UsageError) as error:
        understand(write(tmp_path, ROWS), TableOptions(text_column="1" * 5000))
    assert_one_sentence(error, "has no column '111", "111...111", "give --text-column one that all files have")
    assert len(str(error.value)) < 1100


def test_a_name_that_is_given_makes_the_first_row_a_header(tmp_path):
    path = write(tmp_path, [["so", "and so"], ["a", "b"]])
    assert understand(path, TableOptions("and so", "1")) == ("text in column and so, labels in column so", "b", "a")
    assert understand(path, TableOptions("2", "so")) == ("text in column and so, labels in column so", "b", "a")
    assert understand(path, TableOptions(None, "so")) == ("text in column and so, labels in column so", "b", "a")
    assert understand(path, HEADERLESS) == ("text in column 2, labels in column 1", "and so", "so")


def test_a_number_is_a_position_only_where_no_column_is_called_so(tmp_path):
    path = write(tmp_path, [["3", "text", "2"], ["a", "b", "c"]])
    assert understand(path, TableOptions("text", "2"))[1:] == ("b", "c")
    assert understand(path, TableOptions("text", "1"))[1:] == ("b", "a")
    assert understand(path, TableOptions("3", "text"))[1:] == ("a", "b")


def test_columns_of_the_same_name_are_told_apart_by_number(tmp_path):
    path = write(tmp_path, [["text", "text", "label"], ["a", "b", "c"]])
    assert understand(path, TableOptions("2"))[1:] == ("b", "c")
    assert table_source("mine", path, TableOptions("2")).read(Problems(), None).format.columns == ("2",)
    files = {"train": path, "test": write(tmp_path, [["text", "text", "label"], ["d", "e", "f"]], "test.csv")}
    examples = list(table_source("mine", files, TableOptions("2")).read(Problems(), None).examples)
    assert ["".join(map(chr, example.value_T)) for example in examples] == ["b", "e"]


@pytest.mark.parametrize(
    ("rows", "description", "label"),
    [
        ([["text"], ["x"]], "text in column text, without labels", None),
        ([["x y"], ["y z"]], "text in column 1, without labels", None),
        ([["id", "text"], ["1", "x"]], "text in column text, without labels", None),
        ([["text", "stars", "topic"], ["x", "1", "2"]], "text in column text, without labels", None),
        ([["text", "label"], ["x", "pos"]], "text in column text, labels in column label", "pos"),
    ],
)
def test_labels_may_be_missing_where_none_are_needed(tmp_path, rows, description, label):
    found, _, given = understand(write(tmp_path, rows), TableOptions(has_labels=False))
    assert (found, given) == (description, label)


@pytest.mark.parametrize(
    ("rows", "columns", "first"),
    [
        ([["plot", "mood"], ["x", "pos"]], ("plot",), "x"),
        ([["mood", "plot", "plot two"], ["pos", "x", "y"]], ("plot two", "plot"), "y x"),
        ([["text", "mood"], ["x", "pos"]], ("plot",), "x"),
        (ROWS, ("2",), "a fine film"),
        ([["only"], ["one"]], ("2", "3"), "only"),
        ([["mood", "text", "year"], ["a", "x", "1"]], ("3",), "x"),
    ],
)
def test_the_columns_of_the_model_are_taken_where_the_file_has_them(tmp_path, rows, columns, first):
    found = understand(write(tmp_path, rows), TableOptions(has_labels=False), TextFormat(columns=columns))
    assert found[1] == first


def test_the_keys_of_json_are_its_columns(tmp_path, assert_one_sentence):
    path = tmp_path / "my.jsonl"
    rows = ['{"n": 1, "plot": "a b", "tags": [1]}', '{"n": 2, "plot": "c", "tags": [1], "kind": 0}']
    path.write_text("\n".join(rows))
    with pytest.raises(UsageError) as error:
        understand(path)
    assert_one_sentence(error, path, "(it has 'n', 'plot', 'tags', 'kind'); give --text-column and --label-column")
    assert understand(path, TableOptions("2", "4")) == ("text in column plot, labels in column kind", "a b", None)


MOODS = [(n, f"text {n}", 0.5 * n + 0.25, "ab"[n % 2], "same") for n in range(12)]
TABLES = {
    "texts": [["key", "text", "score", "mood", "kind"], *MOODS],
    "wide": [["t0", "t1", "score", "mood", "kind"], *((n, -n, *rest) for n, _, *rest in MOODS)],
    "long": [
        ["id", "time", "x", "score", "mood"],
        *((n, t, n * t, *rest[:2]) for n, _, *rest in MOODS for t in (0, 1)),
    ],
}
SINGLE, SINGULAR = "has the single class 'same' in its training examples", "has 12 different labels in 12 training"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("kind", "words", "column", "what"),
    [
        ("texts", [], "nosuch", "has no column 'nosuch'"),
        ("texts", [], "score", SINGULAR),
        ("texts", [], "key", SINGULAR),
        ("texts", [], "kind", SINGLE),
        ("texts", [], "text", "does not say which column is the text"),
        ("texts", ["--text-column", "text"], "text", "is given as text and as labels; give another one"),
        ("wide", [], "nosuch", "has no column 'nosuch'"),
        ("wide", ["--value-columns", "t0+t1"], "nosuch", "has no column 'nosuch'"),
        ("wide", ["--value-columns", "t0+t1"], "score", SINGULAR),
        ("wide", ["--value-columns", "t0+t1"], "kind", SINGLE),
        ("wide", ["--value-columns", "t0+t1"], "t0", "is given as numbers and as labels; give another one"),
        ("long", [], "nosuch", "has no column 'nosuch'"),
        ("long", ["--value-columns", "x"], "score", SINGULAR),
        (
            "long",
            ["--value-columns", "x"],
            "time",
            "where its series began with '0'; give all rows of a series the same",
        ),
    ],
)
def test_a_wrong_column_of_labels_is_refused_with_the_columns_there_are(tmp_path, kind, words, column, what, suffix):
    path = write(tmp_path, TABLES[kind])
    if suffix == "parquet":
        pandas = pytest.importorskip("pandas")
        pandas.read_csv(path).to_parquet(path := path.with_suffix(".parquet"))
    result = call("train", path, *words, "--label-column", column, "--out", tmp_path / "run")
    *_, last = result.err.splitlines()
    assert result.code in (1, 2)
    assert last.startswith("auxrnn: ")
    assert what in last
    assert f"(it has {', '.join(map(repr, TABLES[kind][0]))})" in last
    assert not (tmp_path / "run").exists()


def test_labels_that_are_no_column_of_a_table_are_refused_without_one(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.zeros((12, 5)), y=np.arange(12))
    result = call("train", tmp_path / "x.npz", "--out", tmp_path / "run")
    assert result.err.endswith(f"{SINGULAR} examples; give several examples of each class\n")


def test_one_label_for_each_class_is_enough_beside_a_test_split(tmp_path):
    texts = write(tmp_path, [["text", "label"], *((f"text {n}", f"class {n}") for n in range(12))])
    assert call("data", "check", texts, "--test-data", texts).code == 0
