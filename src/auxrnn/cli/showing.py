"""`auxrnn demo`, `auxrnn bench` and `auxrnn info`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from auxrnn import runs
from auxrnn.arguments import parse
from auxrnn.cli.output import Flag, error_console, print_json
from auxrnn.config import DataConfig, RunConfig
from auxrnn.data.fetching.local_files import find_data_folder
from auxrnn.progress import describe_seconds


@dataclass(frozen=True, kw_only=True)
class DemoArguments:
    """Options of `demo`."""

    out: Path = Path("runs/demo")
    """Folder for the four runs and the page index.html."""
    seed: int = 0
    """Seed of every draw."""
    smoke: Flag = False
    """Only a few updates, to see that everything works; the figures mean nothing."""
    json: Flag = False
    """Print one JSON object: accuracies in percent on the test split, and seconds."""


def demo(argv: Sequence[str]) -> int:
    """See the method work on handwritten digits, in minutes on two cores.

    Trains four networks side by side with the same number of updates: an LSTM with full back-propagation, one whose
    gradients stop after 28 of 196 steps, an r-LSTM and a p-LSTM with the same 28 steps. Ends with a table and a page
    with the curves and pictures of what the r-LSTM remembers. Stopped, it goes on where it was when called again.

    example:  auxrnn demo --out runs/demo
    """
    from auxrnn.experiments import demo as demo_experiment  # noqa: PLC0415 - matplotlib is slow to import

    arguments = parse(DemoArguments, argv, "demo", description=demo.__doc__ or "")
    result = demo_experiment.run(arguments.out, seed=arguments.seed, is_smoke=arguments.smoke, console=error_console())
    if arguments.json:
        print_json(result.accuracies | {"seconds": result.seconds})
        return 0
    table = Table(
        "network", "steps of gradient", "updates", "test accuracy %", title="Handwritten digits, pixel by pixel"
    )
    for row in result.rows:
        table.add_row(row.title, str(row.window), f"{row.pretrain_steps} + {row.train_steps}", f"{row.accuracy:.1f}")
    Console().print(table)
    print(f"{describe_seconds(result.seconds)}; open {result.page} in a browser")
    return 0


@dataclass(frozen=True, kw_only=True)
class BenchArguments:
    """Options of `bench`."""

    json: Flag = False
    """Print one JSON object with all measurements, the threads and the versions."""


def bench(argv: Sequence[str]) -> int:
    """Measure the speed of the LSTM on this machine side by side with torch's own, in half a minute.

    Compares a forward pass over 784 steps, a forward and backward pass over 300, and single steps of one sequence, with
    128 sequences and 128 hidden units; the fastest of 15 rounds counts. All must give the same numbers before they are
    timed. Let nothing else run meanwhile. OMP_NUM_THREADS sets the number of threads.

    Other frameworks, memory and data: `python -m benchmarks --help` in a checkout of the project.

    example:  auxrnn bench
    """
    from auxrnn.bench import SpeedSizes, measure_speed  # noqa: PLC0415 - only this needs it

    arguments = parse(BenchArguments, argv, "bench", description=bench.__doc__ or "")
    comparisons = measure_speed(SpeedSizes())
    environment = runs.describe_environment(runs.settle(RunConfig(data=DataConfig(data="digits"))))
    if arguments.json:
        print_json({"cases": comparisons, "environment": environment})
        return 0
    table = Table("", "time, ms", "speed-up", title=f"threads: {environment['threads']}, {environment['lstm']}")
    for comparison in comparisons.values():
        table.add_row(f"[bold]{comparison['title']}", "", "")
        for row in comparison["contenders"]:
            table.add_row(row["contender"], f"{1e3 * row['seconds']:.3g}", f"{row['speed_up']:.2f}")
    Console().print(table)
    return 0


@dataclass(frozen=True, kw_only=True)
class InfoArguments:
    """Options of `info`."""

    json: Flag = False
    """Print one JSON object."""


def info(argv: Sequence[str]) -> int:
    """Give versions, threads, device, which LSTM runs (the fused kernel or torch's) and where data is cached.

    example:  auxrnn info --json
    """
    arguments = parse(InfoArguments, argv, "info", description=info.__doc__ or "")
    config = runs.settle(RunConfig(data=DataConfig(data="digits")))
    facts = runs.describe_environment(config)
    facts["data"] = str(find_data_folder())
    del facts["command"]
    if arguments.json:
        print_json(facts)
    for name, value in {} if arguments.json else facts.items():
        text = ", ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, dict) else value
        print(f"{name:<10}{text}")
    return 0
