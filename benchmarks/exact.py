"""Time and memory of an update of one linear recurrent layer: exact gradients beside full and cut ones (Linux)."""

import itertools
import time
import timeit
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psutil
import torch

from auxrnn.build import InputSpec, build_network
from auxrnn.config import unflatten
from auxrnn.models.network import Network
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.cost import read_memory, reset_peak
from benchmarks.processes import own_process
from benchmarks.training_steps import library_step

Point = dict[str, Any]
"""Readout, window, number of steps, processor seconds of an update, and its peak bytes beyond weights and input."""
WINDOWS = ("exact", "full", 300)
# Numbers that full back-propagation keeps for each hidden unit of each step, as it was measured, rounded up.
FLOATS_PER_UNIT = 14


@dataclass(frozen=True, kw_only=True)
class ExactSizes:
    """Lengths of the sequences, and what they are read by."""

    batch_size: int = 1
    hidden_size: int = 128
    lengths: tuple[int, ...] = (16_384, 262_144)


def measure_exact(sizes: ExactSizes) -> list[Point]:
    """Measure all windows at all lengths, each in a process of its own; those that memory does not hold have None."""
    found = []
    for readout, num_steps, window in itertools.product(("last", "mean"), sizes.lengths, WINDOWS):
        point = {"readout": readout, "window": window, "num_steps": num_steps, "seconds": None, "peak_bytes": None}
        needed = 4 * FLOATS_PER_UNIT * sizes.hidden_size * sizes.batch_size * num_steps
        if window != "full" or needed < psutil.virtual_memory().available:
            with own_process() as process:
                point |= process.submit(measure_update, point, sizes).result()
        found.append(point)
    return found


def measure_update(point: Point, sizes: ExactSizes) -> Point:
    """Return the processor seconds of an update on one thread, after a first one, and its peak."""
    torch.set_num_threads(1)
    values = {"model": "lru", "num_layers": 1, "hidden_size": sizes.hidden_size, "supervised_window": point["window"]}
    config = unflatten({"data": "noise", "readout": point["readout"], "sampling_steps": 0} | values)
    network = build_network(config, InputSpec(1, None, 10, point["num_steps"]))
    assert isinstance(network, Network)
    rng = Draws(config.seed, "bench", 0).rng("pixels and classes")
    x_BTD = torch.rand(sizes.batch_size, point["num_steps"], 1, generator=rng)
    step = library_step(network, SequenceBatch(x_BTD, torch.arange(sizes.batch_size)), config=config)
    before = read_memory("VmRSS")
    step()
    reset_peak()
    seconds = timeit.timeit(step, timer=time.process_time, number=1)
    return {"seconds": seconds, "peak_bytes": read_memory("VmHWM") - before}


def format_exact(points: Sequence[Point]) -> str:
    """Return the points as a table, a line for each."""
    lines = ["An update of one linear recurrent layer", "readout       window       steps   seconds      MiB"]
    for point in points:
        seconds, peak = point["seconds"], point["peak_bytes"]
        figures = f"{'-':>10}{'-':>9}" if seconds is None else f"{seconds:>10.3f}{peak / 2**20:>9,.0f}"
        lines.append(f"{point['readout']:<8}{point['window']!s:>12}{point['num_steps']:>12,}{figures}")
    return "\n".join(lines)
