"""The record of one finished job: a small JSON file with its settings, scores and cost, to be kept and shared.

Run folders hold weights and checkpoints and stay where they were made; records are what tables are made from. They
name no folder of the machine.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from auxrnn.errors import RunError
from auxrnn.files import write_aside
from auxrnn.report.records import read_events

LEFT_OUT = ("data_dir", "test_data", "unlabeled", "init_from", "format")
"""Settings that name folders of the machine, or belong to the run folder."""
KEPT_OF_ENVIRONMENT = ("versions", "python", "threads", "device", "lstm", "commit")


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
    """Make the record of a finished run from its folder."""
    curve = [_drop_event(event) for event in read_events(run_folder) if event["event"] == "evaluation"]
    card = _read_json(run_folder / "model.json")
    return RunRecord(
        name=name,
        settings=strip_settings(_read_json(run_folder / "config.json")),
        scores=curve[-1],
        seconds=curve[-1]["seconds"],
        curve=curve,
        facts={
            "num_classes": len(card["class_names"]),
            "num_steps": card["num_steps"],
            "checksum": card.get("checksum"),
        },
        environment=strip_environment(_read_json(run_folder / "environment.json")),
    )


def strip_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a config what names folders of the machine."""
    kept = {name: value for name, value in config.items() if name not in LEFT_OUT}
    return kept | ({"data": Path(kept["data"]).name} if "data" in kept else {})


def strip_environment(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what a result may depend on."""
    return {name: environment[name] for name in KEPT_OF_ENVIRONMENT}


def write_record(record: RunRecord, folder: Path) -> None:
    """Write a record, whole or not at all."""
    lines = ",\n".join(f" {json.dumps(name)}: {_to_text(value)}" for name, value in record._asdict().items())
    write_aside(folder / f"{record.name}.json", f"{{\n{lines}\n}}\n")


def read_record(path: Path) -> RunRecord | None:
    """Read a record; None if there is none."""
    if not path.exists():
        return None
    try:
        return RunRecord(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged; remove it and `auxrnn reproduce` makes it again") from error


def _to_text(value: Any) -> str:
    """Return a list with one element a line, so that records can be read and compared; anything else on one line."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[" + ",".join(f"\n  {json.dumps(element)}" for element in value) + "]"


def _drop_event(event: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, 4) if isinstance(value, float) else value for name, value in event.items() if name != "event"
    }


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is damaged; remove its folder and `auxrnn reproduce` runs it again") from error
    return value
