"""The values of each scale; those of desk and full were chosen on validation data (docs/notebook.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
from auxrnn.experiments.smoke import make_smoke
from auxrnn.presets import LEARNING, METHOD


def _read_fully(
    settings: Mapping[str, Any], steps_per_epoch: int, schedule: Schedule, *, part: str = ""
) -> DatasetSetup:
    """Read a dataset at the paper's own length, with scheduled sampling annealed over the whole run."""
    annealed = {"sampling_steps": schedule.num_updates}
    return DatasetSetup(annealed | dict(settings), steps_per_epoch, schedule=schedule, part=part)


PAPER_SCALE = Scale(
    name="paper",
    summary="the published settings, for a GPU and weeks of time",
    datasets={
        MNIST: DatasetSetup({"data": "mnist"}, 469),
        PMNIST: DatasetSetup({"data": "pmnist"}, 469),
        CIFAR10: DatasetSetup({"data": "cifar10"}, 391),
        DOGS: DatasetSetup(
            {"data": "stanford_dogs", "image_size": 40, "enlarge_to": 150_000}, 1172, epochs=(20.0, 100.0)
        ),
        DBPEDIA: DatasetSetup({"data": "dbpedia"}, 4375),
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
_SELDOM = {"evaluate_every": _DESK_UPDATES // 2}
# Half the published widths, as for the LSTM.
_DESK_ATTENTION = {
    "batch_size": 8,
    "warmup_steps": 900,
    "lr": 1e-3,
    "hidden_size": 64,
    "filter_size": 256,
    **_SELDOM,
}
_DESK_CONVOLUTION = {"batch_size": 8, "pad_to": 256, "optimizer": "adam", "lr": 1e-3, **_SELDOM}

DESK_SCALE = Scale(
    name="desk",
    summary="images averaged down to a quarter of the steps, 64 units, 9,000 updates: hours on two cores",
    seeds=(0, 1, 2),
    settings=_DESK_LSTM,
    other_settings={
        "irnn": {"batch_size": 8},
        "urnn": {"batch_size": 8, "hidden_size": 128, **_SELDOM},
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
            part="1,000 photographs of 10 breeds, where the paper has 150,000 crops of 120 breeds",
        ),
        DBPEDIA: DatasetSetup(
            {"data": "dbpedia", "max_length": 256},
            1505,
            shrink=2,
            part="12,038 texts, where the paper has 560,000",
        ),
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


_FULL_MNIST = Schedule(num_updates=9 * 938, pretrain_updates=2 * 938)
_FULL_CIFAR10 = Schedule(num_updates=10 * 782, pretrain_updates=782)
_FULL_DOGS = Schedule(num_updates=640, pretrain_updates=160)
_FULL_DBPEDIA = Schedule(num_updates=20 * 189, pretrain_updates=5 * 189)
# The rate of the first trial at this size; long sequences gained nothing from a higher one, short ones did.
_FULL_LSTM = LEARNING | METHOD | {"lr": 2e-3, "checkpoint_every": 200}
# Published rates need more updates than these; a cosine ends where the others end.
_FULL_ATTENTION = {"batch_size": 64, "lr": 1e-3, "lr_schedule": "cosine", "warmup_steps": 200, "train_steps": 1876}
_FULL_CONVOLUTION = {"batch_size": 64, "optimizer": "adam", "lr": 1e-3, "lr_schedule": "cosine", "warmup_steps": 100}

FULL_SCALE = Scale(
    name="full",
    summary="the paper's own lengths, windows and sizes with the fast recipe, eight to ten passes: days on two cores",
    seeds=(0, 1, 2),
    settings=_FULL_LSTM,
    other_settings={
        "irnn": {"batch_size": 64, "lr_schedule": "cosine"},
        "urnn": {"batch_size": 64, "lr_schedule": "cosine"},
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
        MNIST: _read_fully({"data": "mnist"}, 938, _FULL_MNIST),
        PMNIST: _read_fully({"data": "pmnist"}, 938, _FULL_MNIST),
        CIFAR10: _read_fully({"data": "cifar10"}, 782, _FULL_CIFAR10),
        DOGS: _read_fully(
            {"data": "stanford_dogs", "image_size": 40, "batch_size": 32},
            32,
            _FULL_DOGS,
            part="1,000 photographs of 10 breeds, where the paper has 150,000 crops of 120 breeds",
        ),
        DBPEDIA: _read_fully({"data": "dbpedia"}, 189, _FULL_DBPEDIA, part="12,038 texts, where the paper has 560,000"),
    },
    schedule=_FULL_MNIST,
    sampling_steps=_FULL_MNIST.num_updates,
    sides=(40, 72, 112, 128),
    segment_length=75,
)


def find_scale(name: ScaleName, made_folder: Path) -> Scale:
    """Return a scale by name; the data of smoke is written to `made_folder` unless it is there already."""
    if name == "smoke":
        return make_smoke(made_folder)
    return {"desk": DESK_SCALE, "full": FULL_SCALE, "paper": PAPER_SCALE}[name]
