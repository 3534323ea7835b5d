"""What runs leave behind, read back: events, the record of a finished job, and segments that an r-LSTM reconstructed.

Run folders hold weights and checkpoints and stay where they were made. A record is a small JSON file with settings,
scores and cost; tables are made from nothing else. Adds `K`, the test images that were reconstructed.
"""

import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from auxrnn.errors import RunError
from auxrnn.files import read_checked, write_aside

LEFT_OUT = ("data_dir", "test_data", "unlabeled", "init_from", "format")
"""Settings that name folders of the machine, or belong to the run folder."""
KEPT_OF_ENVIRONMENT = ("versions", "python", "threads", "device", "lstm", "commit")


def read_events(run_folder: Path) -> list[dict[str, Any]]:
    """Return the events of a run in the order written; none if it has not begun.

    A last line cut short (the run is alive, or was killed while writing) is left out; any other damage is a `RunError`.
    """
    path = run_folder / "metrics.jsonl"
    if not path.exists():
        return []
    is_finished = (run_folder / "model.safetensors").exists()
    lines = (read_checked(path) if is_finished else path.read_bytes()).splitlines()
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line, parse_constant=_refuse)
            if not isinstance(event, dict) or "event" not in event:
                raise ValueError("no event")
            events.append(event)
        except (ValueError, RecursionError) as error:
            if number < len(lines):
                raise RunError(f"{path}, line {number} is damaged; remove that line or run again") from error
    return events


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is never written")


class RunRecord(NamedTuple):
    """One finished job."""

    name: str
    settings: dict[str, Any]
    """The run's whole config by field name, without folders."""
    scores: dict[str, Any]
    """What it found: of a training the last evaluation, of a measurement the numbers measured."""
    seconds: float
    """Time it took, its pretraining counted."""
    curve: list[dict[str, Any]]
    """Every evaluation of a training, in order; none of a measurement."""
    facts: dict[str, Any]
    """What was trained on: number of classes, longest sequence, checksum of the data."""
    environment: dict[str, Any]

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.settings["seed"])


def record_training(name: str, run_folder: Path) -> RunRecord:
    """Return the record of a finished run."""
    evaluations = [event for event in read_events(run_folder) if event.pop("event") == "evaluation"]
    curve = [{key: round(v, 4) if isinstance(v, float) else v for key, v in one.items()} for one in evaluations]
    card, config, environment = (_read_json(run_folder / f"{file}.json") for file in ("model", "config", "environment"))
    facts = {"num_classes": len(card["class_names"])} | {fact: card.get(fact) for fact in ("num_steps", "checksum")}
    return RunRecord(name, config, curve[-1], curve[-1]["seconds"], curve, facts, environment)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is damaged; remove its folder and `auxrnn reproduce` runs it again") from error
    return value


def write_record(record: RunRecord, folder: Path) -> None:
    """Write a record atomically, a field per line and a point of the curve per line, without folders of the machine."""
    settings = {name: value for name, value in record.settings.items() if name not in LEFT_OUT}
    settings |= {"data": Path(settings["data"]).name} if "data" in settings else {}
    environment = {name: value for name, value in record.environment.items() if name in KEPT_OF_ENVIRONMENT}
    kept = record._replace(settings=settings, environment=environment)
    texts = {name: json.dumps(value) for name, value in kept._asdict().items()}
    texts["curve"] = "[" + ",".join(f"\n  {json.dumps(point)}" for point in record.curve) + "]"
    lines = ",\n".join(f" {json.dumps(name)}: {text}" for name, text in texts.items())
    write_aside(folder / f"{record.name}.json", f"{{\n{lines}\n}}\n")


def read_record(path: Path) -> RunRecord | None:
    """Read a record; None if there is none."""
    if not path.exists():
        return None
    try:
        return RunRecord(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged; remove it and `auxrnn reproduce` makes it again") from error


class MemoryErrors(NamedTuple):
    """Mean squared errors per pixel, from 0 to 1: of the reconstruction, a blank image and the mean image."""

    rebuilt: float
    blank: float
    mean_image: float


class Reconstructions(NamedTuple):
    """Segments of images that an r-LSTM reconstructed from its state at their last step, the anchor.

    `reconstruction_KS` holds the predicted values in reading order. A segment has one step more, which was given: the
    anchor if `is_reversed`, else the first.
    """

    image_KT: Float[np.ndarray, "K T"]
    anchor_K: Int[np.ndarray, " K"]
    reconstruction_KS: Float[np.ndarray, "K S"]
    is_reversed: bool
    height: int
    width: int

    @property
    def start_K(self) -> Int[np.ndarray, " K"]:
        """Return the first step of each segment."""
        start_K: Int[np.ndarray, " K"] = self.anchor_K - self.reconstruction_KS.shape[1]
        return start_K

    def find_predicted(self) -> Float[np.ndarray, "K T"]:
        """Return the predicted values at the steps that they stand for; NaN elsewhere."""
        predicted_KT = np.full(self.image_KT.shape, np.nan)
        first_K = self.start_K + (0 if self.is_reversed else 1)
        step_KS = first_K[:, None] + np.arange(self.reconstruction_KS.shape[1])
        np.put_along_axis(predicted_KT, step_KS, self.reconstruction_KS, axis=1)
        return predicted_KT

    def measure(self, mean_image_T: Float[np.ndarray, " T"]) -> MemoryErrors:
        """Return the mean squared errors over all predicted pixels, also of two guesses without a memory."""
        predicted_KT = self.find_predicted()
        is_predicted_KT = ~np.isnan(predicted_KT)
        guesses = (predicted_KT, np.zeros_like(predicted_KT), mean_image_T)
        return MemoryErrors(*(float(np.mean((guess - self.image_KT) ** 2, where=is_predicted_KT)) for guess in guesses))


def read_reconstructions(path: Path) -> Reconstructions | None:
    """Read reconstructions that were kept; None if there are none."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            values = {name: arrays[name] for name in Reconstructions._fields}
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(f"{path} is damaged; remove it or run again what wrote it") from error
    return Reconstructions(**{name: value if value.ndim else value.item() for name, value in values.items()})
