"""Small made-up data for the smoke scale: every experiment runs on it in seconds, and learns nothing of interest."""

import csv
import io
from pathlib import Path

import numpy as np

from auxrnn.files import write_aside

NUM_EXAMPLES, NUM_CLASSES, NUM_STEPS, TEXT_LENGTH = 48, 4, 16, 20
LETTERS = "abcdefgh "


def make_arrays(path: Path, *, num_channels: int) -> Path:
    """Write sequences of vectors whose mean tells the class, unless they are there already."""
    if not path.exists():
        rng = np.random.default_rng(num_channels)
        label_N = np.arange(NUM_EXAMPLES) % NUM_CLASSES
        x_NTD = rng.random((NUM_EXAMPLES, NUM_STEPS, num_channels), dtype=np.float32) / 4
        x_NTD += (label_N / NUM_CLASSES).astype(np.float32)[:, None, None]
        file = io.BytesIO()
        np.savez(file, x=x_NTD, y=label_N)
        write_aside(path, file.getvalue())
    return path


def make_texts(path: Path) -> Path:
    """Write texts whose commonest letter tells the class, unless they are there already."""
    if not path.exists():
        rng = np.random.default_rng(0)
        file = io.StringIO()
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for number in range(NUM_EXAMPLES):
            label = number % NUM_CLASSES
            letters = rng.choice(list(LETTERS + 4 * LETTERS[label]), size=TEXT_LENGTH)
            writer.writerow(("a" + "".join(letters) + "b", f"class {label}"))
        write_aside(path, file.getvalue())
    return path
