"""Whatever the bytes of a table are, it is read, or refused in one sentence: nothing else ever comes out."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auxrnn.data.examples import Problems
from auxrnn.data.formats import TextFormat
from auxrnn.data.readers.table import TableOptions, table_source
from auxrnn.errors import RunError, UsageError

ROWS = [
    (f'{word} words, "quoted"\nand more {index}', "ab"[index % 2]) for index, word in enumerate(["some", "\u00e4"] * 3)
]
CSV = "text,label\r\n" + "".join(f'"{text}",{label}\r\n' for text, label in ROWS).replace('"quoted"', '""quoted""')
JSON = "\n".join(json.dumps({"text": text, "label": label}) for text, label in ROWS)
VALID = {
    ".csv": CSV.encode(),
    ".tsv": CSV.replace(",a", "\ta").replace(",b", "\tb").encode("utf-8-sig"),
    ".jsonl": JSON.encode(),
    ".txt": CSV.encode(),
}
PIECES = [
    b'"',
    b'""',
    b",",
    b";",
    b"\t",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[",
    b":",
    b"null",
]
PIECES += [b"1", b"NaN", b"\\ud800", b"text", b"label", b"1e999", b"\xe2\x80\xa8"]

edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 9), st.one_of(st.sampled_from(PIECES), st.binary(max_size=5))),
    min_size=1,
    max_size=6,
)
columns = st.sampled_from([None, "text", "label", "1", "2", "1+2", "text+label", "+", ""])
table_options = st.builds(
    TableOptions,
    text_column=columns,
    label_column=columns,
    tokens=st.sampled_from(["characters", "bytes"]),
    is_lowercase=st.booleans(),
    has_labels=st.booleans(),
    class_names=st.none(),
)
likes = st.sampled_from([None, TextFormat(columns=("text",)), TextFormat(columns=("1", "2"))])


def mutate(content, edits):
    """Cut some bytes out of a file and put others in, at places that are given as a part of its length."""
    for place, num_cut, piece in edits:
        start = int(place * len(content))
        content = content[:start] + piece + content[start + num_cut :]
    return content


def read(path, options, like, problems):
    understood = table_source("mine", path, options).read(problems, like)
    understood.description.encode()
    return [(bytes(example.value_T), *example[1:]) for example in understood.examples]


def check(path, options, like):
    """Read a table at once and patiently: both fail alike, or both give the same examples."""
    patient = Problems(is_patient=True)
    try:
        examples = read(path, options, like, patient)
    except (RunError, UsageError) as error:
        with pytest.raises(type(error)) as again:
            read(path, options, like, Problems())
        sentences = [str(error), str(again.value)]
    else:
        sentences = patient.refused + patient.skipped
        if not patient.refused:
            assert read(path, options, like, Problems()) == examples
        else:
            with pytest.raises(RunError) as first:
                read(path, options, like, Problems())
            assert str(first.value) == patient.refused[0]
    for sentence in sentences:
        sentence.encode()
        assert sentence.isprintable()


@given(st.sampled_from([*VALID, ".parquet"]), st.binary(max_size=200), table_options, likes)
@settings(max_examples=60)
def test_random_bytes_are_read_or_refused(tmp_path_factory, suffix, content, options, like):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path_factory.getbasetemp() / f"fuzz{suffix}"
    path.write_bytes(content)
    check(path, options, like)


@given(st.sampled_from([*VALID]), edits, table_options, likes)
@settings(max_examples=100)
def test_damaged_tables_are_read_or_refused(tmp_path_factory, suffix, edits, options, like):
    path = tmp_path_factory.getbasetemp() / f"fuzz{suffix}"
    path.write_bytes(mutate(VALID[suffix], edits))
    check(path, options, like)


@pytest.fixture(scope="module")
def parquet_content():
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts, labels = zip(*ROWS, strict=True)
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": texts, "label": labels, "numbers": [[1.5]] * len(ROWS)}), buffer)
    return buffer.getvalue()


@given(edits, table_options)
@settings(max_examples=60)
def test_damaged_parquet_is_read_or_refused(tmp_path_factory, parquet_content, edits, options):
    path = tmp_path_factory.getbasetemp() / "fuzz.parquet"
    path.write_bytes(mutate(parquet_content, edits))
    check(path, options, None)
