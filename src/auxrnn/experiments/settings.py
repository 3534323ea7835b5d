"""What the runs of an experiment are set to: what all of them share, and what makes each row what it is."""

from collections.abc import Iterable, Sequence
from typing import Any

from auxrnn.experiments.jobs import UNTOLD, Job
from auxrnn.plain_config import flatten, unflatten
from auxrnn.presets import AUXILIARY, MODEL_OPTIONS, PRESETS

ALWAYS_TOLD = ("hidden_size", "batch_size", "optimizer", "lr")
"""Said even where they are as published."""


def describe_settings(jobs: Sequence[Job]) -> list[tuple[str, str]]:
    """Give names and values: what all runs share that it means something to, if not as published; then what differs.

    Where the runs of a row differ among themselves, by dataset for instance, all their values are given.
    """
    published = flatten(unflatten({"data": ""}))
    values = {job: _tell(job) for job in jobs}
    found = {name: _find_all(name, values.values()) for name in published}
    shared = {name for name, given in found.items() if len(given) == 1}
    lines = [
        (_say(name), found[name][0])
        for name in published
        if name in shared and (found[name] != [str(published[name])] or name in ALWAYS_TOLD)
    ]
    for row in dict.fromkeys(job.row for job in jobs):
        own = [values[job] for job in jobs if job.row == row]
        varying = {name: _find_all(name, own) for name in published if name not in shared}
        told = [f"{_say(name)} {' / '.join(given)}" for name, given in varying.items() if given]
        lines += [(row, ", ".join(told))] if told else []
    return lines


def _tell(job: Job) -> dict[str, Any]:
    """Give the values that mean something to a job: a count of a dataset has those of its data only."""
    if job.kind == "data":
        return {name: value for name, value in vars(job.config.data).items() if name not in UNTOLD}
    model, objective = job.config.model.model, job.config.loss.objective
    meaningless = MODEL_OPTIONS - set(PRESETS[model].options) | set(AUXILIARY if objective == "none" else ())
    return {name: value for name, value in flatten(job.config).items() if name not in {*UNTOLD, *meaningless}}


def _find_all(name: str, values: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(of[name]) for of in values if of.get(name) is not None))


def _say(name: str) -> str:
    return name.replace("_", " ")
