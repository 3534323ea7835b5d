"""What a scale is (smoke, desk, full or paper), and how it turns the paper's numbers into configs of runs.

Experiments are written in the paper's own numbers (a window of 300, a segment of 600). A scale says how each dataset is
read, what all runs share, and what a span of the paper's steps becomes; `protocols.py` has the values of each scale.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from auxrnn.config import Objective, RunConfig, ScaleName, Window, unflatten
from auxrnn.presets import MODEL_OPTIONS, PRESETS, ModelName

MNIST, PMNIST, CIFAR10, DOGS, DBPEDIA = "MNIST", "pMNIST", "CIFAR10", "StanfordDogs", "DBpedia"
IMAGES = (MNIST, PMNIST, CIFAR10)
PAPER_WINDOW, PAPER_SEGMENT = 300, 600
"""Steps of supervised back-propagation in the paper's truncated rows on images, and of a single segment."""
PAPER_SIDES = (40, 48, 56, 72, 80, 96, 112, 128)
"""Sides of the paper's dogs in pixels."""
OBJECTIVES: dict[str, Objective] = {"r-LSTM": "reconstruct", "p-LSTM": "predict"}

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
    steps_per_epoch: int
    shrink: float = 1.0
    """How many of the paper's steps become one of ours."""
    window: int | None = None
    """What the paper's supervised window becomes, where a shrunk one would not hurt as it does in the paper."""
    epochs: tuple[float, float] = (100.0, 1000.0)
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
    schedule: Schedule | None
    """None is the paper's own, in epochs."""
    sampling_steps: int
    """Updates in which scheduled sampling goes from true tokens to none, where it is on."""
    seeds: tuple[int, ...] = (0,)
    fewer_seeds: tuple[int, ...] = (0,)
    """Seeds of the experiments that come last: with fewer than three their claims stay open."""
    settings: Mapping[str, Any] = NOTHING
    """Of every LSTM with or without auxiliary loss."""
    other_settings: Mapping[str, Mapping[str, Any]] = NOTHING
    """Of the other models by name, on top of what their authors published."""
    large_size: int = 512
    """Units of the r-LSTM that the paper calls unrestricted."""
    side_divisor: int = 1
    """How much smaller our dogs are than the paper's."""
    sides: tuple[int, ...] = PAPER_SIDES
    """Sides of dogs that systems are trained on, in the paper's pixels."""
    timed_sides: tuple[int, ...] = (40, 80, 128)
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

    def lstm(self, dataset: str, *, seed: int, window: Window = PAPER_WINDOW, **changes: Any) -> RunConfig:
        """Return an LSTM without auxiliary loss, all of whose updates have labels."""
        values = {"objective": "none", "supervised_window": self.window(window, dataset)}
        return self._assemble(dataset, self.settings, seed=seed, pretrain=False, changes=values | changes)

    def with_auxiliary(
        self,
        dataset: str,
        system: str,
        *,
        seed: int,
        window: Window = PAPER_WINDOW,
        shape: tuple[int, int] = (1, PAPER_SEGMENT),
        **changes: Any,
    ) -> RunConfig:
        """Return an r-LSTM or p-LSTM with n segments of length l (`shape`).

        With n = 1 the auxiliary loss reaches 300 steps, in every other shape l of them (section 5.2), and with full
        back-propagation all steps. A scale may have a single segment of its own length, which is then also its window.
        """
        num_segments, length = shape
        is_single = shape == (1, PAPER_SEGMENT)
        if is_single and self.segment_length is not None:
            length = self.segment_length
        reach: Window = self.span(PAPER_WINDOW if is_single and length == PAPER_SEGMENT else length, dataset)
        values = {
            "objective": OBJECTIVES[system],
            "supervised_window": self.window(window, dataset),
            "auxiliary_window": "full" if window == "full" else reach,
            "num_segments": num_segments,
            "segment_length": self.span(length, dataset),
        }
        pretrain = changes.pop("pretrain", True)
        return self._assemble(dataset, self.settings, seed=seed, pretrain=pretrain, changes=values | changes)

    def other(self, dataset: str, model: ModelName, *, seed: int, pretrain: bool = False, **changes: Any) -> RunConfig:
        """Return one of the other systems, at its published settings except for what the scale changes."""
        own = {"model": model, **self.other_settings.get(model, {})}
        return self._assemble(dataset, own, seed=seed, pretrain=pretrain, changes=changes)

    def _assemble(
        self, dataset: str, own: Mapping[str, Any], *, seed: int, pretrain: bool, changes: dict[str, Any]
    ) -> RunConfig:
        setup = self.datasets[dataset]
        model = own.get("model", "lstm")
        lengths = self._find_lengths(setup, pretrain=pretrain, halves=not PRESETS[model].settings.get("warmup_steps"))
        values = {**lengths, **own, **setup.settings, **changes, "seed": seed, "threads": 1}
        without_effect = MODEL_OPTIONS - set(PRESETS[model].options)
        return unflatten({name: value for name, value in values.items() if name not in without_effect})

    def _find_lengths(self, setup: DatasetSetup, *, pretrain: bool, halves: bool) -> dict[str, Any]:
        schedule = setup.schedule or self.schedule
        if schedule is None:
            first_epochs, train_epochs = setup.epochs
            return {"pretrain_epochs": first_epochs if pretrain else 0.0, "train_epochs": train_epochs}
        first = schedule.pretrain_updates if pretrain else 0
        train = schedule.num_updates - first
        halving = {"lr_halving_epochs": round(train / schedule.num_rates / setup.steps_per_epoch, 4)}
        return {
            "pretrain_steps": first,
            "train_steps": train,
            "evaluate_every": max(1, schedule.num_updates // 10),
            **(halving if halves and self.settings.get("lr_schedule") != "cosine" else {}),
        }


def count_steps(window: Window) -> str:
    """Return the length of a window in words."""
    return "all steps" if window == "full" else "1 step" if window == 1 else f"{window} steps"


def shown_as(title: str, *, ours: object, paper: object) -> str:
    """Return the paper's name of a row or column, with our value where it differs."""
    return title if ours == paper else f"{title} (here {ours})"
