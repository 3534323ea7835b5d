"""The side-by-side on bundled digits that `make demo` runs: four networks, the same number of updates, two cores.

Each network is trained by a process of its own with the command that a user would type, so that the demo is also an
example: its runs can be evaluated, resumed and used for prediction. Interrupted runs resume.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from rich.console import Console

from auxrnn import runs, saved
from auxrnn.config import RunConfig, Window, unflatten
from auxrnn.errors import RunError, UsageError
from auxrnn.executors.local import LocalExecutor
from auxrnn.executors.tasks import Task
from auxrnn.experiments.jobs import Folders
from auxrnn.experiments.remembering import NUM_PICTURES, find_mean_image, keep_reconstructions, measure_split
from auxrnn.experiments.runner import Display, Runner
from auxrnn.presets import LEARNING, METHOD
from auxrnn.report.pages import DemoFacts, DemoRow, write_demo_page
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


def run(folder: Path, *, seed: int, is_smoke: bool, console: Console) -> tuple[list[DemoRow], DemoFacts, Path]:
    """Train what is not trained yet and write the page; return what it shows and its path."""
    planned = configs(seed=seed, is_smoke=is_smoke)
    for name, config in planned.items():
        if (folder / name / saved.CONFIG).exists() and saved.read_config(folder / name) != runs.settle(config):
            raise UsageError(f"{folder} holds a demo with other settings; choose another --out or remove that folder")
    if not all(saved.is_finished(folder / name) for name in planned):
        _train_all(folder, planned, console)
    rows = [_make_row(folder, name, planned[name]) for name in SHOWN]
    facts, shown = _find_facts(folder)
    return rows, facts, write_demo_page(folder, rows=rows, facts=facts, reconstructions=shown)


def _train_all(folder: Path, planned: Mapping[str, RunConfig], console: Console) -> None:
    """Train the runs side by side, as many at a time as there are cores."""
    tasks = [Task(name, config) for name, config in planned.items()]
    folders, workers = Folders(folder, folder), os.cpu_count() or 1
    console.print(f"training {', '.join(planned)}, {workers} at a time", highlight=False)
    with LocalExecutor(folder, workers=workers) as executor:
        failures = Runner(folders, executor, Display(tasks, executor, console)).run(tasks)
    if failures:
        name, reason = next(iter(failures.items()))
        raise RunError(f"training {name} failed ({reason}); {folder / name}.log has everything it said")


def _make_row(folder: Path, name: str, config: RunConfig) -> DemoRow:
    title, description, _, _ = SYSTEMS[name]
    evaluations = [event for event in read_events(folder / name) if event["event"] == "evaluation"]
    curve = {event["total_step"]: event["test_accuracy"] for event in evaluations if "test_accuracy" in event}
    return DemoRow(name, title, description, config, curve, seconds=evaluations[-1]["seconds"])


def _find_facts(folder: Path) -> tuple[DemoFacts, Reconstructions]:
    """Return the facts of the page and what the r-LSTM reconstructs of some test digits, which is also kept."""
    run_folder = folder / "reconstruct"
    train, test = runs.load_split(run_folder, "train"), runs.load_split(run_folder, "test")
    mean_image_T, card = find_mean_image(train), saved.read_card(run_folder)
    environment = json.loads((run_folder / "environment.json").read_text())
    anchor_K = torch.linspace(FIRST_ANCHOR, LAST_ANCHOR, NUM_PICTURES).long()
    shown = keep_reconstructions(run_folder, test, anchor_K, path=folder / "reconstructions.npz")
    facts = DemoFacts(
        train_examples=train.num_examples,
        test_examples=test.num_examples,
        num_classes=len(card.class_names),
        sequence_length=card.num_steps,
        versions=[*environment["versions"].items(), ("python", environment["python"])],
        shown_errors=shown.measure(mean_image_T),
        test_errors=measure_split(run_folder, test, anchor_K, mean_image_T=mean_image_T),
    )
    return facts, shown
