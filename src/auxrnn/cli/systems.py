"""`auxrnn models` and `auxrnn cost`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auxrnn import runs
from auxrnn.arguments import parse
from auxrnn.cli.output import Flag, print_json, say
from auxrnn.cli.run_options import check_run, find_defaults, find_recipe_name, load_data
from auxrnn.config import RunConfig
from auxrnn.errors import UsageError
from auxrnn.files import describe_bytes
from auxrnn.networks import count_weights
from auxrnn.planning import plan
from auxrnn.presets import PRESETS, name_system
from auxrnn.progress import describe_seconds
from auxrnn.recipes import DEFAULT_RECIPE, RecipeName
from auxrnn.training.cost import estimate_time, time_row
from auxrnn.training.loop import Session
from auxrnn.training.memory import (
    estimate_unfused,
    find_hungriest,
    find_longest,
    measure_step,
)
from auxrnn.training.process_memory import find_free_memory

NAME_WIDTH = 13
LONGEST_STEP = 120.0
"""Seconds; a step that takes longer row by row is not done just to measure it."""


@dataclass(frozen=True, kw_only=True)
class ModelsArguments:
    """Options of `models`."""

    markdown: Flag = False
    """Print the weights of every system at its published settings as a Markdown table: the one in docs/models.md."""
    json: Flag = False
    """Print one JSON object: title, paper, steps, options and published settings of each model by name."""


def models(argv: Sequence[str]) -> int:
    """List every system that `auxrnn train --model` takes: its paper, its weights, and what it reads.

    Weights are those of its published settings, for MNIST's pixels and DBpedia's characters. `auxrnn train --model X
    --help` shows these settings as the defaults of all options.

    example:  auxrnn models
    """
    from auxrnn.experiments import parameters  # noqa: PLC0415 - only this needs it

    arguments = parse(ModelsArguments, argv, "models", description=models.__doc__ or "")
    if arguments.markdown:
        print(parameters.make_table(), end="")
        return 0
    rows: dict[str, dict[str, Any]] = {
        name: preset._asdict()
        | {
            "weights_mnist": parameters.count(parameters.Variant(name), parameters.MNIST),
            "weights_dbpedia": parameters.count(parameters.Variant(name), parameters.DBPEDIA),
        }
        for name, preset in PRESETS.items()
    }
    if arguments.json:
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


@dataclass(frozen=True, kw_only=True)
class CostArguments:
    """Options of `cost` beside those of the run itself."""

    run: RunConfig
    recipe: RecipeName = DEFAULT_RECIPE
    """Where the defaults of all options come from: fast or paper, as in `auxrnn train`."""
    config: Path | None = None
    """TOML file with defaults for these options, or a shipped one: paper, mnist14."""
    memory: float | None = None
    """Gigabytes that a training step may take (None: what is free here)."""
    json: Flag = False
    """Print one JSON object."""


def cost(argv: Sequence[str]) -> int:
    """Say what a training would take, without training: weights, memory and time of a step, and what fits.

    Takes the options of `auxrnn train`. Memory is estimated from a few short rows, and measured in one step on the
    longest sequences if that fits. For attention it also says what a matrix of all steps by all steps would take: what
    made the paper call long sequences infeasible.

    Examples:
      auxrnn cost mnist --model transformer
      auxrnn cost needle --length 16384 --model dmca --memory 16
    """
    default = CostArguments(run=find_defaults(argv), recipe=find_recipe_name(argv))
    arguments = parse(CostArguments, argv, "cost", default=default, description=cost.__doc__ or "")
    check_run(argv, arguments.run)
    if arguments.memory is not None and not 0 < arguments.memory < float("inf"):
        raise UsageError(f"--memory is {arguments.memory}; it must be a number of gigabytes above 0")
    config = runs.settle(arguments.run)
    dataset = load_data(config)
    config, prepared = plan(config, dataset, minutes=None, say=say)
    session = runs.open_session(config, dataset, prepared, None)
    free = find_free_memory(session.network.device)
    given = free if arguments.memory is None else int(arguments.memory * 1e9)
    facts = _find_costs(config, session, given=given, free=free)
    if arguments.json:
        print_json(facts)
    else:
        _print_costs(facts)
    return 0


def _find_costs(config: RunConfig, session: Session, *, given: int | None, free: int | None) -> dict[str, Any]:
    rows, longest = session.batches.batch_size, find_longest(session)
    hungriest, growth = find_hungriest(session)
    has_attention = "num_heads" in PRESETS[config.model.model].options
    is_padded = "pad_to" in PRESETS[config.model.model].options
    unfused = estimate_unfused(session) if has_attention else None
    estimated = growth.bytes_for(rows, longest)
    measured = None
    if (free is None or estimated < free) and rows * time_row(session, hungriest) < LONGEST_STEP:
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
        "longest_steps": None if given is None or is_padded else growth.longest(given, rows),
        "largest_batch": None if given is None else growth.most_rows(given, longest),
        "unfused_longest_steps": None if unfused is None or given is None else unfused.longest(given, rows),
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
        lines["unfused attention"] = f"would need {describe_bytes(facts['unfused_bytes'])}" + (
            "" if given is None else f"; {describe_bytes(given)} hold {facts['unfused_longest_steps']:,} steps"
        )
    for phase, seconds in facts["seconds_per_update"].items():
        lines[f"time of a step, {phase}"] = f"{seconds:.2g} seconds" if seconds < 10 else describe_seconds(seconds)
    lines["whole training"] = f"{facts['updates']:,} updates, {describe_seconds(facts['training_seconds'])}"
    if given is not None:
        steps, rows = facts["longest_steps"], facts["largest_batch"]
        longest = f"texts of any length (cut to {facts['pad_to']:,})" if steps is None else f"{steps:,} steps"
        lines[f"in {describe_bytes(given)} fit"] = f"{longest} at this batch size, or batches of {rows:,}"
    for name, text in lines.items():
        print(f"{name:<28}{text}")
