"""Whatever the bytes of a table of numbers, or of a file in a folder by class, it is read or refused in a sentence."""

import gzip
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auxrnn.config import DataConfig
from auxrnn.data.examples import Problems
from auxrnn.data.formats import SeriesFormat
from auxrnn.data.sources import find_source
from auxrnn.errors import RunError, UsageError

LONG = b"id,time,x,b,label\na,1,2,3,u\na,2024-01-01,2.5,-3e4,u\nb,2,1,1,v\na,3,4,5,u\n"
WIDE = b"id,t0,t1,t2,label\n1,1,2,3,u\n2,2.5,-3e4,,v\n3,1,,,u\n"
UCR = b"2.0e+00\t1\t2\n1.0e+00\t3\t4\n"
PIECES = [b",", b"\t", b"\n", b'"', b"NaN", b"?", b"1e999", b"-", b"1", b"0", b".", b"inf", b"\xff", b"\0", b"a", b"id"]
edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 6), st.one_of(st.sampled_from(PIECES), st.binary(max_size=4))), max_size=6
)
columns = st.sampled_from([None, None, None, "id", "time", "label", "x+b", "t0+t1", "1", "2+3", "", "+"])
names = ("label_column", "series_column", "time_column", "value_columns")
options = st.fixed_dictionaries(dict.fromkeys(names, columns))
likes = st.sampled_from([
    None,
    SeriesFormat(1, (0.0,), (1.0,), columns=("t0", "t1", "t2")),
    SeriesFormat(2, (0.0,) * 2, (1.0,) * 2, columns=("x", "b"), series_column="id", time_column="time"),
])  # fmt: skip


def mutate(content, edits):
    for place, num_cut, piece in edits:
        start = int(place * len(content))
        content = content[:start] + piece + content[start + num_cut :]
    return content


def check(path, like=None, **asked):
    """Read at once and patiently: what is refused first is the same."""
    said = []
    for problems in (Problems(), Problems(is_patient=True)):
        try:
            source = find_source(path, DataConfig(data=str(path), **asked), has_labels=like is None, like=like)
            for example in source.read(problems, like).examples:
                assert example.value_T.size
                assert example.value_T.dtype != np.float32 or not np.isinf(example.value_T).any()
            said.append(problems.refused[:1])
        except (RunError, UsageError) as error:
            said.append([*problems.refused, str(error)][:1])
    assert said[0] == said[1]
    for sentence in said[0]:
        assert sentence.isprintable()
        assert "; " in sentence


@given(st.sampled_from([LONG, WIDE, UCR]), edits, options, likes, st.booleans())
@settings(max_examples=150, deadline=None)
def test_damaged_tables_of_numbers_are_read_or_refused(tmp_path_factory, content, edits, asked, like, is_packed):
    path = tmp_path_factory.getbasetemp() / f"fuzz.csv{'.gz' if is_packed else ''}"
    changed = mutate(content, edits)
    path.write_bytes(gzip.compress(changed) if is_packed else changed)
    check(path, like, **asked)


@given(st.sampled_from([".csv", ".tsv", ".txt"]), edits)
@settings(max_examples=60, deadline=None)
def test_damaged_files_of_a_folder_are_read_or_refused(tmp_path_factory, suffix, edits):
    folder = tmp_path_factory.getbasetemp() / "files"
    shutil.rmtree(folder, ignore_errors=True)
    for label, content in (("a", mutate(b"time,b\n1,2\n3,4\n", edits)), ("b", b"1\n2\n")):
        (folder / label).mkdir(parents=True)
        (folder / label / f"1{suffix}").write_bytes(content)
    check(folder)


@pytest.mark.parametrize("content", [LONG.replace(b"2024-01-01", b"2"), WIDE, UCR])
def test_what_is_changed_above_can_be_read(tmp_path, content):
    path = tmp_path / "whole.csv"
    path.write_bytes(content)
    assert len(list(find_source(path, DataConfig(data=str(path))).read(Problems(), None).examples)) >= 2
