"""All runs below a folder, each in a line: from its config.json and metrics.jsonl alone, without torch."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from auxrnn.config import DESK_PRETRAIN_STEPS, DESK_TRAIN_STEPS, RunConfig, unflatten
from auxrnn.errors import RunError, UsageError
from auxrnn.files import is_locked, read_checked
from auxrnn.presets import name_system
from auxrnn.report.records import read_events

CONFIG = "config.json"
OF_A_RUN = {"sums.json", "model.json", "metrics.jsonl"}
"""Beside a config.json, one of these makes a folder a run: other programs have config.json files too."""
SortKey = Literal["time", "accuracy", "name", "minutes"]


class RunLine(NamedTuple):
    """What one run is, and how far it is; what is not known is None."""

    run: str
    state: Literal["finished", "stopped", "training", "damaged"]
    changed: float
    """When it was last written to, in seconds since 1970."""
    model: str | None = None
    data: str | None = None
    validation_accuracy: float | None = None
    test_accuracy: float | None = None
    minutes: float | None = None
    updates: int = 0
    planned_updates: int | None = None
    """None where the run's length was given in passes over the data."""


def list_runs(folder: Path, *, sort: SortKey = "time") -> list[RunLine]:
    """Return all runs in a folder and the folders below it, by default the newest first."""
    keys: dict[SortKey, Callable[[RunLine], Any]] = {
        "time": lambda line: -line.changed,
        # As everywhere, the test split is not what to choose by, unless there is nothing else.
        "accuracy": lambda line: -(line.validation_accuracy or line.test_accuracy or -1.0),
        "name": lambda line: line.run,
        "minutes": lambda line: -(line.minutes or -1.0),
    }
    return sorted(map(read_line, find_runs(folder)), key=keys[sort])


def find_runs(folder: Path) -> Iterator[Path]:
    """Yield the runs in a folder and the folders below it; of a run, itself."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name one that holds runs, as `auxrnn runs FOLDER` does")
    for place, folders, files in os.walk(folder):
        if CONFIG in files and OF_A_RUN & set(files):
            folders.clear()
            yield Path(place)
        folders.sort()


def read_line(run: Path) -> RunLine:
    """Read one run; whatever is wrong with its files, it has a line."""
    metrics = run / "metrics.jsonl"
    changed = (metrics if metrics.exists() else run).stat().st_mtime
    try:
        values = json.loads(read_checked(run / CONFIG))
        config = unflatten({name: value for name, value in values.items() if name != "format"})
        return _describe(run, changed, config, read_events(run))
    except (RunError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return RunLine(str(run), "damaged", changed)


def _describe(run: Path, changed: float, config: RunConfig, events: list[dict[str, Any]]) -> RunLine:
    is_finished = (run / "model.safetensors").is_file()
    scored = [event for event in events if event["event"] in ("evaluation", "result")]
    last = scored[-1] if scored else {}
    # A run that was stopped between two lines of its log has a checkpoint that is newer than the last of them.
    saved = [int(path.stem.removeprefix("step-")) for path in run.glob("checkpoints/step-*.json")]
    return RunLine(
        str(run),
        "finished" if is_finished else "training" if is_locked(run) else "stopped",
        changed,
        name_system(config.model.model, config.loss.objective),
        config.data.data,
        last.get("validation_accuracy"),
        last.get("test_accuracy"),
        events[-1]["seconds"] / 60 if events else None,
        max([0, *saved, *(event["total_step"] for event in events)]),
        _count_planned(config),
    )


def _count_planned(config: RunConfig) -> int | None:
    schedule, has_auxiliary = config.schedule, config.loss.objective != "none"
    if schedule.pretrain_epochs is not None or schedule.train_epochs is not None:
        return None
    first = DESK_PRETRAIN_STEPS if schedule.pretrain_steps is None else schedule.pretrain_steps
    train = DESK_TRAIN_STEPS if schedule.train_steps is None else schedule.train_steps
    return first * has_auxiliary + train
