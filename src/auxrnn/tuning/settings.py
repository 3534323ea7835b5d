"""From the settings that were asked for to a study, and from a study to a file of settings for `auxrnn train`."""

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    distribution_to_json,
    json_to_distribution,
)
from optuna.trial import FrozenTrial, TrialState

from auxrnn.config import FIELDS, RunConfig, change, flatten, unflatten
from auxrnn.data.datasets import Dataset
from auxrnn.data.sequences import NO_LABEL
from auxrnn.errors import RunError, UsageError
from auxrnn.planning import plan
from auxrnn.presets import AUXILIARY, RecipeName, find_recipe
from auxrnn.pretraining import WITHOUT_EFFECT
from auxrnn.report.records import read_events
from auxrnn.report.results import describe_number
from auxrnn.report.tuning_page import State, StudySummary, TestLook, TriedSettings
from auxrnn.tuning.space import find_space, find_start
from auxrnn.tuning.study import BEST, NUM_LENGTHS, Tuning

LENGTHS = ("pretrain_steps", "pretrain_epochs", "train_steps", "train_epochs")
"""What the minutes decide."""
MACHINE = ("threads", "device")


def begin(
    study: optuna.Study,
    dataset: Dataset,
    asked: RunConfig,
    *,
    fixed: Collection[str],
    folder: Path,
    minutes: float,
    say: Callable[[str], None],
) -> Tuning:
    """Plan a new study, or take up one of the same settings and data where it stands.

    The first trial has the defaults: what `auxrnn train` would choose in the time of a trial. What it chooses from the
    data stays the same in all trials, and what is searched is searched around it.
    """
    wanted = _describe(asked, fixed)
    if "asked" not in study.user_attrs:
        _plan(study, dataset, asked, fixed=fixed, seconds=60 * minutes / NUM_LENGTHS, say=say)
        # What comes last makes it a study: one that was killed before is planned anew.
        study.set_user_attr("asked", wanted)
    kept = study.user_attrs
    if kept.get("asked") != wanted:
        names = sorted(name for name in wanted if kept["asked"].get(name) != wanted[name])
        raise UsageError(f"{folder} holds a study with other settings ({', '.join(names)}); choose another --out")
    if kept["checksum"] != dataset.checksum:
        raise RunError(
            f"{dataset.name} has changed since this study began; put it back as it was, or choose another --out"
        )
    base = unflatten(kept["base"] | {name: flatten(asked)[name] for name in MACHINE})
    space = {name: json_to_distribution(text) for name, text in kept["space"].items()}
    return Tuning(study, folder, base, space, kept["trial_seconds"], minutes)


def _describe(asked: RunConfig, fixed: Collection[str]) -> dict[str, Any]:
    """Return what makes it the same study, as plain values."""
    values = {name: value for name, value in flatten(asked).items() if name not in WITHOUT_EFFECT}
    return values | {"fixed": sorted({*fixed} & values.keys())}


def _plan(
    study: optuna.Study,
    dataset: Dataset,
    asked: RunConfig,
    *,
    fixed: Collection[str],
    seconds: float,
    say: Callable[[str], None],
) -> None:
    planned, prepared = plan(asked, dataset, minutes=seconds / 60, say=say)
    if not len(prepared.division.validation):
        raise UsageError("tuning needs a validation split; give --validation-fraction, or more examples with labels")
    values = flatten(asked)
    # How long a trial is follows from its own settings.
    still_open = dict.fromkeys(LENGTHS) | {"sampling_steps": values["sampling_steps"], "evaluate_every": None}
    base = change(planned, **still_open)
    longest = prepared.card.num_steps
    space = find_space(base, fixed=fixed, longest=longest)
    if not space:
        raise UsageError("every setting is given, so there is nothing to search; leave some out")
    study.enqueue_trial(find_start(base, space, longest), skip_if_exists=True)
    label_N, division = dataset.table.label_N, prepared.division
    sizes = {name: int((label_N[rows] != NO_LABEL).sum()) for name, rows in division._asdict().items()}
    texts = {name: distribution_to_json(found) for name, found in space.items()}
    kept = {"trial_seconds": seconds, "checksum": dataset.checksum, "space": texts, "sizes": sizes}
    for name, value in (kept | {"base": flatten(base)}).items():
        study.set_user_attr(name, value)


def find_settings(asked: RunConfig, recipe: RecipeName, best: FrozenTrial) -> dict[str, Any]:
    """Return what `auxrnn train --config` needs to train with the best settings: those, and what was asked for."""
    model = asked.model.model
    usual = flatten(unflatten({"data": "", "model": model} | find_recipe(recipe, model)))
    values = flatten(asked)
    left_out = {*LENGTHS, *MACHINE, "model", "evaluate_all", "evaluate_test"}
    given = {name: values[name] for name in FIELDS if values[name] != usual[name] and name not in left_out}
    found = {"recipe": recipe, "model": model} | given | best.params
    without = set(AUXILIARY) - {"objective"} if found.get("objective", values["objective"]) == "none" else set()
    return {name: value for name, value in found.items() if value is not None and name not in without}


def to_toml(settings: dict[str, Any], *, comments: Collection[str]) -> str:
    """Return settings as a TOML file with keys named like the flags, under some lines of comment."""
    lines = [f"# {comment}" for comment in comments]
    return (
        "\n".join([*lines, *(f"{name.replace('_', '-')} = {_to_toml(value)}" for name, value in settings.items())])
        + "\n"
    )


def _to_toml(value: Any) -> str:
    # A text of JSON is one of TOML as well, as long as its letters stay what they are.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def summarize(tuning: Tuning) -> StudySummary:
    """Return what the page of a study says; it must have a finished trial."""
    trials = {trial.number: _summarize_trial(tuning, trial) for trial in tuning.trials}
    best = tuning.find_winner()
    assert best is not None
    look = None
    if tuning.looks and tuning.looks[-1]["test_accuracy"] is not None:
        seconds = read_events(tuning.folder / BEST)[-1]["seconds"]
        look = TestLook(tuning.looks[-1]["test_accuracy"], tuning.known["sizes"]["test"], seconds)
    return StudySummary(
        data=Path(tuning.base.data.data).name,
        trials=list(trials.values()),
        best=trials[best[0].number],
        space={name: _describe_range(found) for name, found in tuning.space.items()},
        ranges={name: (d.low, d.high) for name, d in tuning.space.items() if isinstance(d, FloatDistribution)},
        importances=tuning.rank_settings(),
        trial_seconds=tuning.trial_seconds,
        seconds=60 * tuning.minutes - tuning.seconds_left,
        look=look,
        num_looks=len(tuning.looks),
    )


def _summarize_trial(tuning: Tuning, trial: FrozenTrial) -> TriedSettings:
    states: dict[TrialState, State] = {
        TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"
    }  # fmt: skip
    state = states.get(trial.state, "unfinished")
    accuracy = trial.values[0] if state == "complete" else None
    again = sorted(tuning.repeats(trial.number).items())[: tuning.num_repeats]
    repeats = [kept[0] for _, kept in again if kept]
    curve, reason = trial.intermediate_values, trial.user_attrs.get("reason", "")
    is_plain = trial.params.get("objective", tuning.base.loss.objective) == "none"
    without = set(AUXILIARY) - {"objective"} if is_plain else set()
    settings = {name: None if name in without else value for name, value in trial.params.items()}
    return TriedSettings(trial.number, state, settings, curve, accuracy, repeats, reason)


def _describe_range(found: BaseDistribution) -> str:
    if isinstance(found, FloatDistribution):
        return f"{describe_number(found.low)} to {describe_number(found.high)}"
    assert isinstance(found, CategoricalDistribution)
    return ", ".join(map(str, found.choices))
