"""The benchmark's measurements as tables for a terminal."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE
from rich.table import Table

from auxrnn.bench.ratios import GOALS, compute_ratios
from auxrnn.bench.results import Case, Entry, Results
from auxrnn.bench.systems import TITLES

MEBIBYTE = 2**20


def make_tables(results: Results) -> Iterator[Table]:
    """Give a table for each case, time and memory of a training step at all lengths, and the ratios last."""
    step = results.steps[results.sizes.step_length]
    for case in (results.reading, results.reading_busy, results.window, results.streaming, step):
        yield _case_table(case)
    yield _time_table(results)
    yield _memory_table(results)
    yield _ratio_table(results)


def new_table(title: str, columns: Sequence[str]) -> Table:
    """Give an empty table: words in the first column, figures in the others."""
    first, *others = columns
    table = Table(
        title=title, box=SIMPLE, title_justify="left", title_style="bold", caption_justify="left", padding=(0, 1, 0, 0)
    )
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _case_table(case: Case) -> Table:
    has_flop = any(entry.flop is not None for entry in case.entries)
    table = new_table(case.title, ["contender", "time", "speed-up", *["GFLOP/s"] * has_flop])
    for entry in case.entries:
        speed_up = case.speed_up(entry.contender)
        cells = [describe_time(entry), "" if speed_up is None else f"{speed_up:.2f}"]
        table.add_row(entry.contender, *cells, *[_describe_rate(entry)] * has_flop)
    if has_flop:
        table.caption = "GFLOP/s count the products of the recurrence alone"
    if case.limit is not None:
        table.add_section()
        table.add_row(case.limit.contender, describe_time(case.limit), "", _describe_rate(case.limit))
    return table


def _time_table(results: Results) -> Table:
    table = new_table("Time of a training step, s", ["steps", *TITLES.values()])
    for num_steps, case in results.steps.items():
        times = [case.entry(title).seconds for title in TITLES.values()]
        table.add_row(f"{num_steps:,}", *("-" if seconds is None else f"{seconds:.2f}" for seconds in times))
    return table


def _memory_table(results: Results) -> Table:
    table = new_table("Peak memory of a training step, MiB", ["steps", *TITLES.values()])
    for num_steps in sorted({point.num_steps for point in results.memory}):
        found = {point.system: point.peak_bytes for point in results.memory if point.num_steps == num_steps}
        peaks = [found.get(system) for system in TITLES]
        table.add_row(f"{num_steps:,}", *("-" if peak is None else f"{peak / MEBIBYTE:,.0f}" for peak in peaks))
    return table


def _ratio_table(results: Results) -> Table:
    table = new_table("Ratios and their goals", ["ratio", "found", "goal", "reached"])
    for name, ratio in compute_ratios(results).items():
        goal = GOALS[name]
        table.add_row(name, f"{ratio:.3f}", goal.describe(), "yes" if goal.is_reached(ratio) else "no")
    return table


def describe_time(entry: Entry) -> str:
    """Give a time with the unit that suits it, or why there is none."""
    if entry.seconds is None:
        return entry.note
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if entry.seconds * scale >= 1:
            return f"{entry.seconds * scale:.2f} {unit}"
    return f"{entry.seconds * 1e6:.1f} us"


def _describe_rate(entry: Entry) -> str:
    return "" if entry.gflops is None else f"{entry.gflops:.1f}"
