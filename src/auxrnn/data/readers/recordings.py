"""One audio file becomes numbers: .wav by itself, other kinds through the optional library soundfile.

Scipy allocates what the header of a .wav claims, and the standard library reads no floats. A file that cannot be used
raises `ExampleError`. Dimension letters: `T` samples in time, `C` channels.
"""

import math
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from auxrnn.config import MOST_SAMPLES_A_SECOND
from auxrnn.data.examples import ExampleError, describe_damage
from auxrnn.errors import UsageError
from auxrnn.files import printable

WAV_SUFFIX = ".wav"
MOST_VALUES = 2**29
"""A longer recording is not decoded: a few thousand bytes of a compressed file can stand for gigabytes."""
BLOCK_VALUES = 2**22
MOST_PER_BYTE = 100
"""About how many samples a byte of a compressed file stands for at most, whatever a damaged header claims."""
MOST_CHUNKS = 1000
"""How many chunks of a .wav are looked at for its samples; usual files have two or three."""
UNKNOWN_SIZE = 0x7FFFF000
"""From here on, the size of a chunk is what programs write that do not know where a recording ends."""
INTEGERS, FLOATS, EXTENSIBLE = 1, 3, 0xFFFE
"""How a .wav stores its samples; the extensible kind says it further down in its header."""
DTYPES = {(INTEGERS, 1): "u1", (INTEGERS, 2): "<i2", (INTEGERS, 3): "V3", (INTEGERS, 4): "<i4",
          (FLOATS, 4): "<f4", (FLOATS, 8): "<f8"}  # fmt: skip
"""By kind and bytes of a sample."""
CURE = "save it again or leave it out"


class RecordingHeader(NamedTuple):
    """What is known of a recording without decoding it."""

    rate: int
    """Samples a second."""
    num_channels: int
    num_steps: int
    """Samples of each channel; for compressed files about as many."""
    dtype: str | None = None
    """How a .wav stores a sample; None for what soundfile reads."""
    offset: int = 0
    """How many bytes of a .wav come before its samples."""


def read_header(path: Path) -> RecordingHeader:
    """Return the rate and size of a recording, from the first bytes of its file."""
    with _refusing_damage():
        header = _read_wav_header(path) if path.suffix.lower() == WAV_SUFFIX else None
        if header is None:
            with _open_compressed(path) as file:
                most_steps = MOST_PER_BYTE * path.stat().st_size // file.channels
                header = RecordingHeader(file.samplerate, file.channels, min(file.frames, most_steps))
        if not 1 <= header.rate <= MOST_SAMPLES_A_SECOND or not header.num_channels:
            raise ValueError(header)
    if header.num_steps * header.num_channels > MOST_VALUES:
        raise _too_long()
    return header


def decode(path: Path, header: RecordingHeader, *, rate: int) -> Float32[np.ndarray, "T C"]:
    """Return all samples at a rate, from -1 to 1 (floats as they are); other rates are resampled by a polyphase filter.

    Resampling removes the frequencies that the new rate cannot hold.
    """
    with _refusing_damage():
        value_TC = _read_compressed(path) if header.dtype is None else _read_wav(path, header)
        value_TC = _resample(value_TC, header.rate, rate)
    if not len(value_TC):
        raise ExampleError("is empty")
    if not np.isfinite(value_TC).all():
        step, channel = np.argwhere(~np.isfinite(value_TC))[0].tolist()
        what = f"has a value that is not finite near sample {step} of channel {channel}"
        raise ExampleError(what, "save finite 32-bit floats from -1 to 1")
    return value_TC


def _read_wav_header(path: Path) -> RecordingHeader | None:
    """Return the header of a .wav; None if its samples are compressed."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        kind, _, content = struct.unpack("<4sI4s", file.read(12))
        if kind not in (b"RIFF", b"RF64") or content != b"WAVE":
            raise ValueError(kind)
        described, num_bytes = _find_samples(file)
        offset = file.tell()
    tag, num_channels, rate, _, frame_bytes, bits = struct.unpack_from("<HHIIHH", described)
    tag = struct.unpack_from("<H", described, 24)[0] if tag == EXTENSIBLE else tag
    if tag not in (INTEGERS, FLOATS):
        return None
    dtype = DTYPES[tag, -(-bits // 8)]
    if frame_bytes != num_channels * np.dtype(dtype).itemsize:
        raise ValueError(frame_bytes)
    num_bytes = size - offset if num_bytes >= UNKNOWN_SIZE else num_bytes
    if num_bytes > size - offset:
        what = f"is cut off (its header says {num_bytes:,} bytes of samples, and {size - offset:,} are there)"
        raise ExampleError(what, CURE)
    return RecordingHeader(rate, num_channels, num_bytes // frame_bytes, dtype, offset)


def _find_samples(file: IO[bytes]) -> tuple[bytes, int]:
    """Return the description of the samples of a .wav and how many bytes they take; read up to the first of them."""
    described = b""
    for _ in range(MOST_CHUNKS):
        name, num_bytes = struct.unpack("<4sI", file.read(8))
        if name == b"data":
            return described, num_bytes
        # Chunks are padded to an even number of bytes.
        after = file.tell() + num_bytes + num_bytes % 2
        described = file.read(min(num_bytes, 40)) if name == b"fmt " else described
        file.seek(after)
    raise ValueError(MOST_CHUNKS)


def _read_wav(path: Path, header: RecordingHeader) -> Float32[np.ndarray, "T C"]:
    dtype = np.dtype(header.dtype)
    with path.open("rb") as file:
        file.seek(header.offset)
        raw = file.read(header.num_steps * header.num_channels * dtype.itemsize)
    stored = np.frombuffer(raw, dtype)
    if header.dtype == "V3":
        # The three bytes of a sample become the upper ones of four.
        wide = np.zeros((len(stored), 4), dtype=np.uint8)
        wide[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        stored = wide.view("<i4")
    with np.errstate(over="ignore"):
        value_TC = stored.reshape(header.num_steps, header.num_channels).astype(np.float32)
    if stored.dtype.kind == "f":
        return value_TC
    # Bytes are unsigned, and 128 is silence.
    value_TC /= 2 ** (8 * stored.itemsize - 1)
    value_TC -= stored.dtype.kind == "u"
    return value_TC


@contextmanager
def _open_compressed(path: Path) -> Iterator[Any]:
    try:
        import soundfile  # noqa: PLC0415 - optional
    except (ImportError, OSError) as error:  # OSError: without the C library that it stands on
        what = f"{printable(path)} is audio that is not a plain .wav"
        raise UsageError(f"{what}; to read it, pip install 'auxrnn[audio]'") from error
    with _silent(), soundfile.SoundFile(path) as file:
        yield file


@contextmanager
def _silent() -> Iterator[None]:
    """Drop what C code writes to the error stream: of damaged files, the library for MP3 tells every detail."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _read_compressed(path: Path) -> Float32[np.ndarray, "T C"]:
    """Return the samples that are there, whatever the header claims."""
    with _open_compressed(path) as file:
        num_steps, blocks = max(1, BLOCK_VALUES // file.channels), [np.zeros((0, file.channels), dtype=np.float32)]
        while len(block := file.read(num_steps, dtype="float32", always_2d=True)):
            blocks.append(block)
            if sum(map(len, blocks)) * file.channels > MOST_VALUES:
                raise _too_long()
    return np.concatenate(blocks)


def _resample(value_TC: Float32[np.ndarray, "T C"], rate: int, new_rate: int) -> Float32[np.ndarray, "S C"]:
    if rate == new_rate or not len(value_TC):
        return value_TC
    # It is slow to import, and most data has one rate.
    from scipy.signal import resample_poly  # noqa: PLC0415

    if value_TC.size * new_rate > MOST_VALUES * rate:
        raise _too_long()
    common = math.gcd(rate, new_rate)
    resampled: Float32[np.ndarray, "S C"] = resample_poly(value_TC, new_rate // common, rate // common, axis=0)
    return resampled


def _too_long() -> ExampleError:
    return ExampleError(f"has more than {MOST_VALUES:,} samples", "cut it into shorter files")


@contextmanager
def _refusing_damage() -> Iterator[None]:
    try:
        yield
    except (ExampleError, UsageError):
        raise
    except Exception as error:  # libraries report damage by many kinds of exception
        raise ExampleError(f"cannot be read as audio ({describe_damage(error)})", CURE) from error
