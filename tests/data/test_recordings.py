"""A recording becomes the numbers that it holds, however they are stored; what is damaged gives one sentence."""

import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from auxrnn.data.examples import ExampleError
from auxrnn.data.readers import recordings
from auxrnn.data.readers.recordings import decode, read_header
from auxrnn.errors import UsageError
from sounds import KINDS, chunk, save_wav, tone, wav

STEPS = {"u1": 2**-8, "i2": 2**-16, "i3": 2**-24, "i4": 2**-24, "f4": 0, "f8": 0}
"""The largest error that storing a sample in each way may make."""


def read(path, rate=None):
    header = read_header(path)
    return decode(path, header, rate=header.rate if rate is None else rate)


def refusal(path):
    with pytest.raises(ExampleError) as error:
        read(path)
    return str(error.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("is_extensible", [False, True])
def test_every_way_to_store_a_sample_gives_the_same_samples(tmp_path, kind, channels, is_extensible):
    x_TC = tone(channels=channels)
    path = save_wav(tmp_path / "a.wav", x_TC, kind, is_extensible=is_extensible, rate=11_025)
    header = read_header(path)
    assert (header.rate, header.num_channels, header.num_steps) == (11_025, channels, 400)
    found = read(path)
    assert found.dtype == np.float32
    assert found.shape == (400, channels)
    # Half a step of rounding, and what a 32-bit float cannot hold.
    assert np.abs(found - x_TC).max() <= STEPS[kind]


@pytest.mark.parametrize("kind", ["u1", "i2", "i3", "i4"])
def test_the_largest_and_smallest_whole_numbers_are_almost_one_and_minus_one(tmp_path, kind):
    found = read(save_wav(tmp_path / "a.wav", np.array([[-1.0], [0.0], [1.0]]), kind)).ravel()
    assert found[0] == -1
    assert found[1] == 0
    assert 1 - 2**-7 <= found[2] <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_soundfile_reads_the_same_samples(tmp_path, kind):
    soundfile = pytest.importorskip("soundfile")
    path = save_wav(tmp_path / "a.wav", tone(channels=2), kind)
    expected, _ = soundfile.read(path, dtype="float32", always_2d=True)
    assert np.array_equal(read(path), expected)


def test_other_chunks_before_the_samples_are_passed_over(tmp_path):
    before = chunk(b"LIST", b"odd") + chunk(b"bext", bytes(602)) + chunk(b"fact", bytes(4))
    assert np.array_equal(read(save_wav(tmp_path / "a.wav", before=before)), read(save_wav(tmp_path / "b.wav")))


@pytest.mark.parametrize(("size", "head"), [(2**32 - 1, b"RIFF"), (2**32 - 1, b"RF64"), (0x7FFFFFFF, b"RIFF")])
def test_a_recording_of_a_size_unknown_to_its_writer_is_read_to_its_end(tmp_path, size, head):
    assert len(read(save_wav(tmp_path / "a.wav", size=size, head=head))) == 400


WHOLE = wav(tone())
DAMAGED = {
    "empty": b"",
    "text": b"no audio at all, but a sentence",
    "no samples": WHOLE[:36],
    "other kind": WHOLE.replace(b"WAVE", b"AVI "),
    "no format": WHOLE.replace(b"fmt ", b"junk"),
    "12 bits": WHOLE[:34] + struct.pack("<H", 48) + WHOLE[36:],
    "no channels": WHOLE[:22] + bytes(2) + WHOLE[24:],
    "no rate": WHOLE[:24] + bytes(4) + WHOLE[28:],
    "rate beyond reason": WHOLE[:24] + b"\xff" * 4 + WHOLE[28:],
    "frames of other size": WHOLE[:32] + struct.pack("<H", 3) + WHOLE[34:],
    "zeros": b"RIFF\0\0\0\0WAVE" + bytes(100_000),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused(tmp_path, name):
    (tmp_path / "a.wav").write_bytes(DAMAGED[name])
    assert refusal(tmp_path / "a.wav").startswith("cannot be read as audio (it is damaged or of another kind); ")


def test_a_recording_that_is_cut_off_is_refused_with_both_sizes(tmp_path):
    (tmp_path / "a.wav").write_bytes(WHOLE[:-100])
    expected = "is cut off (its header says 800 bytes of samples, and 700 are there); save it again or leave it out"
    assert refusal(tmp_path / "a.wav") == expected


def test_a_header_that_claims_gigabytes_takes_no_memory(tmp_path):
    path = save_wav(tmp_path / "a.wav", size=2**31)
    tracemalloc.start()
    read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize(("kind", "value"), [("f4", np.nan), ("f8", np.inf), ("f8", 1e39)])
def test_a_float_that_is_not_finite_is_refused_with_its_place(tmp_path, kind, value):
    x_TC = tone(channels=2).astype(np.float64)
    x_TC[7, 1] = value
    assert "not finite near sample 7 of channel 1; " in refusal(save_wav(tmp_path / "a.wav", x_TC, kind))


def test_a_recording_without_samples_is_empty(tmp_path):
    assert refusal(save_wav(tmp_path / "a.wav", tone(0))) == "is empty"


@pytest.mark.parametrize(("rate", "new_rate"), [(44_100, 8000), (16_000, 8000), (8000, 16_000), (8000, 11_025)])
def test_a_resampled_tone_is_that_tone_at_the_other_rate(tmp_path, rate, new_rate):
    path = save_wav(tmp_path / "a.wav", tone(rate // 10, channels=2, rate=rate), "f4", rate=rate)
    found, expected = read(path, new_rate), tone(-(-new_rate // 10), channels=2, rate=new_rate)
    assert found.dtype == np.float32
    assert len(found) == -(-new_rate // 10)
    # At its ends the filter sees silence outside of the recording.
    inner = slice(new_rate // 50, -new_rate // 50)
    assert np.abs(found[inner] - expected[inner]).max() < 0.005


def test_a_tone_that_the_new_rate_cannot_hold_is_removed_rather_than_heard_as_another(tmp_path):
    path = save_wav(tmp_path / "a.wav", tone(4410, rate=44_100, pitch=10_000.0), "f4", rate=44_100)
    assert np.abs(read(path, 8000)[100:-100]).max() < 0.005


def test_what_would_be_too_long_is_refused_before_any_memory_is_taken(tmp_path, monkeypatch):
    path = save_wav(tmp_path / "a.wav", rate=1)
    monkeypatch.setattr(recordings, "MOST_VALUES", 10**6)
    assert len(read(path, 2000)) == 800_000
    with pytest.raises(ExampleError, match="has more than 1,000,000 samples; cut it into shorter files"):
        read(path, 8000)
    monkeypatch.setattr(recordings, "MOST_VALUES", 399)
    assert "has more than 399 samples" in refusal(path)


@pytest.mark.parametrize(("suffix", "largest"), [(".flac", 2**-15), (".ogg", 0.1), (".mp3", 0.1), (".aiff", 2**-15)])
def test_other_kinds_are_read_through_soundfile(tmp_path, suffix, largest):
    soundfile = pytest.importorskip("soundfile")
    x_TC = tone(8000, channels=2)
    soundfile.write(tmp_path / f"a{suffix}", x_TC, 8000)
    header, found = read_header(tmp_path / f"a{suffix}"), read(tmp_path / f"a{suffix}")
    assert (header.rate, header.num_channels) == (8000, 2)
    assert found.shape == (8000, 2)
    assert np.abs(found - x_TC).max() <= largest


def test_a_wav_with_compressed_samples_is_read_through_soundfile(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "a.wav", tone(), 8000, "ULAW")
    assert np.abs(read(tmp_path / "a.wav") - tone()).max() < 0.02


@pytest.mark.parametrize("name", ["a.flac", "a.wav"])
def test_without_soundfile_one_sentence_names_the_extra(tmp_path, monkeypatch, assert_one_sentence, name):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    (tmp_path / "a.flac").write_bytes(b"fLaC")
    save_wav(tmp_path / "a.wav", tag=7)
    with pytest.raises(UsageError) as error:
        read_header(tmp_path / name)
    assert_one_sentence(error, tmp_path / name, "pip install 'auxrnn[audio]'")


def test_a_damaged_mp3_writes_nothing_to_the_error_stream(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "a.mp3"
    soundfile.write(path, tone(8000), 8000)
    path.write_bytes(path.read_bytes()[:1000] + bytes(300) + path.read_bytes()[1300:])
    code = (
        "import sys, pathlib; from auxrnn.data.readers.recordings import decode, read_header; "
        "path = pathlib.Path(sys.argv[1]); print(len(decode(path, read_header(path), rate=8000)))"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 4000
    assert done.stderr == ""
