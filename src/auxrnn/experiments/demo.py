"""The side-by-side on bundled digits that `make demo` runs: four networks, the same number of updates, two cores.

Each network is trained by a process of its own with the command that a user would type, so that the demo is also an
example: its runs can be evaluated, resumed and predicted with. Interrupted, the demo goes on where its runs stopped.
"""

import json
import os
import shlex
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rich.console import Console

from auxrnn import runs
from auxrnn.config import RunConfig, Window, to_flags, unflatten
from auxrnn.data import datasets
from auxrnn.data.datasets import Dataset
from auxrnn.data.summary import count_parts
from auxrnn.errors import RunError, UsageError
from auxrnn.experiments.jobs import Folders, Task
from auxrnn.experiments.remembering import NUM_PICTURES, find_mean_image, keep_reconstructions, measure_split
from auxrnn.experiments.runner import Display, Runner
from auxrnn.files import write_aside
from auxrnn.report.canvas import memory_errors
from auxrnn.report.pages import DemoErrors, DemoFacts, DemoRow, write_demo_page
from auxrnn.report.records import read_events

WINDOW = 28
PRETRAIN_STEPS, TRAIN_STEPS = 1200, 2800
SMOKE_STEPS = 4
# The anchors of the pictures: from inside the digit to the end of its last row.
FIRST_ANCHOR, LAST_ANCHOR = 111, 153


class System(NamedTuple):
    """One of the four networks: what it is called, and what it is."""

    title: str
    description: str
    objective: str
    window: Window


# The slowest first, so that no core waits at the end.
SYSTEMS = {
    "reconstruct": System(
        "r-LSTM", "also learns to reconstruct what it read before random anchors", "reconstruct", WINDOW
    ),
    "predict": System("p-LSTM", "also learns to predict what comes after random anchors", "predict", WINDOW),
    "lstm_full": System("LSTM, full", "gradients through the whole sequence", "none", "full"),
    "lstm_truncated": System("LSTM, truncated", "gradients through the last steps only", "none", WINDOW),
}
SETTINGS = {
    "data": "digits",
    "hidden_size": 64,
    "embedding_size": 16,
    "head_size": 128,
    "decoder_layers": 1,
    "drop_connect": 0.0,
    "gate_init": "chrono",
    "segment_length": 84,
    "placement": "immediate",
    "auxiliary_window": WINDOW,
    "auxiliary_weight": 3.0,
    "normalize_auxiliary": True,
    # The last 1200 updates feed the decoder nothing but its own output, as the pictures do.
    "sampling_steps": 2800,
    "batch_size": 32,
    "optimizer": "adam",
    "lr": 8e-3,
    "lr_schedule": "cosine",
    "warmup_steps": 50,
    "label_smoothing": 0.1,
    "threads": 1,
    "checkpoint_every": 200,
    "log_every": 20,
}
NUM_EVALUATIONS = 20
SHOWN = ("lstm_full", "lstm_truncated", "reconstruct", "predict")


class DemoResult(NamedTuple):
    """What the demo found; accuracies in percent on the test split."""

    rows: list[DemoRow]
    errors: DemoErrors
    seconds: float
    page: Path

    @property
    def accuracies(self) -> dict[str, float]:
        """Accuracy of each network by name."""
        return {row.name: row.accuracy for row in self.rows}


def configs(*, seed: int, is_smoke: bool) -> dict[str, RunConfig]:
    """Return the four runs, which differ only in objective and windows; all have the same number of updates."""
    pretrain, train = (SMOKE_STEPS, SMOKE_STEPS) if is_smoke else (PRETRAIN_STEPS, TRAIN_STEPS)
    plain = {"pretrain_steps": 0, "train_steps": pretrain + train}
    helped = {"pretrain_steps": pretrain, "train_steps": train}
    planned = {}
    for name, system in SYSTEMS.items():
        steps = plain if system.objective == "none" else helped
        values = SETTINGS | steps | {"objective": system.objective, "supervised_window": system.window, "seed": seed}
        values["evaluate_every"] = max(1, (pretrain + train) // NUM_EVALUATIONS)
        planned[name] = unflatten(values)
    return planned


def run(folder: Path, *, seed: int, is_smoke: bool, console: Console) -> DemoResult:
    """Train what is not trained yet, and write the page; a finished demo in the folder is shown again."""
    planned = configs(seed=seed, is_smoke=is_smoke)
    _check_folder(folder, planned)
    start = time.monotonic()
    is_new = not all(runs.is_finished(folder / name) for name in planned)
    try:
        if is_new:
            _train_all(folder, planned, console)
    finally:
        seconds = _keep_seconds(folder, time.monotonic() - start if is_new else 0.0)
    dataset = datasets.load(planned["reconstruct"].data)
    errors = _keep_memory(folder)
    rows = [_row(folder, name, planned[name]) for name in SHOWN]
    page = write_demo_page(folder, rows=rows, facts=_facts(folder, dataset, planned), errors=errors)
    return DemoResult(rows, errors, seconds, page)


def _check_folder(folder: Path, planned: Mapping[str, RunConfig]) -> None:
    """Refuse to mix the runs of two different demos in one folder."""
    for name, config in planned.items():
        if (folder / name / "config.json").exists() and runs.read_config(folder / name) != runs.settle(config):
            raise UsageError(f"{folder} holds a demo with other settings; choose another --out or remove that folder")


def _train_all(folder: Path, planned: Mapping[str, RunConfig], console: Console) -> None:
    """Train the runs side by side, as many at a time as there are cores."""
    tasks = [Task(name, config) for name, config in planned.items()]
    folders, workers = Folders(folder, folder), os.cpu_count() or 1
    if not console.is_terminal:
        num_updates = sum(_num_steps(planned["reconstruct"]))
        console.print(f"training {len(planned)} networks for {num_updates:,} updates each", highlight=False)
    with ThreadPoolExecutor(workers) as executor:
        runner = Runner(folders, executor, workers=workers, display=Display(tasks, folders, console))
        failures = runner.run(tasks)
    if failures:
        name, reason = failures[0]
        raise RunError(f"training {name} failed ({reason}); {folder / name}.log has everything it said")


def _num_steps(config: RunConfig) -> tuple[int, int]:
    return config.schedule.pretrain_steps or 0, config.schedule.train_steps or 0


def _keep_memory(folder: Path) -> DemoErrors:
    """Keep what r-LSTM rebuilds of some test digits, and return how well it does that on them and on all."""
    run_folder = folder / "reconstruct"
    test = runs.load_split(run_folder, "test")
    mean_image_T = find_mean_image(runs.load_split(run_folder, "train"))
    anchor_K = torch.linspace(FIRST_ANCHOR, LAST_ANCHOR, NUM_PICTURES).long()
    shown = keep_reconstructions(run_folder, test, anchor_K, path=folder / "reconstructions.npz")
    on_test = measure_split(run_folder, test, anchor_K, mean_image_T=mean_image_T)
    return DemoErrors(memory_errors(shown, mean_image_T), on_test)


def _row(folder: Path, name: str, config: RunConfig) -> DemoRow:
    system, (pretrain_steps, train_steps) = SYSTEMS[name], _num_steps(config)
    last = [event for event in read_events(folder / name) if event["event"] == "evaluation"][-1]
    return DemoRow(
        name=name,
        title=system.title,
        description=system.description,
        window=system.window,
        pretrain_steps=pretrain_steps,
        train_steps=train_steps,
        accuracy=last["test_accuracy"],
        seconds=last["seconds"],
    )


def _facts(folder: Path, dataset: Dataset, planned: Mapping[str, RunConfig]) -> DemoFacts:
    environment = json.loads((folder / "reconstruct" / "environment.json").read_text())
    parts = count_parts(dataset.table)
    versions = [*environment["versions"].items(), ("python", environment["python"])]
    return DemoFacts(
        title="What an auxiliary loss does for a short memory",
        dataset="scikit-learn's handwritten digits, 8x8 on a blank 14x14 canvas",
        train_examples=parts["train"],
        test_examples=parts["test"],
        num_classes=len(dataset.facts.class_names),
        sequence_length=int(np.diff(dataset.flat.begin_N1).max()),
        seed=planned["reconstruct"].seed,
        versions=versions,
        command=f"auxrnn demo --seed {planned['reconstruct'].seed}",
        run_commands=[f"auxrnn train {shlex.join(to_flags(planned[name]))}" for name in SHOWN],
    )


def _keep_seconds(folder: Path, seconds: float) -> float:
    """Add to the time that the demo has taken so far, over interruptions, and give the sum."""
    path = folder / "demo.json"
    before = json.loads(path.read_text())["seconds"] if path.exists() else 0.0
    write_aside(path, json.dumps({"seconds": round(before + seconds, 1)}) + "\n")
    return round(before + seconds, 1)
