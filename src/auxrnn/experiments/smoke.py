"""The smoke scale: every experiment in seconds, on small synthetic data from which nothing of interest is learned."""

import csv
import io
from pathlib import Path

import numpy as np

from auxrnn.experiments.scales import CIFAR10, DBPEDIA, DOGS, MNIST, PMNIST, DatasetSetup, Scale, Schedule
from auxrnn.files import write_aside

NUM_EXAMPLES, NUM_CLASSES, NUM_STEPS, TEXT_LENGTH = 48, 4, 16, 20
_SMALL = {"hidden_size": 8, "batch_size": 16}
_ATTENTION = _SMALL | {"head_size": 8, "num_heads": 2, "filter_size": 8, "num_layers": 2}
_CONVOLUTION = {"pad_to": 256, "batch_size": 8}
LETTERS = "abcdefgh "


def make_smoke(folder: Path) -> Scale:
    """Return the smoke scale, and write its data unless that is there already."""
    gray, color = (_make_arrays(folder / f"made{channels}.npz", num_channels=channels) for channels in (1, 3))
    texts = _make_texts(folder / "made_texts.csv")
    shrink = 1024 / NUM_STEPS
    return Scale(
        name="smoke",
        summary="synthetic data and two updates: shows that everything runs, nothing more",
        settings=_SMALL | {"embedding_size": 8, "head_size": 8},
        other_settings={
            **dict.fromkeys(("irnn", "urnn", "lm_lstm", "sa_lstm"), _SMALL),
            "transformer": _ATTENTION,
            "dmca": _ATTENTION | {"block_length": 4, "block_reach": 2},
            "char_cnn": _CONVOLUTION,
            "conv_rnn": _CONVOLUTION,
            "vdcnn": _CONVOLUTION | {"depth": 9},
        },
        datasets={
            MNIST: DatasetSetup({"data": str(gray)}, 3, shrink=shrink),
            PMNIST: DatasetSetup({"data": str(gray), "test_fraction": 0.25}, 3, shrink=shrink),
            CIFAR10: DatasetSetup({"data": str(color)}, 3, shrink=shrink),
            DOGS: DatasetSetup({"data": str(color), "test_fraction": 0.25}, 3, shrink=shrink),
            DBPEDIA: DatasetSetup({"data": str(texts)}, 3, shrink=10),
        },
        schedule=Schedule(num_updates=2, pretrain_updates=1, num_rates=1),
        sampling_steps=4,
        large_size=8,
        timed_sides=(40, 128),
    )


def _make_arrays(path: Path, *, num_channels: int) -> Path:
    """Write sequences of vectors whose mean tells the class,."""
    if not path.exists():
        rng = np.random.default_rng(num_channels)
        label_N = np.arange(NUM_EXAMPLES) % NUM_CLASSES
        x_NTD = rng.random((NUM_EXAMPLES, NUM_STEPS, num_channels), dtype=np.float32) / 4
        x_NTD += (label_N / NUM_CLASSES).astype(np.float32)[:, None, None]
        file = io.BytesIO()
        np.savez(file, x=x_NTD, y=label_N)
        write_aside(path, file.getvalue())
    return path


def _make_texts(path: Path) -> Path:
    """Write texts whose commonest letter tells the class,."""
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
