"""Peak memory of a training step as sequences grow, each point measured in a process of its own (Linux)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from auxrnn.training.cost import read_memory, reset_peak
from benchmarks.processes import own_process
from benchmarks.training_steps import SYSTEMS, TITLES, StepSizes, build_step, points

# Larger blocks go back to the system when freed: the heap's own reserves would differ by several percent between runs.
MMAP_THRESHOLD = 65_536
COLORS = ("#4d5761", "#b84a00", "#006ba8", "#007a58")
Point = dict[str, Any]
"""System, number of steps and peak bytes, which are None in a record where they were not measured."""


def measure_memory_of_steps(sizes: StepSizes) -> list[Point]:
    """Measure all systems at all lengths that fit into memory."""
    found = []
    for system, num_steps in points(sizes):
        with own_process(MALLOC_MMAP_THRESHOLD_=str(MMAP_THRESHOLD)) as process:
            peak = process.submit(measure_peak, system, num_steps, sizes).result()
        found.append({"system": system, "num_steps": num_steps, "peak_bytes": peak})
    return found


def measure_peak(system: str, num_steps: int, sizes: StepSizes) -> int:
    """Return the peak of the second step beyond what the process held before the first: no weights, no input."""
    step = build_step(system, num_steps, sizes)
    before = read_memory("VmRSS")
    step()
    reset_peak()
    step()
    return read_memory("VmHWM") - before


def format_memory(points: Sequence[Point]) -> str:
    """Return the peaks as a table in MiB, a line for each length."""
    peaks = {(point["system"], point["num_steps"]): point["peak_bytes"] for point in points}
    lines = ["Peak memory of a training step, MiB", "".join(f"{title:>16}" for title in ("steps", *TITLES.values()))]
    for num_steps in sorted({point["num_steps"] for point in points}):
        cells = [peaks.get((system, num_steps)) for system in SYSTEMS]
        texts = ["-" if peak is None else f"{peak / 2**20:,.0f}" for peak in cells]
        lines.append("".join(f"{text:>16}" for text in (f"{num_steps:,}", *texts)))
    return "\n".join(lines)


def plot_memory(points: Sequence[Point], path: Path) -> None:
    """Draw gibibytes against length, both logarithmic: constant memory is level, linear growth a diagonal."""
    figure = Figure(figsize=(9.6, 5.2), layout="constrained")
    axes = figure.add_subplot()
    for (system, title), color in zip(TITLES.items(), COLORS, strict=True):
        peaks = {point["num_steps"]: point["peak_bytes"] for point in points if point["system"] == system}
        found = {num_steps: peak / 2**30 for num_steps, peak in sorted(peaks.items()) if peak is not None}
        if found:
            label = f"{title}: {found[max(found)]:.3g} GiB at {max(found):,}"
            axes.plot([*found], [*found.values()], "o-", color=color, linewidth=2, markersize=5, label=label)
    lengths = sorted({point["num_steps"] for point in points})
    axes.set(xscale="log", yscale="log", xlabel="sequence length in steps", ylabel="peak memory, GiB")
    axes.set_xticks(lengths, [f"{length:,}" for length in lengths], rotation=30)
    axes.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.grid(axis="y", color="#d8dde3")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("Peak memory of a training step beyond weights and input, 128 sequences", loc="left", weight="bold")
    axes.legend(loc="upper left", edgecolor="none", framealpha=1)
    figure.savefig(path, dpi=200, metadata={"Software": None})
