"""What runs leave behind, read back: the lines of `metrics.jsonl` and the segments that r-LSTM rebuilt.

Adds `K`, the test examples that are shown.
"""

import json
import math
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from auxrnn.errors import RunError


class Curve(NamedTuple):
    """Test accuracy in percent over one run; `steps` count the updates of both phases."""

    title: str
    steps: list[int]
    accuracies: list[float]
    pretrain_steps: int


class Reconstructions(NamedTuple):
    """Segments that r-LSTM rebuilt from its state at an anchor: steps `start` to `start + length` of each example.

    `reconstruction_KS` holds the `length` predicted values in reading order. The step that was given instead of
    predicted is the last of the segment if `is_reversed`, else the first.
    """

    image_KT: Float[np.ndarray, "K T"]
    anchor_K: Int[np.ndarray, " K"]
    start_K: Int[np.ndarray, " K"]
    length_K: Int[np.ndarray, " K"]
    reconstruction_KS: Float[np.ndarray, "K S"]
    label_K: Int[np.ndarray, " K"]
    is_reversed: bool
    height: int
    width: int


def read_events(run_folder: Path) -> list[dict[str, Any]]:
    """Return the events of a run in the order written; none if it has not begun.

    A last line cut short (the run is alive, or was killed while writing) is left out; any other damage is a `RunError`.
    """
    path = run_folder / "metrics.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(json.loads(line))
        except ValueError as error:
            if number < len(lines):
                raise RunError(f"{path}, line {number} is damaged; remove that line or run again") from error
    return events


def read_curve(run_folder: Path, *, title: str) -> Curve:
    """Return the test accuracies of a run; where a resumed run repeats a step, the later line counts."""
    accuracies: dict[int, float] = {}
    pretrain_steps = 0
    for event in read_events(run_folder):
        if event.get("phase") == "pretrain":
            pretrain_steps = max(pretrain_steps, event["total_step"])
        elif event.get("event") == "evaluation" and math.isfinite(event.get("test_accuracy", math.nan)):
            accuracies[event["total_step"]] = event["test_accuracy"]
    steps = sorted(accuracies)
    return Curve(title, steps, [accuracies[step] for step in steps], pretrain_steps)


def read_reconstructions(path: Path) -> Reconstructions | None:
    """Read what the demo kept of r-LSTM's reconstructions; None if it kept nothing."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            values = {name: arrays[name] for name in Reconstructions._fields}
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(f"{path} is damaged; remove it or run the demo again") from error
    scalars = {"is_reversed": bool(values["is_reversed"])} | {name: int(values[name]) for name in ("height", "width")}
    return Reconstructions(**(values | scalars))
