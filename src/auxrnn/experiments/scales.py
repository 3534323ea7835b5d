"""The sizes at which the paper can be reproduced: smoke (seconds), desk (hours on two cores), full (days) and paper.

A scale says how each of the paper's datasets is read, what all runs share, and what the paper's spans of steps become:
experiments are written in the paper's own numbers (a window of 300, a segment of 600).
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from auxrnn.config import RunConfig, Window
from auxrnn.plain_config import unflatten
from auxrnn.presets import MODEL_OPTIONS, PRESETS, ModelName

MNIST, PMNIST, CIFAR10, DOGS, DBPEDIA = "MNIST", "pMNIST", "CIFAR10", "StanfordDogs", "DBpedia"
IMAGES = (MNIST, PMNIST, CIFAR10)
PAPER_WINDOW = 300
"""Steps of supervised back-propagation in the paper's truncated rows on images."""

ScaleName = Literal["smoke", "desk", "full", "paper"]


def count_steps(window: Window) -> str:
    """Say how many steps a window has."""
    return "all steps" if window == "full" else "1 step" if window == 1 else f"{window} steps"


class Schedule(NamedTuple):
    """How long a run is: updates in all, of which a part is pretraining, and how often the rate is halved with labels.

    Every run has the same number of updates; without pretraining all of them have labels.
    """

    num_updates: int
    pretrain_updates: int
    num_rates: int = 1


class Reading(NamedTuple):
    """How a scale reads one of the paper's datasets."""

    settings: Mapping[str, Any]
    steps_per_epoch: int
    """Updates in one pass, to turn a number of updates into passes."""
    shrink: float = 1.0
    """How many of the paper's steps become one of ours."""
    window: int | None = None
    """What the paper's supervised window becomes, where shrinking it would not hurt as it hurts there."""
    epochs: tuple[float, float] = (100.0, 1000.0)
    """Passes over the data before and with labels, where the scale has no schedule of its own."""
    schedule: Schedule | None = None
    """How long its runs are, where they are not as long as the others of the scale."""
    part: str = ""
    """What of the published data the scale is made for, where that is not all."""


class Scale(NamedTuple):
    """One size of all experiments."""

    name: ScaleName
    summary: str
    seeds: tuple[int, ...]
    fewer_seeds: tuple[int, ...]
    """Seeds of the experiments that come last: with fewer than three their claims stay open."""
    settings: Mapping[str, Any]
    """Of every LSTM with or without auxiliary loss."""
    other_settings: Mapping[str, Mapping[str, Any]]
    """Of the other models by name, beside what their authors published."""
    readings: Mapping[str, Reading]
    schedule: Schedule | None
    """None is the paper's own, in passes over the data."""
    sampling_steps: int
    """Updates in which scheduled sampling goes from true tokens to none, where it is on."""
    large_size: int
    """Units of the r-LSTM that the paper calls unrestricted."""
    side_divisor: int
    """Sides of the paper's dogs that become one of ours."""
    timed_sizes: tuple[int, ...]
    """Sides of dogs whose updates are timed, in the paper's pixels."""
    timed_settings: Mapping[str, Mapping[str, Any]]
    """What is different in an update that is timed, by model."""
    sides: tuple[int, ...] = (40, 48, 56, 72, 80, 96, 112, 128)
    """Sides of the paper's dogs that systems are trained on."""
    segment_length: int | None = None
    """Steps of a single segment, and of the reach of its loss, where these are not the paper's 600 and 300."""

    def span(self, steps: int, dataset: str) -> int:
        """Give what a span of the paper's steps is here; what is left of any is at least one."""
        return max(1, round(steps / self.readings[dataset].shrink)) if steps else 0

    def window(self, steps: Window, dataset: str) -> Window:
        """Give what the supervised window of a row is here."""
        if steps == "full":
            return "full"
        own = self.readings[dataset].window
        return own if own is not None and steps == PAPER_WINDOW else self.span(steps, dataset)

    def say_part(self, caption: str, dataset: str) -> str:
        """Add to a caption what of the data was at hand, where that was not all."""
        part = self.readings[dataset].part
        return f"{caption}; ours: {part}" if part else caption

    def side(self, pixels: int) -> int:
        """Give what a side of the paper's dogs is here."""
        return pixels // self.side_divisor

    def is_of_images(self, dataset: str) -> bool:
        """Tell whether images of any size can be asked for."""
        return "image_size" in self.readings[dataset].settings

    def config(self, dataset: str, *, seed: int, pretrain: bool, **changes: Any) -> RunConfig:
        """Give one LSTM: what all share, how its data is read, how long it is, and what makes it what it is."""
        return self._assemble(dataset, dict(self.settings), seed=seed, pretrain=pretrain, changes=changes)

    def other(self, dataset: str, model: ModelName, *, seed: int, pretrain: bool = False, **changes: Any) -> RunConfig:
        """Give one of the other systems, at its published settings but for what the scale says of it."""
        own = {"model": model, **self.other_settings.get(model, {})}
        return self._assemble(dataset, own, seed=seed, pretrain=pretrain, changes=changes)

    def _assemble(
        self, dataset: str, own: dict[str, Any], *, seed: int, pretrain: bool, changes: dict[str, Any]
    ) -> RunConfig:
        reading = self.readings[dataset]
        model = own.get("model", "lstm")
        lengths = self._lengths(reading, pretrain=pretrain, halves=not PRESETS[model].settings.get("warmup_steps"))
        values = {**lengths, **own, **reading.settings, **changes, "seed": seed, "threads": 1}
        meaningless = MODEL_OPTIONS - set(PRESETS[model].options)
        return unflatten({name: value for name, value in values.items() if name not in meaningless})

    def _lengths(self, reading: Reading, *, pretrain: bool, halves: bool) -> dict[str, Any]:
        schedule = reading.schedule or self.schedule
        if schedule is None:
            first_epochs, train_epochs = reading.epochs
            return {"pretrain_epochs": first_epochs if pretrain else 0.0, "train_epochs": train_epochs}
        first = schedule.pretrain_updates if pretrain else 0
        train = schedule.num_updates - first
        halving = {"lr_halving_epochs": round(train / schedule.num_rates / reading.steps_per_epoch, 4)}
        return {
            "pretrain_steps": first,
            "train_steps": train,
            "evaluate_every": max(1, schedule.num_updates // 10),
            **(halving if halves and self.settings.get("lr_schedule") != "cosine" else {}),
        }
