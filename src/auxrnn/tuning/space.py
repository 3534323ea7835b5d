"""What a study searches: the settings that matter, in ranges around where it starts and no wider than the data."""

from collections.abc import Collection, Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from auxrnn.config import Objective, RunConfig, Window, flatten
from auxrnn.presets import AUXILIARY, PRESETS, PRETRAINED_MODELS

Space = Mapping[str, BaseDistribution]
OBJECTIVES: tuple[Objective, ...] = ("none", "reconstruct", "predict")
READOUTS = ("last", "mean")
# Gates that start at zero forget at once: on long sequences that wastes a trial (docs/notebook.md).
GATE_INITS = ("forget-one", "chrono", "uniform")
SIZES, WINDOWS = (0.5, 1, 2), (0.25, 0.5, 1, 2)
"""What a size, and a number of steps, is multiplied by."""
RATES, WEIGHTS = (1 / 16, 4), (1 / 10, 3)
"""The ends of the ranges of the learning rate and of the auxiliary weight, as factors."""


def find_space(config: RunConfig, *, fixed: Collection[str], longest: int) -> Space:
    """Return the settings to search around a planned config, without those that are fixed or have no effect.

    All of them are drawn in every trial, also those of an auxiliary loss that a trial does not have: importances
    compare trials that have the same settings.
    """
    model, values = config.model, flatten(config)
    choices: dict[str, Collection[Any]] = {
        "objective": OBJECTIVES,
        "readout": READOUTS,
        "gate_init": {*GATE_INITS, model.gate_init},
        "hidden_size": {max(1, int(factor * model.hidden_size)) for factor in SIZES},
    }
    for name in ("supervised_window", "auxiliary_window", "segment_length"):
        if values[name] != "exact":
            choices[name] = find_windows(values[name], longest)
    space: dict[str, BaseDistribution] = {
        name: CategoricalDistribution(sorted(found, key=lambda value: (isinstance(value, str), value)))
        for name, found in choices.items()
        if len(found) > 1
    }
    for name, factors in {"lr": RATES, "auxiliary_weight": WEIGHTS}.items():
        if values[name] > 0:
            low, high = (factor * values[name] for factor in factors)
            space[name] = FloatDistribution(low, high, log=True)
    left_out = {*fixed, *_without_effect(config, "objective" in fixed)}
    return {name: found for name, found in sorted(space.items()) if name not in left_out}


def _without_effect(config: RunConfig, has_objective: bool) -> set[str]:
    """Return what must not, or need not, be searched: options of other models, and what belongs to given networks."""
    model = config.model.model
    options = {"lr", *PRESETS[model].options}
    found = set(flatten(config)) - options
    if model in PRETRAINED_MODELS or config.model.tie_decoder:
        found.add("objective")
    if "objective" not in options or (has_objective and config.loss.objective == "none"):
        found |= {"objective", *AUXILIARY}
    if not config.schedule.joint:
        found.add("auxiliary_weight")
    if config.init_from is not None:
        found |= {"hidden_size", "gate_init"}
    return found


def find_windows(start: Window, longest: int) -> set[Window]:
    """Return numbers of steps around a start, none longer than the data; full stands for all that reach its end."""
    steps = longest if start == "full" else start
    found = {max(1, int(factor * steps)) for factor in WINDOWS}
    return {"full" if window >= longest else window for window in found}


def find_start(config: RunConfig, space: Space, longest: int) -> dict[str, Any]:
    """Return the values in a space that the config itself has."""
    values = {name: flatten(config)[name] for name in space}
    windows = values.keys() & {"supervised_window", "auxiliary_window", "segment_length"}
    return values | {name: "full" for name in windows if values[name] != "full" and values[name] >= longest}
