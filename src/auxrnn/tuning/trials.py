"""One trial: an `auxrnn train` process whose validation curve is watched, and which is stopped if it does badly.

A trial needs nothing but its words and the curves of others, so it may run in a thread here or on another machine.
"""

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import optuna
from optuna.trial import create_trial

from auxrnn.files import is_locked
from auxrnn.report.records import read_events
from auxrnn.saved import CONFIG, is_finished, read_config

optuna.logging.set_verbosity(optuna.logging.WARNING)

POLL_SECONDS = 0.2
TENTHS = 10
PRUNER = optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=3)
"""Stops what is worse than the median of the finished trials at the same point; not in the first tenths."""
STOP = threading.Event()
"""Set when all processes are to end; a training then writes its checkpoint first."""

Curve = Mapping[int, float]
"""The best accuracy on the validation split by tenths of the training with labels. Pretraining counts as nothing:
whether it pays is seen when as much is learned from labels."""
State = Literal["complete", "pruned", "failed", "stopped"]


class TrialResult(NamedTuple):
    """How a trial ended."""

    state: State
    curve: Curve
    seconds: float
    """What it took, with the start of its process; of a trial that was continued the last part."""
    accuracy: float = 0.0
    """In percent, on the validation split, of the weights that are kept."""
    loss: float = 0.0
    """Their cross-entropy there, which decides between equal accuracies."""
    test_accuracy: float | None = None
    """None unless it was asked for."""
    reason: str = ""
    """Why it failed."""


def run_trial(words: Sequence[str], folder: Path, rivals: Sequence[Curve], *, is_kept: bool = False) -> TrialResult:
    """Train with `auxrnn train WORDS` to the end, or from where a killed process left the folder.

    A run that does worse than most of its `rivals` did at the same point is stopped. The folder is removed at the end,
    unless it is kept; on a machine that does not have the folder above it, a temporary one takes its place.
    """
    if not folder.parent.is_dir():
        with tempfile.TemporaryDirectory() as elsewhere:
            return run_trial(words, Path(elsewhere) / folder.name, rivals)
    began, log = time.monotonic(), folder.with_suffix(".log")
    while True:
        # Left by a study that was killed, a training goes on alone.
        while folder.is_dir() and is_locked(folder) and not STOP.wait(POLL_SECONDS):
            pass
        state = _run(words, folder, log, rivals)
        if state != "failed" or not (folder.is_dir() and is_locked(folder)):
            break
    result = _collect(folder, log, state, time.monotonic() - began)
    if state != "stopped" and not is_kept:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _run(words: Sequence[str], folder: Path, log: Path, rivals: Sequence[Curve]) -> State:
    has_begun = (folder / CONFIG).exists()
    command = ["resume", str(folder)] if has_begun else ["train", *words, "--out", str(folder)]
    curve: Curve = {}
    with (
        log.open("ab") as said,
        subprocess.Popen([sys.executable, "-m", "auxrnn", *command], stdout=said, stderr=said) as process,  # noqa: S603 - our own command
    ):
        while process.poll() is None:
            if STOP.wait(POLL_SECONDS):
                process.terminate()
                process.wait()
                return "complete" if is_finished(folder) else "stopped"
            before, curve = curve, read_curve(folder)
            if len(curve) > len(before) and is_hopeless(curve, rivals):
                process.terminate()
                process.wait()
                return "pruned"
    return "complete" if process.returncode == 0 else "failed"


def _collect(folder: Path, log: Path, state: State, seconds: float) -> TrialResult:
    curve = read_curve(folder)
    if state != "complete":
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        return TrialResult(state, curve, seconds, reason=last[0].removeprefix("auxrnn: ") if state == "failed" else "")
    (result,) = [event for event in read_events(folder) if event["event"] == "result"]
    scores = (result["validation_accuracy"], result["validation_loss"], result.get("test_accuracy"))
    return TrialResult(state, curve, seconds, *scores)


def read_curve(folder: Path) -> Curve:
    """Return the validation curve of a run so far; empty before its first tenth with labels."""
    if not (folder / CONFIG).exists():
        return {}
    num_steps = read_config(folder).schedule.train_steps
    scored = [event for event in read_events(folder) if "validation_accuracy" in event and event["event"] != "result"]
    assert num_steps is not None, "its length was planned"
    reached = TENTHS * scored[-1]["step"] // num_steps if scored else 0
    return {
        tenth: max(event["validation_accuracy"] for event in scored if TENTHS * event["step"] <= tenth * num_steps)
        for tenth in range(1, reached + 1)
    }


def is_hopeless(curve: Curve, rivals: Sequence[Curve]) -> bool:
    """Return whether a curve should be given up beside those of trials that were finished."""
    study = optuna.create_study(direction="maximize", pruner=PRUNER)
    study.add_trials([create_trial(value=max(each.values()), intermediate_values=dict(each)) for each in rivals])
    trial = study.ask()
    for tenth, accuracy in curve.items():
        trial.report(accuracy, tenth)
    return bool(trial.should_prune())
