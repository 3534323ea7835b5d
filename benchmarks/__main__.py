"""The command line of the benchmarks."""

import argparse
import json
import sys
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from auxrnn import runs
from auxrnn.config import DataConfig, RunConfig
from auxrnn.environment import describe_environment
from auxrnn.errors import RunError
from auxrnn.files import write_aside
from auxrnn.heap import restart_with_large_pages
from benchmarks.data import FULL_DATA, QUICK_DATA, measure_data
from benchmarks.exact import ExactSizes, format_exact, measure_exact
from benchmarks.labels import SEEDS, measure_labels, measure_texts
from benchmarks.memory import format_memory, measure_memory_of_steps, plot_memory
from benchmarks.parallel import ParallelSizes, format_parallel, measure_parallel
from benchmarks.speed import format_comparison, measure_all_speeds
from benchmarks.training_steps import FULL, QUICK

Record = dict[str, Any]


def main() -> None:
    """Run one benchmark; a failure is one sentence on the error stream."""
    arguments = _parser().parse_args()
    if arguments.run is not show:
        restart_with_large_pages()
    try:
        arguments.run(arguments)
    except RunError as error:
        sys.exit(f"benchmarks: {error}")
    except BrokenProcessPool:
        sys.exit("benchmarks: the system killed a process, most likely for lack of memory")


def speed(arguments: argparse.Namespace) -> None:
    """Time the LSTM beside torch's and other frameworks', and whole training steps at several lengths."""
    cases = measure_all_speeds(QUICK if arguments.quick else FULL)
    _write(arguments.out / "speed.json", {"cases": cases})
    _print_tables({"cases": cases})


def memory(arguments: argparse.Namespace) -> None:
    """Measure the peak memory of a training step at several lengths, and draw it."""
    record = {"memory": measure_memory_of_steps(QUICK if arguments.quick else FULL)}
    _write(arguments.out / "memory.json", record)
    plot_memory(record["memory"], arguments.out / "peak-memory.png")
    _print_tables(record)


def exact(arguments: argparse.Namespace) -> None:
    """Measure time and memory of exact gradients of one linear recurrent layer, beside full and truncated ones."""
    record = {"exact": measure_exact(ExactSizes(lengths=(1_024,)) if arguments.quick else ExactSizes())}
    _write(arguments.out / "exact.json", record)
    _print_tables(record)


def processes(arguments: argparse.Namespace) -> None:
    """Time an update of two processes beside that of one with one thread, and of one with two."""
    record = {
        "parallel": measure_parallel(ParallelSizes(systems=("r_lstm_1x600",)) if arguments.quick else ParallelSizes())
    }
    _write(arguments.out / "processes.json", record)
    _print_tables(record)


def data(arguments: argparse.Namespace) -> None:
    """Measure how long large synthetic datasets take to open, how much memory, and what a batch of them costs."""
    figures = measure_data(arguments.out, QUICK_DATA if arguments.quick else FULL_DATA)
    _write(arguments.out / "data.json", figures)
    _print_tables(figures)


def labels(arguments: argparse.Namespace) -> None:
    """Train on spoken digits with few labels, beside MiniRocket and MFCC features, and draw accuracy against labels."""
    measure_labels(
        arguments.recordings,
        arguments.out,
        arguments.pictures or arguments.out,
        seeds=SEEDS[:1] if arguments.quick else SEEDS,
    )


def texts(arguments: argparse.Namespace) -> None:
    """Fit TF-IDF with a linear classifier on few labels of DBpedia, beside the records of `reproduce few_labels`."""
    measure_texts(arguments.folder, arguments.out, arguments.pictures or arguments.out, arguments.records)


def show(arguments: argparse.Namespace) -> None:
    """Print a record's tables; with --plot, also draw its peak memory."""
    record = json.loads(arguments.record.read_text())
    _print_tables(record)
    if arguments.plot:
        plot_memory(record["memory"], arguments.plot)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Let nothing else run meanwhile.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run: Callable[[argparse.Namespace], None]
    for run in (speed, memory, exact, processes, data):
        command = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
        command.add_argument("--quick", action="store_true", help="fewer lengths and rounds, or a tenth of the data")
        command.add_argument("--out", type=Path, default=Path("runs/bench"), help="folder for the record")
        command.set_defaults(run=run)
    command = commands.add_parser("labels", help=labels.__doc__, description=labels.__doc__)
    command.add_argument("recordings", type=Path, help="folder of the Free Spoken Digit Dataset's recordings")
    command.add_argument("--quick", action="store_true", help="one seed")
    command.add_argument("--out", type=Path, default=Path("results/labels"), help="folder for records and the table")
    command.add_argument("--pictures", type=Path, help="folder for pictures; by default that of --out")
    command.set_defaults(run=labels)
    command = commands.add_parser("texts", help=texts.__doc__, description=texts.__doc__)
    command.add_argument("folder", type=Path, help="folder that holds DBpedia's files, or a part of them")
    command.add_argument("--records", type=Path, default=Path("results/full/records"), help="records of few_labels")
    command.add_argument("--out", type=Path, default=Path("results/labels"), help="folder for records and the table")
    command.add_argument("--pictures", type=Path, help="folder for pictures; by default that of --out")
    command.set_defaults(run=texts)
    command = commands.add_parser("show", help=show.__doc__, description=show.__doc__)
    command.add_argument("record", type=Path)
    command.add_argument("--plot", type=Path, metavar="PNG")
    command.set_defaults(run=show)
    return parser


def _write(path: Path, record: Record) -> None:
    environment = describe_environment(runs.settle(RunConfig(data=DataConfig(data="digits"))))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_aside(path, json.dumps(record | {"environment": environment}, indent=1) + "\n")


def _print_tables(record: Record) -> None:
    for comparison in record.get("cases", {}).values():
        print(format_comparison(comparison))
    if "memory" in record:
        print(format_memory(record["memory"]))
    if "exact" in record:
        print(format_exact(record["exact"]))
    if "parallel" in record:
        print(format_parallel(record["parallel"]))
    for name, value in record.items():
        if name.startswith(("texts_", "images_")):
            print(f"{name:36}{value:12.3f}")


if __name__ == "__main__":
    main()
