"""Small .wav files made by hand, as every kind of program writes them."""

import struct

import numpy as np

KINDS = {"u1": (1, 8), "i2": (1, 16), "i3": (1, 24), "i4": (1, 32), "f4": (3, 32), "f8": (3, 64)}
"""Format tag and bits of each way to store a sample."""


def tone(num_steps=400, *, channels=1, rate=8000, pitch=440.0):
    """A sine of half the full scale; each channel is a little softer than the one before."""
    wave_T = 0.5 * np.sin(2 * np.pi * pitch * np.arange(num_steps) / rate)
    return (wave_T[:, None] / np.arange(1, channels + 1)).astype(np.float32)


def store(x_TC, kind):
    """Give samples from -1 to 1 as the bytes of one kind."""
    if kind.startswith("f"):
        return x_TC.astype(f"<{kind}").tobytes()
    largest = 2 ** (KINDS[kind][1] - 1)
    whole = np.clip(np.round(x_TC.astype(np.float64) * largest), -largest, largest - 1).astype(np.int64)
    if kind == "u1":
        return (whole + 128).astype(np.uint8).tobytes()
    return b"".join(int(value).to_bytes(KINDS[kind][1] // 8, "little", signed=True) for value in whole.ravel())


def chunk(name, content):
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


def wav(x_TC, kind="i2", *, rate=8000, is_extensible=False, before=b"", tag=None, size=None, head=b"RIFF"):
    """Give the bytes of a .wav; `before` are chunks before the samples, `size` is what the header says of them."""
    (usual, bits), channels = KINDS[kind], x_TC.shape[1]
    tag, data, width = usual if tag is None else tag, store(x_TC, kind), bits // 8
    first = struct.pack("<HHIIHH", 0xFFFE if is_extensible else tag, channels, rate, rate * channels * width,
                        channels * width, bits)  # fmt: skip
    if is_extensible:
        first += struct.pack("<HHIH", 22, bits, 0, tag) + b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    samples = b"data" + struct.pack("<I", len(data) if size is None else size) + data
    content = b"WAVE" + chunk(b"fmt ", first) + before + samples
    return head + struct.pack("<I", len(content)) + content


def save_wav(path, x_TC=None, kind="i2", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(wav(tone() if x_TC is None else x_TC, kind, **options))
    return path
