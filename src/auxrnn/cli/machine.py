"""`auxrnn models`, `cost`, `bench` and `info`: what can be trained, what it takes, and what this machine offers."""

import math
from typing import TYPE_CHECKING, Any

from auxrnn.cli.commands import MACHINE, PREPARE, ConfigOption, Json, RecipeOption, command, load_data, print_json, say
from auxrnn.config import RunConfig, unflatten
from auxrnn.errors import UsageError
from auxrnn.presets import DEFAULT_RECIPE, PRESETS, ModelName, name_system

if TYPE_CHECKING:
    from auxrnn.training.loop import Session

SPECS = {"mnist": (1, None, 10, 784), "dbpedia": (0, 71, 14, 1014)}
"""Input size, vocabulary, classes and steps of the data that weights are counted for."""
LONGEST_STEP = 120.0
"""Seconds; a step that takes longer row by row is not done just to measure it."""


@command(PREPARE)
def models(*, json: Json = False) -> None:
    """List every system that `auxrnn train --model` takes.

    Shows its paper, its number of weights, and what it reads. Weights are counted at the published settings, for
    MNIST's pixels and DBpedia's characters. `auxrnn train --help --model NAME` shows these settings as the defaults
    of all options.

    Examples:
        auxrnn models
    """
    rows: dict[str, dict[str, Any]] = {
        name: preset._asdict() | {f"weights_{data}": count(name, spec) for data, spec in SPECS.items()}
        for name, preset in PRESETS.items()
    }
    if json:
        print_json(rows)
        return
    for model, row in rows.items():
        reads = "characters alone" if row["reads"] == "tokens" else "pixels, numbers and characters"
        on = {"MNIST": row["weights_mnist"], "DBpedia": row["weights_dbpedia"]}
        weights_on = ", ".join(f"{weights:,} on {data}" for data, weights in on.items() if weights is not None)
        lines = (f"{row['title']} ({row['paper']})", row["summary"], f"weights: {weights_on}; reads {reads}")
        for name, line in zip((model, "", ""), lines, strict=True):
            print(f"{name:<13}{line}")


def count(model: ModelName, spec: tuple[int, int | None, int, int], **values: Any) -> int | None:
    """Count the weights of a system for some data, without making them; None where it does not read such steps."""
    import torch

    from auxrnn.build import InputSpec, build_network, count_weights

    if spec[1] is None and PRESETS[model].reads == "tokens":
        return None
    with torch.device("meta"):
        return count_weights(build_network(unflatten({"data": "", "model": model} | values), InputSpec(*spec)))


@command(PREPARE, has_layers=True)
def cost(
    run: RunConfig,
    *,
    memory: float | None = None,
    _recipe: RecipeOption = DEFAULT_RECIPE,
    _config: ConfigOption = None,
    json: Json = False,
) -> None:
    """Estimate memory and time of a training before it begins.

    Also shows the number of weights and what fits into memory. Takes the options of `auxrnn train`. Memory is
    estimated from a few short rows, and measured in one step on the longest sequences if that fits. For attention it
    also says what a matrix of all steps by all steps would take.

    Args:
        memory: Gigabytes that a training step may use (default: what is free here).

    Examples:
        auxrnn cost mnist --model transformer
        auxrnn cost needle --length 16384 --model dmca --memory 16
    """
    from auxrnn import planning, runs

    if memory is not None and not 0 < memory < math.inf:
        raise UsageError(f"--memory is {memory}; it must be a number of gigabytes above 0")
    config = runs.settle(run)
    dataset = load_data(config.data)
    config, prepared = planning.plan(config, dataset, minutes=None, say=say)
    facts = _find_costs(runs.open_session(config, dataset, prepared, None), memory)
    (print_json if json else _print_costs)(facts)


def _find_costs(session: "Session", gigabytes: float | None) -> dict[str, Any]:
    from auxrnn.build import count_weights
    from auxrnn.training import cost

    config, options = session.config, PRESETS[session.config.model.model].options
    free = cost.find_free_memory(session.network.device)
    given = free if gigabytes is None else int(gigabytes * 1e9)
    rows, longest = session.batches.batch_size, cost.find_longest(session)
    growth = cost.estimate_growth(session)
    hungriest = next(phase for phase in session.phases if phase.name == growth.phase)
    unfused = cost.estimate_growth(session, is_fused=False) if "num_heads" in options else None
    estimated = growth.bytes_for(rows, longest)
    measured = None
    if estimated < free and cost.time_step(session, hungriest, total_step=0, most_rows=1) < LONGEST_STEP:
        measured = cost.measure_step(session, hungriest)
    estimate = cost.estimate_time(session)
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
        "pad_to": config.baseline.pad_to if "pad_to" in options else None,
        "longest_steps": None if "pad_to" in options else growth.longest(given, rows),
        "largest_batch": growth.most_rows(given, longest),
        "unfused_longest_steps": None if unfused is None else unfused.longest(given, rows),
    }


def _print_costs(facts: dict[str, Any]) -> None:
    from auxrnn.files import describe_bytes
    from auxrnn.progress import describe_seconds

    estimated, measured, unfused = (facts[f"{kind}_bytes"] for kind in ("estimated", "measured", "unfused"))
    told = "not measured: too large or too slow here" if measured is None else f"measured {describe_bytes(measured)}"
    given = describe_bytes(facts["memory_bytes"])
    lines = {
        "system": f"{facts['system']}, {facts['weights']:,} weights",
        "batch": f"{facts['batch_size']} sequences of up to {facts['steps']:,} steps",
        "memory of a step": f"estimated {describe_bytes(estimated)}, {told}",
    }
    if unfused is not None:
        longest = f"{facts['unfused_longest_steps']:,} steps"
        lines["unfused attention"] = f"would need {describe_bytes(unfused)}; {given} hold {longest}"
    for phase, seconds in facts["seconds_per_update"].items():
        lines[f"time of a step, {phase}"] = f"{seconds:.2g} seconds" if seconds < 10 else describe_seconds(seconds)
    lines["whole training"] = f"{facts['updates']:,} updates, {describe_seconds(facts['training_seconds'])}"
    steps, rows = facts["longest_steps"], facts["largest_batch"]
    longest = f"texts of any length (cut to {facts['pad_to']:,})" if steps is None else f"{steps:,} steps"
    lines[f"in {given} fit"] = f"{longest} at this batch size, or batches of {rows:,}"
    for name, text in lines.items():
        print(f"{name:<28}{text}")


@command(MACHINE)
def bench(*, json: Json = False) -> None:
    """Compare the speed of the fused LSTM with PyTorch's.

    Takes half a minute. Compares a forward pass over 784 steps, a forward and backward pass over 300, and single
    steps of one sequence, with 128 sequences and 128 hidden units; the fastest of 15 rounds counts. All must give
    the same numbers before they are timed. Let nothing else run meanwhile. OMP_NUM_THREADS sets the number of
    threads.

    Other frameworks, memory and data: `python -m benchmarks --help` in a checkout of the project.

    Examples:
        auxrnn bench
    """
    from rich.console import Console
    from rich.table import Table

    from auxrnn.bench import SpeedSizes, measure_speed

    comparisons, environment = measure_speed(SpeedSizes()), _find_environment()
    if json:
        print_json({"cases": comparisons, "environment": environment})
        return
    table = Table("", "time, ms", "speed-up", title=f"threads: {environment['threads']}, {environment['lstm']}")
    for comparison in comparisons.values():
        table.add_row(f"[bold]{comparison['title']}", "", "")
        for row in comparison["contenders"]:
            table.add_row(row["contender"], f"{1e3 * row['seconds']:.3g}", f"{row['speed_up']:.2f}")
    Console().print(table)


@command(MACHINE)
def info(*, json: Json = False) -> None:
    """Show versions, threads, device, LSTM kernel and data folder.

    Examples:
        auxrnn info --json
    """
    from auxrnn.data.spec import find_data_folder

    facts = _find_environment() | {"data": str(find_data_folder())}
    del facts["command"]
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        text = ", ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, dict) else value
        print(f"{name:<10}{text}")


def _find_environment() -> dict[str, Any]:
    from auxrnn import runs
    from auxrnn.environment import describe_environment

    return describe_environment(runs.settle(unflatten({"data": "digits"})))
