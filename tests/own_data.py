"""Small files of every kind that a user may bring, each with something to learn in it."""

import io
import json

import numpy as np
from PIL import Image

from sounds import save_wav, tone

CLASSES = ("cat", "dog")


def texts_of(num_rows, *, seed=0):
    """Pairs of a text and its class; the class decides the letters."""
    rng = np.random.default_rng(seed)
    for row in range(num_rows):
        label = CLASSES[row % 2]
        letters = "abc " if label == "cat" else "xyz "
        yield "".join(rng.choice(list(letters), rng.integers(3, 30))) + ".", label


def write_csv(path, num_rows=60, *, header="text,label", unlabeled_every=None):
    lines = [header] if header else []
    for row, (text, label) in enumerate(texts_of(num_rows)):
        is_unlabeled = unlabeled_every is not None and row % unlabeled_every == 0
        lines.append(f'"{text}",{"" if is_unlabeled else label}')
    path.write_text("\n".join(lines) + "\n")
    return path


def write_jsonl(path, num_rows=60):
    rows = [
        json.dumps({"review": text, "stars": 1 + CLASSES.index(label), "id": 3}) for text, label in texts_of(num_rows)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def write_images(folder, *, num_rows=12, size=(9, 7), mode="L", parts=("",)):
    rng = np.random.default_rng(0)
    for part in parts:
        for row in range(num_rows):
            label = CLASSES[row % 2]
            pixels = rng.integers(0, 90, (size[1], size[0], 3), dtype=np.uint8) + np.uint8(120 * (row % 2))
            place = folder / part / label
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).convert(mode).save(place / f"{row}.png")
    return folder


def series_of(num_rows, num_channels, *, seed=0):
    """Series of different lengths; the class is the sign of the slope of the first channel."""
    rng = np.random.default_rng(seed)
    for row in range(num_rows):
        length = int(rng.integers(5, 20))
        slope = 1 if row % 2 else -1
        x_TD = rng.standard_normal((length, num_channels)).astype(np.float32)
        x_TD[:, 0] += slope * np.arange(length) + 1000
        yield x_TD, CLASSES[row % 2]


def write_arrays(path, *, num_rows=40, num_channels=2):
    series, labels = zip(*series_of(num_rows, num_channels), strict=True)
    lengths = np.array([len(x_TD) for x_TD in series])
    x_NTD = np.full((num_rows, lengths.max(), num_channels), np.nan)
    for row, x_TD in enumerate(series):
        x_NTD[row, : len(x_TD)] = x_TD
    np.savez(path, x=x_NTD, y=np.array(labels), lengths=lengths)
    return path


def write_ts(folder, *, name="Slopes", num_channels=2):
    for part, seed in (("TRAIN", 0), ("TEST", 1)):
        lines = ["@problemName Slopes", "@timeStamps false", f"@univariate {str(num_channels == 1).lower()}",
                 "@equalLength false", f"@classLabel true {' '.join(CLASSES)}", "@data"]  # fmt: skip
        for x_TD, label in series_of(24, num_channels, seed=seed):
            channels = [",".join(f"{value:.4f}" for value in x_T) for x_T in x_TD.T]
            lines.append(":".join([*channels, label]))
        (folder / f"{name}_{part}.ts").write_text("\n".join(lines) + "\n")
    return folder / f"{name}_TRAIN.ts"


def write_audio(folder, *, num_rows=12, rate=800, channels=1):
    """Recordings of different lengths; the class is the pitch, and stands in the name as well as the folder."""
    for row in range(num_rows):
        label, pitch = CLASSES[row % 2], (50, 200)[row % 2]
        x_TC = tone(40 + row, channels=channels, rate=rate, pitch=pitch)
        save_wav(folder / label / f"{label}_{row}.wav", x_TC, rate=rate)
    return folder


def as_bytes(array):
    """An array as the bytes of a .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()
