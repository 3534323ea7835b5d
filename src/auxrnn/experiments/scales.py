"""A scale (smoke, desk, full or paper) turns the paper's numbers into configs of runs.

Experiments are written in the paper's own numbers (a window of 300, a segment of 600). A scale says how each dataset is
read, what all runs share, and what a span of the paper's steps becomes; the values of each are in a TOML file.
"""

import csv
import io
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import numpy as np

from auxrnn.config import Objective, RunConfig, ScaleName, Window, unflatten
from auxrnn.files import write_aside
from auxrnn.presets import MODEL_OPTIONS, PRESETS, ModelName, name_system

MNIST, PMNIST, CIFAR10, DOGS, DBPEDIA = "MNIST", "pMNIST", "CIFAR10", "StanfordDogs", "DBpedia"
IMAGES = (MNIST, PMNIST, CIFAR10)
PAPER_WINDOW, PAPER_SEGMENT = 300, 600
"""Steps of supervised back-propagation in the paper's truncated rows on images, and of a single segment."""
SINGLE = (1, PAPER_SEGMENT)
PAPER_SIDES = (40, 48, 56, 72, 80, 96, 112, 128)
"""Sides of the paper's dogs in pixels."""
CELLS: tuple[ModelName, ...] = ("lstm", "gru", "ur_lstm", "lru", "legendre")
"""Recurrences with the settings, windows and losses of the main network."""
SYSTEMS: dict[str, tuple[ModelName, Objective]] = {
    **{preset.title: (model, "none") for model, preset in PRESETS.items()},
    **{name_system(cell, objective): (cell, objective) for cell in CELLS for objective in get_args(Objective)},
}
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Schedule(NamedTuple):
    """How long a run is: updates in all, how many of them are pretraining, and how often the rate is halved.

    Every run has the same number of updates; without pretraining all of them have labels.
    """

    num_updates: int
    pretrain_updates: int
    num_rates: int = 1


class DatasetSetup(NamedTuple):
    """How a scale reads one of the paper's datasets."""

    settings: Mapping[str, Any]
    steps_per_epoch: int = 1
    """Counts only where rates are halved."""
    shrink: float = 1.0
    """How many of the paper's steps become one of ours."""
    window: int | None = None
    """What the paper's supervised window becomes, where a shrunk one would not hurt as it does in the paper."""
    epochs: Sequence[float] = (100.0, 1000.0)
    """Epochs of pretraining and of training, where the scale has no schedule of its own."""
    schedule: Schedule | None = None
    """Overrides the schedule of the scale."""
    part: str = ""
    """Which part of the published data is used, if not all of it."""


class Scale(NamedTuple):
    """One size of all experiments."""

    name: ScaleName
    summary: str
    datasets: Mapping[str, DatasetSetup]
    sampling_steps: int
    """Updates in which scheduled sampling goes from true tokens to none, where it is on."""
    schedule: Schedule | None = None
    """None is the paper's own, in epochs."""
    seeds: Sequence[int] = (0,)
    fewer_seeds: Sequence[int] = (0,)
    """Seeds of the experiments that come last: with fewer than three their claims stay open."""
    settings: Mapping[str, Any] = NOTHING
    """Of every LSTM and the cells in its place, with or without auxiliary loss."""
    other_settings: Mapping[str, Mapping[str, Any]] = NOTHING
    """Of the other models by name, on top of what their authors published; `like` names one to start from."""
    large_size: int = 512
    """Units of the r-LSTM that the paper calls unrestricted."""
    side_divisor: int = 1
    """How much smaller our dogs are than the paper's."""
    sides: Sequence[int] = PAPER_SIDES
    """Sides of dogs that systems are trained on, in the paper's pixels."""
    timed_sides: Sequence[int] = (40, 80, 128)
    """Sides of dogs whose updates are timed."""
    timed_settings: Mapping[str, Mapping[str, Any]] = NOTHING
    """What is different in an update that is timed, by model."""
    segment_length: int | None = None
    """Steps of a single segment and of the window of its loss, where these are not the paper's 600 and 300."""

    def span(self, steps: int, dataset: str) -> int:
        """Return what a span of the paper's steps is here: at least one step, unless it is 0."""
        return max(1, round(steps / self.datasets[dataset].shrink)) if steps else 0

    def window(self, steps: Window, dataset: str) -> Window:
        """Return what a supervised window of the paper is here."""
        if steps == "full":
            return "full"
        own = self.datasets[dataset].window
        return own if own is not None and steps == PAPER_WINDOW else self.span(steps, dataset)

    def add_part(self, caption: str, dataset: str) -> str:
        """Add to a caption which part of the data is used, if not all of it."""
        part = self.datasets[dataset].part
        return f"{caption}; ours: {part}" if part else caption

    def config(
        self,
        system: str,
        dataset: str,
        *,
        seed: int,
        window: Window = PAPER_WINDOW,
        shape: tuple[int, int] = SINGLE,
        **changes: Any,
    ) -> RunConfig:
        """Return the run of a system on a dataset.

        An LSTM, r-LSTM or p-LSTM, or another cell, has a supervised window, and n segments of length l (`shape`) if it
        has segments. Any other system, by its title in `presets`, has its published settings except for what the scale
        changes.
        """
        (model, objective), setup = SYSTEMS[system], self.datasets[dataset]
        own: dict[str, Any] = {"model": model}
        if model in CELLS:
            own |= self._find_windows(objective, dataset, window=window, shape=shape)
        published = PRESETS[model].settings | own
        has_pretraining = changes.pop("pretrain", True) and published["objective"] != "none"
        lengths = self._find_lengths(setup, has_pretraining=has_pretraining, has_warmup="warmup_steps" in published)
        values = {**lengths, **self._find_settings(model), **own, **setup.settings, **changes}
        if model == "sa_lstm":
            # As published, the autoencoder is fed true tokens, whatever the other systems are fed on this dataset.
            values["sampling_steps"] = 0
        without_effect = MODEL_OPTIONS - set(PRESETS[model].options)
        kept = {name: value for name, value in values.items() if name not in without_effect}
        return unflatten(kept | {"seed": seed, "threads": 1})

    def _find_windows(
        self, objective: Objective, dataset: str, *, window: Window, shape: tuple[int, int]
    ) -> dict[str, Any]:
        """Return the objective, windows and segments of a cell.

        With n = 1 the auxiliary loss reaches 300 steps, in every other shape l of them (section 5.2), and with full
        back-propagation all steps. A scale may have a single segment of its own length, which is then also its window.
        """
        plain = {"objective": objective, "supervised_window": self.window(window, dataset)}
        if objective == "none":
            return plain
        num_segments, length = shape
        if shape == SINGLE and self.segment_length is not None:
            length = self.segment_length
        reach = self.span(PAPER_WINDOW if (num_segments, length) == SINGLE else length, dataset)
        return plain | {
            "auxiliary_window": "full" if window == "full" else reach,
            "num_segments": num_segments,
            "segment_length": self.span(length, dataset),
        }

    def _find_settings(self, model: str) -> dict[str, Any]:
        own = dict(self.other_settings.get(model, {}))
        if model in CELLS:
            return {**self.settings, **own}
        return (self._find_settings(own.pop("like")) if "like" in own else {}) | own

    def _find_lengths(self, setup: DatasetSetup, *, has_pretraining: bool, has_warmup: bool) -> dict[str, Any]:
        schedule = setup.schedule or self.schedule
        if schedule is None:
            first_epochs, train_epochs = setup.epochs
            return {"pretrain_epochs": first_epochs if has_pretraining else 0.0, "train_epochs": train_epochs}
        first = schedule.pretrain_updates if has_pretraining else 0
        train = schedule.num_updates - first
        lengths = {"pretrain_steps": first, "train_steps": train, "evaluate_every": max(1, schedule.num_updates // 10)}
        if has_warmup or self.settings.get("lr_schedule") == "cosine":
            return lengths
        return lengths | {"lr_halving_epochs": round(train / schedule.num_rates / setup.steps_per_epoch, 4)}


def shown_as(title: str, *, ours: object, paper: object) -> str:
    """Return the paper's name of a row or column, with our value where it differs."""
    return title if ours == paper else f"{title} (here {ours})"


def find_scale(name: ScaleName, made_folder: Path) -> Scale:
    """Return a scale by name; the data of smoke is written to `made_folder` unless it is there already."""
    values = tomllib.loads((resources.files("auxrnn.experiments") / f"{name}.toml").read_text(encoding="utf-8"))
    if name == "smoke":
        _write_data(made_folder)
        for setup in values["datasets"].values():
            setup["settings"]["data"] = str(made_folder / setup["settings"]["data"])
    datasets = {dataset: DatasetSetup(**_read_schedule(setup)) for dataset, setup in values["datasets"].items()}
    return Scale(**_read_schedule(values) | {"name": name, "datasets": datasets})


def _read_schedule(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"schedule": Schedule(**values["schedule"])} if "schedule" in values else values


def _write_data(folder: Path) -> None:
    """Write sequences whose mean tells the class, and texts whose commonest letter does."""
    rng, label_N = np.random.default_rng(0), np.arange(48) % 4
    for num_channels in (1, 3):
        if not (path := folder / f"made{num_channels}.npz").exists():
            x_NTD = (rng.random((48, 16, num_channels)) + label_N[:, None, None]) / 4
            file = io.BytesIO()
            np.savez(file, x=x_NTD.astype(np.float32), y=label_N)
            write_aside(path, file.getvalue())
    if not (path := folder / "made_texts.csv").exists():
        texts = io.StringIO()
        rows = [("".join(rng.choice(list("abcdefgh" + 4 * "abcd"[label]), size=20)), label) for label in label_N]
        csv.writer(texts).writerows([("text", "label"), *rows])
        write_aside(path, texts.getvalue())
