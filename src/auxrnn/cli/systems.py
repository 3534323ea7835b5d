"""`auxrnn models` and `auxrnn cost`."""

from typing import Any

import torch

from auxrnn import runs
from auxrnn.build import InputSpec, build_network, count_weights
from auxrnn.cli.options import CostOptions, ModelsOptions
from auxrnn.cli.output import load_data, print_json, say
from auxrnn.config import RunConfig, unflatten
from auxrnn.errors import UsageError
from auxrnn.files import describe_bytes
from auxrnn.planning import plan
from auxrnn.presets import PRESETS, ModelName, name_system
from auxrnn.progress import describe_seconds
from auxrnn.training.cost import (
    estimate_growth,
    estimate_time,
    find_free_memory,
    find_longest,
    measure_step,
    time_step,
)
from auxrnn.training.loop import Session

NAME_WIDTH = 13
SPECS = {"mnist": InputSpec(1, None, 10, 784), "dbpedia": InputSpec(0, 71, 14, 1014)}
LONGEST_STEP = 120.0
"""Seconds; a step that takes longer row by row is not done just to measure it."""


def list_models(options: ModelsOptions) -> int:
    """Print every system that can be trained."""
    rows: dict[str, dict[str, Any]] = {
        name: preset._asdict() | {f"weights_{data}": count(name, spec) for data, spec in SPECS.items()}
        for name, preset in PRESETS.items()
    }
    if options.json:
        print_json(rows)
        return 0
    for name, row in rows.items():
        reads = "characters alone" if row["reads"] == "tokens" else "pixels, numbers and characters"
        on = {"MNIST": row["weights_mnist"], "DBpedia": row["weights_dbpedia"]}
        weights = ", ".join(f"{count:,} on {data}" for data, count in on.items() if count is not None)
        print(f"{name:<{NAME_WIDTH}}{row['title']} ({row['paper']})")
        for line in (row["summary"], f"weights: {weights}; reads {reads}"):
            print(" " * NAME_WIDTH + line)
    return 0


def count(model: ModelName, spec: InputSpec, **values: Any) -> int | None:
    """Count the weights of a system for some data, without making them; None where it does not read such steps."""
    if spec.vocabulary_size is None and PRESETS[model].reads == "tokens":
        return None
    with torch.device("meta"):
        return count_weights(build_network(unflatten({"data": "", "model": model} | values), spec))


def cost(options: CostOptions) -> int:
    """Print what a training would take."""
    if options.memory is not None and not 0 < options.memory < float("inf"):
        raise UsageError(f"--memory is {options.memory}; it must be a number of gigabytes above 0")
    config = runs.settle(options.run)
    dataset = load_data(config)
    config, prepared = plan(config, dataset, minutes=None, say=say)
    session = runs.open_session(config, dataset, prepared, None)
    free = find_free_memory(session.network.device)
    given = free if options.memory is None else int(options.memory * 1e9)
    facts = _find_costs(config, session, given=given, free=free)
    if options.json:
        print_json(facts)
    else:
        _print_costs(facts)
    return 0


def _find_costs(config: RunConfig, session: Session, *, given: int, free: int) -> dict[str, Any]:
    rows, longest = session.batches.batch_size, find_longest(session)
    growth = estimate_growth(session)
    hungriest = next(phase for phase in session.phases if phase.name == growth.phase)
    has_attention = "num_heads" in PRESETS[config.model.model].options
    is_padded = "pad_to" in PRESETS[config.model.model].options
    unfused = estimate_growth(session, is_fused=False) if has_attention else None
    estimated = growth.bytes_for(rows, longest)
    measured = None
    if estimated < free and time_step(session, hungriest, total_step=0, most_rows=1) < LONGEST_STEP:
        measured = measure_step(session, hungriest)
    estimate = estimate_time(session)
    return {
        "system": name_system(config.model.model, config.loss.objective),
        "weights": count_weights(session.network),
        "batch_size": rows,
        "steps": longest,
        "estimated_bytes": estimated,
        "measured_bytes": measured,
        "unfused_bytes": None if unfused is None else unfused.bytes_for(rows, longest),
        "seconds_per_update": estimate.seconds_per_update,
        "training_seconds": estimate.seconds,
        "updates": sum(phase.num_steps for phase in session.phases),
        "memory_bytes": given,
        "pad_to": config.baseline.pad_to if is_padded else None,
        "longest_steps": None if is_padded else growth.longest(given, rows),
        "largest_batch": growth.most_rows(given, longest),
        "unfused_longest_steps": None if unfused is None else unfused.longest(given, rows),
    }


def _print_costs(facts: dict[str, Any]) -> None:
    measured, given = facts["measured_bytes"], facts["memory_bytes"]
    lines = {
        "system": f"{facts['system']}, {facts['weights']:,} weights",
        "batch": f"{facts['batch_size']} sequences of up to {facts['steps']:,} steps",
        "memory of a step": f"estimated {describe_bytes(facts['estimated_bytes'])}, "
        + ("not measured: too large or too slow here" if measured is None else f"measured {describe_bytes(measured)}"),
    }
    if facts["unfused_bytes"] is not None:
        lines["unfused attention"] = (
            f"would need {describe_bytes(facts['unfused_bytes'])};"
            f" {describe_bytes(given)} hold {facts['unfused_longest_steps']:,} steps"
        )
    for phase, seconds in facts["seconds_per_update"].items():
        lines[f"time of a step, {phase}"] = f"{seconds:.2g} seconds" if seconds < 10 else describe_seconds(seconds)
    lines["whole training"] = f"{facts['updates']:,} updates, {describe_seconds(facts['training_seconds'])}"
    steps, rows = facts["longest_steps"], facts["largest_batch"]
    longest = f"texts of any length (cut to {facts['pad_to']:,})" if steps is None else f"{steps:,} steps"
    lines[f"in {describe_bytes(given)} fit"] = f"{longest} at this batch size, or batches of {rows:,}"
    for name, text in lines.items():
        print(f"{name:<28}{text}")
