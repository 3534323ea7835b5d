"""The validation curve of a trial, how the trial ended, and when it is given up."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import optuna
from optuna.trial import create_trial

from auxrnn.saved import CONFIG, read_config

optuna.logging.set_verbosity(optuna.logging.WARNING)

TENTHS = 10
PRUNER = optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=3)
"""Stops what is worse than the median of the finished trials at the same point; not in the first tenths."""

Curve = Mapping[int, float]
"""The best accuracy on the validation split by tenths of the training with labels. Pretraining counts as nothing:
whether it pays is seen when as much is learned from labels."""
State = Literal["complete", "pruned", "failed"]


class TrialResult(NamedTuple):
    """How a training ended."""

    state: State
    curve: Curve
    accuracy: float = 0.0
    """In percent, on the validation split, of the weights that are kept."""
    loss: float = 0.0
    """Their cross-entropy there, which decides between equal accuracies."""
    test_accuracy: float | None = None
    """None unless it was asked for."""
    reason: str = ""
    """Why it failed."""


def read_result(events: Sequence[Mapping[str, Any]], curve: Curve) -> TrialResult:
    """Return how a training did that has ended."""
    (result,) = [event for event in events if event["event"] == "result"]
    scores = (result["validation_accuracy"], result["validation_loss"], result.get("test_accuracy"))
    return TrialResult("complete", curve, *scores)


def count_steps(folder: Path) -> int | None:
    """Return how many updates with labels a run was planned to have; None where it has not begun, or is elsewhere."""
    return read_config(folder).schedule.train_steps if (folder / CONFIG).exists() else None


def find_curve(events: Sequence[Mapping[str, Any]], num_steps: int | None) -> Curve:
    """Return the validation curve of a run so far; empty before its first tenth with labels."""
    scored = [event for event in events if "validation_accuracy" in event and event["event"] != "result"]
    if num_steps is None or not scored:
        return {}
    return {
        tenth: max(event["validation_accuracy"] for event in scored if TENTHS * event["step"] <= tenth * num_steps)
        for tenth in range(1, TENTHS * scored[-1]["step"] // num_steps + 1)
    }


def is_hopeless(curve: Curve, rivals: Sequence[Curve]) -> bool:
    """Return whether a curve should be given up beside those of trials that were finished."""
    study = optuna.create_study(direction="maximize", pruner=PRUNER)
    study.add_trials([create_trial(value=max(each.values()), intermediate_values=dict(each)) for each in rivals])
    trial = study.ask()
    for tenth, accuracy in curve.items():
        trial.report(accuracy, tenth)
    return bool(trial.should_prune())
