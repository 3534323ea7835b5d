"""A first phase trained once and used by many runs: it knows nothing of labels, so what comes after may differ.

A run that adopts the first phase of another goes on from its last checkpoint as if it had been stopped there, and ends
with the same weights, byte for byte, as a run that pretrained by itself.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from auxrnn import runs
from auxrnn.config import RunConfig, flatten
from auxrnn.errors import UsageError
from auxrnn.files import write_aside
from auxrnn.training.checkpoint import newest_path

# What begins with the labels, and what it is set to in a run that ends before them.
OF_LABELS: dict[str, Any] = {
    "label_fraction": 1.0,
    "supervised_window": "full",
    "train_steps": 0,
    "train_epochs": None,
    "joint": True,
    "lr_halving_epochs": 300.0,
    "auxiliary_weight": 1.0,
    "label_smoothing": 0.0,
}
# What changes no weight: where things lie, and how often somebody looks.
WITHOUT_EFFECT = ("data_dir", "threads", "device", "evaluate_every", "checkpoint_every", "log_every")


def first_phase(config: RunConfig) -> RunConfig | None:
    """Return the run that is the pretraining of this one and nothing else; None where there is none."""
    loss, schedule = config.loss, config.schedule
    if loss.objective == "none" or not (schedule.pretrain_steps or schedule.pretrain_epochs):
        return None
    return replace(
        config,
        data=replace(config.data, label_fraction=OF_LABELS["label_fraction"]),
        loss=replace(loss, **{name: value for name, value in OF_LABELS.items() if name in vars(loss)}),
        schedule=replace(schedule, **{name: value for name, value in OF_LABELS.items() if name in vars(schedule)}),
    )


def check_fits(config: RunConfig, source: Path) -> None:
    """Refuse a run whose pretraining is not that of this config, or that is not finished, or went beyond it."""
    wanted, found = first_phase(config), runs.read_config(source)
    if wanted is None:
        raise UsageError("--pretrained is for a run with pretraining; give --pretrain-steps and an objective")
    if found.schedule.train_steps != 0 or not runs.is_finished(source):
        raise UsageError(f"{source} is not a finished pretraining; make one with --train-steps 0")
    ours, theirs = flatten(wanted), flatten(replace(first_phase(found) or found, seed=found.seed))
    for name, value in ours.items():
        if name not in WITHOUT_EFFECT and value != theirs[name]:
            raise UsageError(
                f"{name} is {value} here and {theirs[name]} in {source}; a first phase can only be shared by runs that"
                " pretrain alike"
            )


def adopt(folder: Path, source: Path) -> None:
    """Put the end of another run's pretraining into the folder of a run to be, as its own newest checkpoint."""
    tensors = newest_path(source / "checkpoints")
    assert tensors is not None, "a finished run has a checkpoint"
    write_aside(folder / "metrics.jsonl", (source / "metrics.jsonl").read_bytes())
    # The values come last: without them the tensors do not count, and the run would pretrain by itself.
    for path in (tensors, tensors.with_suffix(".json")):
        write_aside(folder / "checkpoints" / path.name, path.read_bytes())
