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
from auxrnn.data.fetching.sources import search_folders
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

    out: Path = Path("runs/bench")
    """Folder for bench.json and the pictures step-time.png and peak-memory.png, or for data.json; what it holds of
    them is replaced."""
    data: Flag = False
    """Measure data instead: starts, memory and batches with 560,000 texts and 150,000 images, made up for it."""
    quick: Flag = False
    """All ratios from fewer repeats and lengths: three to five minutes on two cores instead of half an hour.
    With --data a tenth of the data."""
    json: Flag = False
    """Print one JSON object: the ratios or figures by name, and below them every measurement and what it depends on."""


def bench(argv: Sequence[str]) -> int:
    """Measure speed and memory on this machine, side by side with what people would use instead.

    Reading, windows, single steps and whole training steps against torch's own LSTM, and against JAX, Keras and
    onnxruntime where they are installed (`pip install 'auxrnn[bench]'`); the product of two large matrices as the
    limit of the processor; peak memory, in processes of their own.

    Contenders take turns and the best of several rounds counts; still, let nothing else run meanwhile. It needs 17 GiB
    of memory for full back-propagation; with less than 22 the longest of it is left out. OMP_NUM_THREADS sets the
    number of threads, but JAX and Keras always take all cores.

    With --data it makes up a table and a folder of images as large as the paper's (10 GB for a while, below --out), and
    measures how long a first and a second start take, how much memory, and what making batches costs of a step.

    example:  auxrnn bench --quick
    """
    from auxrnn.bench import sizes, suite, tables  # noqa: PLC0415 - matplotlib is slow to import

    arguments = parse(BenchArguments, argv, "bench", description=bench.__doc__ or "")
    if arguments.data:
        return _bench_data(arguments)
    chosen = sizes.QUICK if arguments.quick else sizes.FULL
    record = suite.run(arguments.out, sizes=chosen, console=error_console())
    if arguments.json:
        print_json(record.to_json())
        return 0
    for table in tables.make_tables(record.results):
        Console().print(table)
    lstm = record.environment["lstm"]
    print(f"{describe_seconds(record.seconds)}, threads: {record.results.num_threads}, {lstm}")
    print(f"{arguments.out} holds the pictures and bench.json with all figures")
    return 0


def _bench_data(arguments: BenchArguments) -> int:
    from auxrnn.bench import data_sizes, data_suite, data_tables  # noqa: PLC0415 - only this needs them

    chosen = data_sizes.QUICK if arguments.quick else data_sizes.FULL
    record = data_suite.run_data(arguments.out, sizes=chosen, console=error_console())
    if arguments.json:
        print_json(record.to_json())
        return 0
    Console().print(data_tables.make_data_table(record.results))
    print(f"{describe_seconds(record.seconds)}; {arguments.out} holds data.json with all figures")
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
    facts["data"] = str(search_folders("mnist")[1])
    del facts["command"]
    if arguments.json:
        print_json(facts)
    for name, value in {} if arguments.json else facts.items():
        text = ", ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, dict) else value
        print(f"{name:<10}{text}")
    return 0
