"""The whole benchmark: all measurements of one run."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from rich.console import Console

from auxrnn import runs
from auxrnn.bench.busy import busy_core
from auxrnn.bench.cases import compare_reading, compare_steps, compare_streaming, compare_windows
from auxrnn.bench.memory import describe_lack, measure_point
from auxrnn.bench.plan import BUSY, READING, STREAMING, WINDOWS, make_plan, memory_points, name_memory, name_steps
from auxrnn.bench.record import Record, write_record
from auxrnn.bench.results import Case, MemoryPoint, Results
from auxrnn.bench.roster import PAIR
from auxrnn.bench.sizes import Sizes
from auxrnn.bench.systems import FULL_BPTT, configure
from auxrnn.bench.watch import Watch
from auxrnn.errors import RunError


def run(folder: Path, *, sizes: Sizes, console: Console) -> Record:
    """Measure everything, and write what was found into the folder."""
    if sys.platform != "linux":
        raise RunError("the benchmark measures memory as Linux tells it; run it on Linux")
    # Before the minutes of measuring, not after: a folder that cannot be made is found out at once.
    folder.mkdir(parents=True, exist_ok=True)
    watch = Watch(make_plan(sizes), console)
    with _flushing_denormals(), watch.bar:
        results = measure(sizes, watch)
    environment = runs.describe_environment(runs.settle(configure(FULL_BPTT, sizes)))
    record = Record(results, environment, watch.seconds)
    write_record(record, folder)
    return record


def measure(sizes: Sizes, watch: Watch) -> Results:
    """Take all measurements, one after another: two at a time would disturb each other."""
    lack = {num_steps: describe_lack(sizes, num_steps) for num_steps in sizes.timed_lengths + sizes.full_memory_lengths}
    if lack[sizes.step_length]:
        needs = f"full back-propagation through {sizes.step_length:,} steps {lack[sizes.step_length]}"
        raise RunError(f"{needs}; close other programs")
    with watch.part(READING):
        reading = compare_reading(sizes)
    with watch.part(BUSY), busy_core():
        reading_busy = compare_reading(sizes, readers=PAIR, circumstances="no graph, one core busy")
    with watch.part(WINDOWS):
        window = compare_windows(sizes)
    with watch.part(STREAMING):
        streaming = compare_streaming(sizes)
    # Before the steps are timed: a virtual machine is slow to hand out gigabytes that it has not used for a while.
    memory = [
        _measure_memory(sizes, system, num_steps, lack[num_steps] if system == FULL_BPTT else "", watch)
        for system, num_steps in memory_points(sizes)
    ]
    return Results(
        sizes=sizes,
        num_threads=torch.get_num_threads(),
        reading=reading,
        reading_busy=reading_busy,
        window=window,
        streaming=streaming,
        steps={num_steps: _time_steps(sizes, num_steps, lack[num_steps], watch) for num_steps in sizes.timed_lengths},
        memory=memory,
    )


def _time_steps(sizes: Sizes, num_steps: int, lack: str, watch: Watch) -> Case:
    with watch.part(name_steps(num_steps)):
        return compare_steps(sizes, num_steps=num_steps, lack=lack)


def _measure_memory(sizes: Sizes, system: str, num_steps: int, lack: str, watch: Watch) -> MemoryPoint:
    with watch.part(name_memory(system, num_steps)):
        if lack:
            return MemoryPoint(system, num_steps, None, lack)
        return measure_point(sizes, system, num_steps=num_steps)


@contextmanager
def _flushing_denormals() -> Iterator[None]:
    """Let the processor take numbers too small for full precision as zero, here and in threads that start from now on.

    Gradients that vanish become such numbers, and they made a backward pass of torch's LSTM up to twenty times slower.
    Nobody would accept that in training, so no comparison shall profit from it.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
