"""`auxrnn demo`, `auxrnn bench` and `auxrnn info`."""

from rich.console import Console
from rich.table import Table

from auxrnn import runs
from auxrnn.cli.options import BenchOptions, DemoOptions, InfoOptions
from auxrnn.cli.output import error_console, print_json
from auxrnn.config import DataConfig, RunConfig
from auxrnn.data.local_files import find_data_folder
from auxrnn.progress import describe_seconds


def demo(options: DemoOptions) -> int:
    """Train the four networks of the demo, and print their table."""
    from auxrnn.experiments import demo as demo_experiment

    result = demo_experiment.run(options.out, seed=options.seed, is_smoke=options.smoke, console=error_console())
    seconds = sum(row.seconds for row in result.rows)
    if options.json:
        print_json({row.name: row.accuracy for row in result.rows} | {"seconds": seconds})
        return 0
    table = Table(
        "network", "steps of gradient", "updates", "test accuracy %", title="Handwritten digits, pixel by pixel"
    )
    for row in result.rows:
        table.add_row(row.title, str(row.window), f"{row.pretrain_steps} + {row.train_steps}", f"{row.accuracy:.1f}")
    Console().print(table)
    print(f"{describe_seconds(seconds)} of training in all; open {result.page} in a browser")
    return 0


def bench(options: BenchOptions) -> int:
    """Measure, and print the table."""
    from auxrnn.bench import SpeedSizes, measure_speed

    comparisons = measure_speed(SpeedSizes())
    environment = runs.describe_environment(runs.settle(RunConfig(data=DataConfig(data="digits"))))
    if options.json:
        print_json({"cases": comparisons, "environment": environment})
        return 0
    table = Table("", "time, ms", "speed-up", title=f"threads: {environment['threads']}, {environment['lstm']}")
    for comparison in comparisons.values():
        table.add_row(f"[bold]{comparison['title']}", "", "")
        for row in comparison["contenders"]:
            table.add_row(row["contender"], f"{1e3 * row['seconds']:.3g}", f"{row['speed_up']:.2f}")
    Console().print(table)
    return 0


def info(options: InfoOptions) -> int:
    """Print what a run depends on here."""
    config = runs.settle(RunConfig(data=DataConfig(data="digits")))
    facts = runs.describe_environment(config)
    facts["data"] = str(find_data_folder())
    del facts["command"]
    if options.json:
        print_json(facts)
    for name, value in {} if options.json else facts.items():
        text = ", ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, dict) else value
        print(f"{name:<10}{text}")
    return 0
