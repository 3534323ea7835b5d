"""Whatever bytes they are given, readers of recordings and of their tables succeed or say one sentence."""

import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_series_fuzz import MUTATIONS, mutate

from auxrnn.config import DataConfig
from auxrnn.data.examples import Problems
from auxrnn.data.sources import find_source
from auxrnn.errors import RunError, UsageError
from sounds import save_wav, tone, wav

VALID = {
    "u1": wav(tone(40), "u1"),
    "i2": wav(tone(40, channels=2), "i2", is_extensible=True),
    "i3": wav(tone(40), "i3", before=b"LIST\3\0\0\0abc\0"),
    "f4": wav(tone(40), "f4", size=2**32 - 1),
    "f8": wav(tone(40), "f8"),
}
WORDS = [b"file", b"label", b"a.wav", b"./a.wav", b"b.flac", b"../", b",", b"\n", b'"', b"\xff", b"\0", b"x" * 300]
several = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(path, *, has_labels=False, **asked):
    """Read data to its end, at once and patiently; give how many examples came."""
    num_examples = 0
    for problems in (Problems(), Problems(is_patient=True)):
        sentences = []
        try:
            source = find_source(path, DataConfig(data=str(path), **asked), has_labels=has_labels)
            for found in source.read(problems, None).examples:
                assert found.value_T.dtype == np.float32
                assert found.value_T.ndim == 2
                assert found.value_T.size
                assert np.isfinite(found.value_T).all()
                num_examples += 1
        except (RunError, UsageError) as error:
            sentences = [str(error)]
        for sentence in sentences + problems.refused:
            assert str(path.parent) in sentence
            assert "\n" not in sentence
            assert "; " in sentence
    return num_examples


@pytest.mark.parametrize("kind", VALID)
def test_what_is_changed_below_can_be_read(tmp_path, kind):
    (tmp_path / "a.wav").write_bytes(VALID[kind])
    assert check(tmp_path / "a.wav") == 2


@several
@given(content=st.binary(max_size=200))
def test_random_bytes_give_a_sentence(tmp_path, content):
    (tmp_path / "a.wav").write_bytes(content)
    assert check(tmp_path / "a.wav") == 0


@pytest.mark.parametrize("kind", VALID)
@several
@given(mutations=MUTATIONS, rate=st.sampled_from([None, 300, 8000]))
def test_a_changed_recording_gives_samples_or_a_sentence(tmp_path, kind, mutations, rate):
    (tmp_path / "a.wav").write_bytes(mutate(VALID[kind], mutations))
    check(tmp_path / "a.wav", sample_rate=rate)


@several
@given(
    numbers=st.tuples(*[st.sampled_from([0, 1, 2, 3, 8, 16, 24, 6, 0xFFFE, 0xFFFF])] * 4),
    rate=st.sampled_from([0, 1, 8000, 10**6, 2**32 - 1]),
    size=st.sampled_from([0, 1, 80, 2**31 - 1, 2**32 - 1]),
)
def test_a_strange_header_gives_samples_or_a_sentence(tmp_path, numbers, rate, size):
    tag, channels, frame, bits = numbers
    described = struct.pack("<HHIIHH", tag, channels, rate, 0, frame, bits)
    content = b"WAVEfmt \x10\0\0\0" + described + b"data" + struct.pack("<I", size) + bytes(80)
    (tmp_path / "a.wav").write_bytes(b"RIFF\0\0\0\0" + content)
    check(tmp_path / "a.wav")


@several
@given(words=st.lists(st.sampled_from(WORDS), max_size=30), has_labels=st.booleans())
def test_a_strange_table_of_recordings_gives_samples_or_a_sentence(tmp_path, words, has_labels):
    save_wav(tmp_path / "a.wav", tone(40))
    (tmp_path / "t.csv").write_bytes(b"file,label\na.wav,x\n" + b"".join(words))
    check(tmp_path / "t.csv", has_labels=has_labels)
