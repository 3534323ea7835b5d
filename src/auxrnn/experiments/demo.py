"""The side-by-side on bundled digits that `make demo` runs: four networks, the same number of updates, two cores.

Each network is trained by a process of its own with the command that a user would type, so that the demo is also an
example: its runs can be evaluated, resumed and predicted with. Interrupted, the demo goes on where its runs stopped.
"""

import json
import os
import shlex
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
from auxrnn.data.datasets import count_parts
from auxrnn.errors import RunError, UsageError
from auxrnn.experiments.jobs import Folders, Task
from auxrnn.experiments.remembering import NUM_PICTURES, find_mean_image, keep_reconstructions, measure_split
from auxrnn.experiments.runner import Display, Runner
from auxrnn.presets import LEARNING, METHOD
from auxrnn.report.pages import DemoErrors, DemoFacts, DemoRow, write_demo_page
from auxrnn.report.records import Reconstructions, read_events

WINDOW = 28
PRETRAIN_STEPS, TRAIN_STEPS, SMOKE_STEPS = 1200, 2800, 4
NUM_EVALUATIONS = 20
# The anchors of the pictures: from inside the digit to the end of its last row.
FIRST_ANCHOR, LAST_ANCHOR = 111, 153


# Title, description, objective and supervised window of each; the slowest first, so that no core waits at the end.
SYSTEMS: dict[str, tuple[str, str, str, Window]] = {
    "reconstruct": ("r-LSTM", "also learns to reconstruct what it read before random anchors", "reconstruct", WINDOW),
    "predict": ("p-LSTM", "also learns to predict what comes after random anchors", "predict", WINDOW),
    "lstm_full": ("LSTM, full", "gradients through the whole sequence", "none", "full"),
    "lstm_truncated": ("LSTM, truncated", "gradients through the last steps only", "none", WINDOW),
}
SHOWN = ("lstm_full", "lstm_truncated", "reconstruct", "predict")
SETTINGS = {
    **LEARNING,
    **METHOD,
    "data": "digits",
    "hidden_size": 64,
    "embedding_size": 16,
    "head_size": 128,
    "decoder_layers": 1,
    "drop_connect": 0.0,
    "segment_length": 84,
    "auxiliary_window": WINDOW,
    # The last 1200 updates feed the decoder nothing but its own output, as the pictures do.
    "sampling_steps": 2800,
    "batch_size": 32,
    "warmup_steps": 50,
    "label_smoothing": 0.1,
    "threads": 1,
    "checkpoint_every": 200,
    "log_every": 20,
}


class DemoResult(NamedTuple):
    """What the demo found."""

    rows: list[DemoRow]
    errors: DemoErrors
    page: Path


def configs(*, seed: int, is_smoke: bool) -> dict[str, RunConfig]:
    """Return the four runs, which differ only in objective and windows; all have the same number of updates."""
    first, train = (SMOKE_STEPS, SMOKE_STEPS) if is_smoke else (PRETRAIN_STEPS, TRAIN_STEPS)
    shared = SETTINGS | {"seed": seed, "evaluate_every": max(1, (first + train) // NUM_EVALUATIONS)}
    planned = {}
    for name, (_, _, objective, window) in SYSTEMS.items():
        pretrain_steps = 0 if objective == "none" else first
        steps = {"pretrain_steps": pretrain_steps, "train_steps": first + train - pretrain_steps}
        planned[name] = unflatten(shared | steps | {"objective": objective, "supervised_window": window})
    return planned


def run(folder: Path, *, seed: int, is_smoke: bool, console: Console) -> DemoResult:
    """Train what is not trained yet, and write the page; a finished demo in the folder is shown again."""
    planned = configs(seed=seed, is_smoke=is_smoke)
    for name, config in planned.items():
        if (folder / name / runs.CONFIG).exists() and runs.read_config(folder / name) != runs.settle(config):
            raise UsageError(f"{folder} holds a demo with other settings; choose another --out or remove that folder")
    if not all(runs.is_finished(folder / name) for name in planned):
        _train_all(folder, planned, console)
    rows, facts = [_make_row(folder, name, planned[name]) for name in SHOWN], _find_facts(folder, planned)
    shown, errors = _keep_memory(folder)
    page = write_demo_page(folder, rows=rows, facts=facts, reconstructions=shown, errors=errors)
    return DemoResult(rows, errors, page)


def _train_all(folder: Path, planned: Mapping[str, RunConfig], console: Console) -> None:
    """Train the runs side by side, as many at a time as there are cores."""
    tasks = [Task(name, config) for name, config in planned.items()]
    folders, workers = Folders(folder, folder), os.cpu_count() or 1
    console.print(f"training {', '.join(planned)}, {workers} at a time", highlight=False)
    with ThreadPoolExecutor(workers) as executor:
        runner = Runner(folders, executor, workers=workers, display=Display(tasks, folders, console))
        failures = runner.run(tasks)
    if failures:
        name, reason = next(iter(failures.items()))
        raise RunError(f"training {name} failed ({reason}); {folder / name}.log has everything it said")


def _keep_memory(folder: Path) -> tuple[Reconstructions, DemoErrors]:
    """Keep and return what r-LSTM rebuilds of some test digits, and how well it does that on them and on all."""
    run_folder = folder / "reconstruct"
    test = runs.load_split(run_folder, "test")
    mean_image_T = find_mean_image(runs.load_split(run_folder, "train"))
    anchor_K = torch.linspace(FIRST_ANCHOR, LAST_ANCHOR, NUM_PICTURES).long()
    shown = keep_reconstructions(run_folder, test, anchor_K, path=folder / "reconstructions.npz")
    on_test = measure_split(run_folder, test, anchor_K, mean_image_T=mean_image_T)
    return shown, DemoErrors(shown.measure(mean_image_T), on_test)


def _make_row(folder: Path, name: str, config: RunConfig) -> DemoRow:
    (title, description, _, window), schedule = SYSTEMS[name], config.schedule
    evaluations = [event for event in read_events(folder / name) if event["event"] == "evaluation"]
    return DemoRow(
        name=name,
        title=title,
        description=description,
        window=window,
        pretrain_steps=schedule.pretrain_steps or 0,
        train_steps=schedule.train_steps or 0,
        curve={event["total_step"]: event["test_accuracy"] for event in evaluations if "test_accuracy" in event},
        seconds=evaluations[-1]["seconds"],
    )


def _find_facts(folder: Path, planned: Mapping[str, RunConfig]) -> DemoFacts:
    config = planned["reconstruct"]
    dataset = datasets.load(config.data)
    environment = json.loads((folder / "reconstruct" / "environment.json").read_text())
    parts = count_parts(dataset.table)
    return DemoFacts(
        title="What an auxiliary loss does for a short memory",
        dataset="scikit-learn's handwritten digits, 8x8 on a blank 14x14 canvas",
        train_examples=parts["train"],
        test_examples=parts["test"],
        num_classes=len(dataset.facts.class_names),
        sequence_length=int(np.diff(dataset.flat.begin_N1).max()),
        seed=config.seed,
        versions=[*environment["versions"].items(), ("python", environment["python"])],
        command=f"auxrnn demo --seed {config.seed}",
        run_commands=[f"auxrnn train {shlex.join(to_flags(planned[name]))}" for name in SHOWN],
    )
