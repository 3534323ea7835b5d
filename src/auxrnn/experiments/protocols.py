"""The values of each scale; those of desk and full were chosen on validation data (docs/notebook.md)."""

import csv
import io
from pathlib import Path

import numpy as np

from auxrnn.config import ScaleName
from auxrnn.experiments.scales import (
    CIFAR10,
    DBPEDIA,
    DOGS,
    MNIST,
    PAPER_SIDES,
    PMNIST,
    DatasetSetup,
    Scale,
    Schedule,
)
from auxrnn.files import write_aside
from auxrnn.presets import LEARNING, METHOD

SOME_DOGS = "1,000 photographs of 10 breeds, where the paper has 150,000 crops of 120 breeds"
SOME_TEXTS = "12,038 texts, where the paper has 560,000"

PAPER_SCALE = Scale(
    name="paper",
    summary="the published settings, for a GPU and weeks of time",
    datasets={
        MNIST: DatasetSetup({"data": "mnist"}),
        PMNIST: DatasetSetup({"data": "pmnist"}),
        CIFAR10: DatasetSetup({"data": "cifar10"}),
        DOGS: DatasetSetup({"data": "stanford_dogs", "image_size": 40, "enlarge_to": 150_000}, epochs=(20.0, 100.0)),
        DBPEDIA: DatasetSetup({"data": "dbpedia"}),
    },
    schedule=None,
    sampling_steps=100_000,
    timed_sides=PAPER_SIDES,
)

_DESK_UPDATES = 9000
_DESK_DOGS = Schedule(num_updates=3000, pretrain_updates=1500, num_rates=5)
_DESK_LSTM = {
    "hidden_size": 64,
    "embedding_size": 64,
    "drop_connect": 0.2,
    # Updates teach to remember, not images: a quarter of the batch buys four times as many.
    "batch_size": 8,
    "lr": 4e-3,
    "placement": "immediate",
    # True tokens in the first update, none in the last: fed with true tokens alone, the decoder need not remember.
    "sampling_steps": _DESK_UPDATES,
    # Squared errors of pixels are some thirty times smaller than the cross-entropy of ten classes.
    "auxiliary_weight": 30.0,
    "checkpoint_every": 500,
}
# For what is slow to evaluate in batches of 8, where no figure shows a curve.
_SELDOM = {"batch_size": 8, "evaluate_every": _DESK_UPDATES // 2}
# Half the published widths, as for the LSTM.
_DESK_ATTENTION = _SELDOM | {"warmup_steps": 900, "lr": 1e-3, "hidden_size": 64, "filter_size": 256}
_DESK_CONVOLUTION = _SELDOM | {"pad_to": 256, "optimizer": "adam", "lr": 1e-3}

DESK_SCALE = Scale(
    name="desk",
    summary="images averaged down to a quarter of the steps, 64 units, 9,000 updates: hours on two cores",
    seeds=(0, 1, 2),
    settings=_DESK_LSTM,
    other_settings={
        "irnn": {"batch_size": 8},
        "urnn": _SELDOM | {"hidden_size": 128},
        "lm_lstm": _DESK_LSTM,
        # As published: the autoencoder is fed with true tokens.
        "sa_lstm": _DESK_LSTM | {"sampling_steps": 0},
        "transformer": _DESK_ATTENTION,
        # Blocks are a quarter of the published ones, as sequences are of the paper's.
        "dmca": _DESK_ATTENTION | {"block_length": 64, "block_reach": 32},
        "char_cnn": _DESK_CONVOLUTION | {"lr": 1e-4},
        "conv_rnn": _DESK_CONVOLUTION,
        "vdcnn": _DESK_CONVOLUTION,
    },
    datasets={
        MNIST: DatasetSetup({"data": "mnist", "image_size": 14}, 7500, shrink=4, window=1),
        PMNIST: DatasetSetup({"data": "pmnist", "image_size": 14}, 7500, shrink=4, window=1),
        CIFAR10: DatasetSetup({"data": "cifar10", "image_size": 16}, 6250, shrink=4, window=1),
        # A thousand photographs are soon memorized: a third of the updates.
        DOGS: DatasetSetup(
            {"data": "stanford_dogs", "image_size": 10, "sampling_steps": _DESK_DOGS.num_updates},
            125,
            shrink=16,
            schedule=_DESK_DOGS,
            part=SOME_DOGS,
        ),
        DBPEDIA: DatasetSetup({"data": "dbpedia", "max_length": 256}, 1505, shrink=2, part=SOME_TEXTS),
    },
    schedule=Schedule(num_updates=_DESK_UPDATES, pretrain_updates=_DESK_UPDATES // 2, num_rates=5),
    sampling_steps=_DESK_UPDATES,
    large_size=128,
    side_divisor=4,
    # Times mean something at batches that fill the machine, and the Transformer's at its published width.
    timed_settings={
        "lstm": {"batch_size": 32},
        "transformer": {"batch_size": 32, "hidden_size": 128, "filter_size": 512},
    },
)


def _read_fully(data: str, schedule: Schedule, *, part: str = "", **settings: int) -> DatasetSetup:
    """Read a dataset at the paper's own length, with scheduled sampling annealed over the whole run."""
    annealed = {"data": data, "sampling_steps": schedule.num_updates}
    return DatasetSetup(annealed | settings, schedule=schedule, part=part)


_FULL_MNIST = Schedule(num_updates=9 * 938, pretrain_updates=2 * 938)
# The rate of the first trial at this size; long sequences gained nothing from a higher one, short ones did.
_FULL_LSTM = LEARNING | METHOD | {"lr": 2e-3, "checkpoint_every": 200}
# Published rates need more updates than these; a cosine ends where the others end.
_FULL_OTHERS = {"batch_size": 64, "lr_schedule": "cosine"}
_FULL_ATTENTION = _FULL_OTHERS | {"lr": 1e-3, "warmup_steps": 200, "train_steps": 1876}
_FULL_CONVOLUTION = _FULL_OTHERS | {"optimizer": "adam", "lr": 1e-3, "warmup_steps": 100}

FULL_SCALE = Scale(
    name="full",
    summary="the paper's own lengths, windows and sizes with the fast recipe, eight to ten passes: days on two cores",
    seeds=(0, 1, 2),
    settings=_FULL_LSTM,
    other_settings={
        "irnn": _FULL_OTHERS,
        "urnn": _FULL_OTHERS,
        "lm_lstm": _FULL_LSTM,
        # As published: the autoencoder is fed with true tokens.
        "sa_lstm": _FULL_LSTM | {"sampling_steps": 0},
        "transformer": _FULL_ATTENTION,
        "dmca": _FULL_ATTENTION,
        "char_cnn": _FULL_CONVOLUTION | {"lr": 1e-4},
        "conv_rnn": _FULL_CONVOLUTION,
        "vdcnn": _FULL_CONVOLUTION,
    },
    datasets={
        MNIST: _read_fully("mnist", _FULL_MNIST),
        PMNIST: _read_fully("pmnist", _FULL_MNIST),
        CIFAR10: _read_fully("cifar10", Schedule(num_updates=10 * 782, pretrain_updates=782)),
        DOGS: _read_fully("stanford_dogs", Schedule(640, 160), part=SOME_DOGS, image_size=40, batch_size=32),
        DBPEDIA: _read_fully("dbpedia", Schedule(num_updates=20 * 189, pretrain_updates=5 * 189), part=SOME_TEXTS),
    },
    schedule=_FULL_MNIST,
    sampling_steps=_FULL_MNIST.num_updates,
    sides=(40, 72, 112, 128),
    segment_length=75,
)

NUM_EXAMPLES, NUM_CLASSES, NUM_STEPS = 48, 4, 16
_SMOKE = {"hidden_size": 8, "batch_size": 16}
_SMOKE_ATTENTION = _SMOKE | {"head_size": 8, "num_heads": 2, "filter_size": 8, "num_layers": 2}
_SMOKE_CONVOLUTION = {"pad_to": 256, "batch_size": 8}


def find_scale(name: ScaleName, made_folder: Path) -> Scale:
    """Return a scale by name; the data of smoke is written to `made_folder` unless it is there already."""
    if name == "smoke":
        return _make_smoke(made_folder)
    return {"desk": DESK_SCALE, "full": FULL_SCALE, "paper": PAPER_SCALE}[name]


def _make_smoke(folder: Path) -> Scale:
    gray, color = (_make_arrays(folder / f"made{channels}.npz", num_channels=channels) for channels in (1, 3))
    shrink = 1024 / NUM_STEPS
    return Scale(
        name="smoke",
        summary="synthetic data and two updates: shows that everything runs, nothing more",
        settings=_SMOKE | {"embedding_size": 8, "head_size": 8},
        other_settings={
            **dict.fromkeys(("irnn", "urnn", "lm_lstm", "sa_lstm"), _SMOKE),
            "transformer": _SMOKE_ATTENTION,
            "dmca": _SMOKE_ATTENTION | {"block_length": 4, "block_reach": 2},
            "char_cnn": _SMOKE_CONVOLUTION,
            "conv_rnn": _SMOKE_CONVOLUTION,
            "vdcnn": _SMOKE_CONVOLUTION | {"depth": 9},
        },
        datasets={
            MNIST: DatasetSetup({"data": gray}, 3, shrink=shrink),
            PMNIST: DatasetSetup({"data": gray, "test_fraction": 0.25}, 3, shrink=shrink),
            CIFAR10: DatasetSetup({"data": color}, 3, shrink=shrink),
            DOGS: DatasetSetup({"data": color, "test_fraction": 0.25}, 3, shrink=shrink),
            DBPEDIA: DatasetSetup({"data": _make_texts(folder / "made_texts.csv")}, 3, shrink=10),
        },
        schedule=Schedule(num_updates=2, pretrain_updates=1),
        sampling_steps=4,
        large_size=8,
        timed_sides=(40, 128),
    )


def _make_arrays(path: Path, *, num_channels: int) -> str:
    """Write sequences of vectors whose mean tells the class."""
    if not path.exists():
        label_N = np.arange(NUM_EXAMPLES) % NUM_CLASSES
        x_NTD = np.random.default_rng(0).random((NUM_EXAMPLES, NUM_STEPS, num_channels)) + label_N[:, None, None]
        file = io.BytesIO()
        np.savez(file, x=(x_NTD / NUM_CLASSES).astype(np.float32), y=label_N)
        write_aside(path, file.getvalue())
    return str(path)


def _make_texts(path: Path) -> str:
    """Write texts whose commonest letter tells the class."""
    if not path.exists():
        rng, file = np.random.default_rng(0), io.StringIO()
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for number in range(NUM_EXAMPLES):
            letter = "abcd"[number % NUM_CLASSES]
            writer.writerow(("".join(rng.choice(list(f"abcdefgh {4 * letter}"), size=20)), letter))
        write_aside(path, file.getvalue())
    return str(path)
