"""The columns of a table are those that the user names, or those that are obvious; else the user is asked."""

import csv
import io

import pytest

from auxrnn.data.examples import Problems
from auxrnn.data.tables.table import TableOptions, table_source
from auxrnn.data.texts import TextFormat
from auxrnn.errors import UsageError

WORDS = ["the film was long", "a fine evening with friends", "nobody laughed", "what a waste of a good cast"]
GUESSED = TableOptions()
HEADERLESS = TableOptions("2", "1")


def make_rows(num_rows, *columns):
    """Make rows from functions of their number."""
    return [[column(index) for column in columns] for index in range(num_rows)]


def text(index):
    return f"{WORDS[index % 4]} {index}"


def mood(index):
    return ("pos", "neg")[index % 2]


def write(folder, rows, name="my.csv", delimiter=","):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter).writerows(rows)
    (folder / name).write_text(buffer.getvalue(), newline="")
    return folder / name


def understand(path, options=GUESSED, like=None):
    """Say what the columns are, and give the first example's text and label."""
    understood = table_source("mine", path, options).read(Problems(), like)
    first = next(iter(understood.examples))
    return understood.description.partition(", ")[2], "".join(map(chr, first.value_T)), first.label


@pytest.mark.parametrize(
    ("header", "columns", "description"),
    [
        (["text", "label"], [text, mood], "text in column 'text' (guessed), labels in column 'label' (guessed)"),
        (["Review Text ", " Stars"], [text, mood], "text in column 'Review Text' (guessed), labels in column 'Stars'"),
        (["id", "tweet", "y"], [str, text, mood], "text in column 'tweet' (guessed), labels in column 'y'"),
        (["", "text", "label"], [str, text, mood], "text in column 'text' (guessed), labels in column 'label'"),
        (["", "0", "1"], [str, text, mood], "text in column '0' (guessed), labels in column '1'"),
        (["0", "1"], [text, lambda index: str(index % 2)], "text in column '0' (guessed), labels in column '1'"),
        (["v1", "v2", "", ""], [mood, text, lambda _: "", lambda _: ""], "text in column 'v2' (guessed), labels in"),
        (["essay", "verdict"], [text, mood], "text in column 'essay' (guessed), labels in column 'verdict'"),
        (
            ["essay", "grade", "mood"],
            [text, lambda index: str(index % 3), mood],
            "text in column 'essay' (guessed), labels in column 'mood'",
        ),
        (["no", "essay", "grade"], [str, text, lambda index: str(index % 3)], "text in column 'essay' (guessed)"),
        (["body", "title", "class"], [text, lambda _: "", mood], "text in column 'body' (guessed), labels in column"),
        (["title", "class"], [text, mood], "text in column 'title' (guessed), labels in column 'class'"),
        (["surname", "country"], [lambda index: f"x{index}", lambda index: ["Norway", "Russia"][index % 2]], "text in"),
        (["text", "prompt", "mood"], [text, lambda index: 120 * mood(index), mood], "text in column 'text' (guessed)"),
    ],
)
def test_a_header_and_its_columns_are_recognized(tmp_path, header, columns, description):
    found, first, label = understand(write(tmp_path, [header, *make_rows(20, *columns)]))
    assert found.startswith(description)
    rows = make_rows(1, *columns)[0]
    assert first in rows
    assert label in rows
    assert first != label


@pytest.mark.parametrize(
    ("columns", "description"),
    [
        ([text, mood], "text in column 1 (guessed), labels in column 2 (guessed)"),
        ([mood, lambda index: f"title {index}", text], "text in column 3 (guessed), labels in column 1 (guessed)"),
        ([lambda index: str(index % 14 + 1), text], "text in column 2 (guessed), labels in column 1 (guessed)"),
        ([str, lambda index: f"class {index % 9}", text], "text in column 3 (guessed), labels in column 2 (guessed)"),
        ([lambda index: "yn"[index % 2], text], "text in column 2 (guessed), labels in column 1 (guessed)"),
        ([lambda index: ["", "1", "2"][index % 3], text], "text in column 2 (guessed), labels in column 1 (guessed)"),
        (
            [lambda index: str(1 + index % 2 if index else 3), text],
            "text in column 2 (guessed), labels in column 1 (guessed)",
        ),
        (
            [lambda index: mood(index) if index else "once", lambda index: 9 * text(index)],
            "text in column 2 (guessed), labels in column 1 (guessed)",
        ),
        ([lambda index: f"class {index % 49}", text], "text in column 2 (guessed), labels in column 1 (guessed)"),
    ],
)
def test_a_table_without_a_header_is_recognized(tmp_path, columns, description):
    path = write(tmp_path, make_rows(100, *columns))
    found, first, label = understand(path)
    assert found == description
    rows = make_rows(1, *columns)[0]
    assert first in rows
    assert (label or "") in rows
    assert "without a header" in table_source("mine", path, TableOptions()).read(Problems(), None).description


def test_the_first_row_is_a_row_where_many_classes_are_rare(tmp_path):
    labels = ["once", *(f"often {index % 20}" for index in range(60)), *(f"rare {index}" for index in range(10))]
    found, first, label = understand(write(tmp_path, [[label, text(index)] for index, label in enumerate(labels)]))
    assert (found[:16], first, label) == ("text in column 2", text(0), "once")


def test_a_table_that_is_sorted_by_its_labels_is_recognized(tmp_path):
    rows = [[str(1 + index // 2500), f"name {index}", 30 * text(index)] for index in range(5000)]
    found, _, label = understand(write(tmp_path, rows))
    assert (found, label) == ("text in column 3 (guessed), labels in column 1 (guessed)", "1")


def test_the_end_of_a_large_table_is_not_cut_in_the_middle_of_a_text(tmp_path):
    rows = [*make_rows(1200, mood, text), ["pos", "some\nlines of one word\n" * 20_000 + "end"]]
    assert understand(write(tmp_path, rows))[0] == "text in column 2 (guessed), labels in column 1 (guessed)"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_the_one_that_is_not_in_quotes(tmp_path, delimiter):
    others = "".join(9 * other for other in ",;\t" if other != delimiter)
    rows = [[f'a "{others}', "pos"], *make_rows(10, text, mood)]
    found, first, label = understand(write(tmp_path, rows, delimiter=delimiter), TableOptions("1", "2"))
    assert (first, label) == (rows[0][0], "pos")
    assert found == "text in column 1, labels in column 2"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (TableOptions(text_column="boddy"), "has no column 'boddy'; give --text-column one of 'body', 'id', "),
        (TableOptions(text_column="body+clas"), "has no column 'clas'; give --text-column one of 'class', "),
        (TableOptions(text_column="5"), "has no column '5'; give --text-column one of"),
        (TableOptions(label_column="0"), "has no column '0'; give --label-column one of"),
        (TableOptions(text_column=""), "has no column ''"),
        (TableOptions(text_column="4+body", label_column="body"), "'body' of"),
    ],
)
def test_columns_that_are_not_there_are_refused_with_the_nearest_first(tmp_path, assert_one_sentence, options, part):
    path = write(tmp_path, [["id", "class", "title", "body"], *make_rows(4, str, mood, text, text)])
    with pytest.raises(UsageError) as error:
        understand(path, options)
    assert_one_sentence(error, path, part)


def test_a_column_without_a_name_has_a_number_only(tmp_path, assert_one_sentence):
    path = write(tmp_path, [["", "text", "label"], ["so", "and so", "on"]])
    with pytest.raises(UsageError) as error:
        understand(path, TableOptions(text_column=""))
    assert_one_sentence(error, path, "has no column ''; give --text-column one of column 1, 'text', 'label'")
    found = ("text in column 1, labels in column 'label' (guessed)", "so", "on")
    assert understand(path, TableOptions(text_column="1")) == found


def test_a_column_is_the_one_of_its_name_though_nothing_is_in_it_yet(tmp_path):
    path = write(tmp_path, [["essay", "label"], *make_rows(5, text, lambda _: "")])
    found = ("text in column 'essay' (guessed), labels in column 'label' (guessed)", text(0), None)
    assert understand(path) == found


def test_names_for_a_table_without_a_header_are_refused(tmp_path, assert_one_sentence):
    path = write(tmp_path, make_rows(9, mood, text))
    for name in ("body", "3", "1" * 5000):
        with pytest.raises(UsageError) as error:
            understand(path, TableOptions(text_column=name))
        assert_one_sentence(
            error, f"{path} has no header with a column {name!r}; give --text-column a number from 1 to 2"
        )


def test_a_name_that_is_given_makes_the_first_row_a_header(tmp_path):
    path = write(tmp_path, [["so", "and so"], ["a", "b"]])
    assert understand(path, TableOptions("and so", "1")) == ("text in column 'and so', labels in column 'so'", "b", "a")
    assert understand(path, TableOptions("2", "so")) == ("text in column 'and so', labels in column 'so'", "b", "a")
    assert understand(path, HEADERLESS) == ("text in column 2, labels in column 1", "and so", "so")


def test_a_number_is_a_position_only_where_no_column_is_called_so(tmp_path):
    path = write(tmp_path, [["3", "text", "2"], ["a", "b", "c"]])
    assert understand(path, TableOptions("text", "2"))[1:] == ("b", "c")
    assert understand(path, TableOptions("text", "1"))[1:] == ("b", "a")
    assert understand(path, TableOptions("3", "text"))[1:] == ("a", "b")


def test_columns_of_the_same_name_are_told_apart_by_number(tmp_path, assert_one_sentence):
    path = write(tmp_path, [["text", "text", "label"], ["a", "b", "c"]])
    with pytest.raises(UsageError) as error:
        understand(path, TableOptions("text"))
    assert_one_sentence(error, path, "has 2 columns called 'text'; give --text-column the number of one")
    assert understand(path, TableOptions("2"))[1:] == ("b", "c")
    assert table_source("mine", path, TableOptions("2")).read(Problems(), None).format.columns == ("2",)


@pytest.mark.parametrize(
    ("header", "columns", "part"),
    [
        (
            ["title", "content", "label"],
            [text, text, mood],
            "could be the text ('title', 'content'); give --text-column",
        ),
        (["title", "essay", "label"], [mood, text, str], "could be the text ('title', 'essay')"),
        (["text", "stars", "label"], [text, mood, mood], "could be the labels ('stars', 'label'); give --label-column"),
        (["text", "is a", "is b"], [text, mood, mood], "could be the labels ('is a', 'is b')"),
        (["text", "id"], [text, str], "no column that is clearly the labels ('text', 'id'); give --label-column"),
        (["text"], [text], "has no column of labels; add one, or give the file as --unlabeled"),
        (
            ["label", "number"],
            [mood, str],
            "no column that is clearly the text ('label', 'number'); give --text-column",
        ),
        (["label", *map(str, range(50))], [mood, *[str] * 50], "'10' and 39 more)"),
        (["label", "one", "two"], [mood, text, text], "could be the text ('one', 'two')"),
    ],
)
def test_what_is_not_obvious_is_asked(tmp_path, assert_one_sentence, header, columns, part):
    path = write(tmp_path, [header, *make_rows(20, *columns)])
    with pytest.raises(UsageError) as error:
        understand(path)
    assert_one_sentence(error, path, part)


def test_a_table_of_three_rows_without_names_is_asked_about(tmp_path, assert_one_sentence):
    path = write(tmp_path, make_rows(3, mood, text))
    with pytest.raises(UsageError) as error:
        understand(path)
    assert_one_sentence(error, path, "(column 1, column 2); give --label-column one of them")
    assert understand(path, HEADERLESS) == ("text in column 2, labels in column 1", text(0), "pos")


@pytest.mark.parametrize(
    ("rows", "description", "label"),
    [
        ([["text"], [text(0)]], "text in column 'text' (guessed), without labels", None),
        ([[text(0)], [text(1)]], "text in column 1 (guessed), without labels", None),
        ([[text(0)], [text(0)], [text(1)], [text(1)]], "text in column 1 (guessed), without labels", None),
        (make_rows(9, str, text), "text in column 2 (guessed), without labels", None),
        (make_rows(9, mood, text), "text in column 2 (guessed), labels in column 1 (guessed)", "pos"),
        ([["no", "essay"], *make_rows(9, str, text)], "text in column 'essay' (guessed), without labels", None),
        (make_rows(9, mood, mood, text), "text in column 3 (guessed), without labels", None),
        ([["text", "label"], [text(0), "pos"]], "text in column 'text' (guessed), labels in column 'label'", "pos"),
    ],
)
def test_labels_may_be_missing_where_none_are_needed(tmp_path, rows, description, label):
    found, _, given = understand(write(tmp_path, rows), TableOptions(has_labels=False))
    assert found.startswith(description)
    assert given == label


@pytest.mark.parametrize(
    ("rows", "columns", "first"),
    [
        ([["plot", "mood"], ["x", "pos"]], ("plot",), "x"),
        ([["mood", "plot", "plot two"], ["pos", "x", "y"]], ("plot two", "plot"), "y x"),
        ([["text", "mood"], ["x", "pos"]], ("plot",), "x"),
        (make_rows(9, mood, text, text), ("2",), text(0)),
        (make_rows(9, mood, text), ("2", "3"), text(0)),
        ([["mood", "text", "year"], ["a", "x", "1"]], ("3",), "x"),
        ([["", "0", "1"], ["0", "x", "y"]], ("1",), "y"),
    ],
)
def test_the_columns_of_the_model_are_taken_where_the_file_has_them(tmp_path, rows, columns, first):
    found = understand(write(tmp_path, rows), TableOptions(has_labels=False), TextFormat(columns=columns))
    assert found[1] == first


def test_the_keys_of_json_are_its_columns(tmp_path):
    path = tmp_path / "my.jsonl"
    rows = [f'{{"n": {index}, "plot": "{text(index)}", "tags": [1]' for index in range(8)]
    path.write_text(
        "\n".join(f'{row}, "kind": {index % 2}}}' if index else f"{row}}}" for index, row in enumerate(rows))
    )
    found, first, label = understand(path)
    assert found == "text in column 'plot' (guessed), labels in column 'kind' (guessed)"
    assert (first, label) == (text(0), None)
    assert understand(path, TableOptions("2", "4"))[0] == "text in column 'plot', labels in column 'kind'"
