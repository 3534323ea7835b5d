"""The parts of the benchmark and what each costs, so that it can say how long the rest takes."""

from auxrnn.bench.sizes import Sizes
from auxrnn.bench.systems import FULL_BPTT, TITLES

READING, BUSY, WINDOWS, STREAMING = "reading", "reading beside a busy core", "windows", "single steps"

# Rough seconds on two cores. For a batch and a step in time: read by all contenders, read by two of them beside a busy
# core, a window with a graph by all; a training step of full back-propagation, and of the others.
READ_SECONDS, BUSY_SECONDS, WINDOW_SECONDS = 2.5e-3, 3e-3, 6e-3
FULL_SECONDS, AUXILIARY_SECONDS = 0.8e-3, 0.25e-3
# A new process, and all single steps.
START_SECONDS, STREAM_SECONDS = 3.0, 1.0


def make_plan(sizes: Sizes) -> dict[str, float]:
    """Give all parts in their order, each with rough seconds."""
    parts = {
        READING: sizes.rounds * sizes.reading_length * READ_SECONDS,
        BUSY: sizes.rounds * sizes.reading_length * BUSY_SECONDS,
        WINDOWS: sizes.rounds * sizes.window_length * WINDOW_SECONDS,
        STREAMING: STREAM_SECONDS,
    }
    for system, num_steps in memory_points(sizes):
        seconds = FULL_SECONDS if system == FULL_BPTT else AUXILIARY_SECONDS
        parts[name_memory(system, num_steps)] = START_SECONDS + 2 * num_steps * seconds
    for num_steps in sizes.timed_lengths:
        seconds = FULL_SECONDS + (len(TITLES) - 1) * AUXILIARY_SECONDS
        parts[name_steps(num_steps)] = START_SECONDS + sizes.step_rounds * num_steps * seconds
    return parts


def memory_points(sizes: Sizes) -> list[tuple[str, int]]:
    """Give the systems and lengths whose memory is measured."""
    return [
        (system, num_steps)
        for system in TITLES
        for num_steps in (sizes.full_memory_lengths if system == FULL_BPTT else sizes.memory_lengths)
    ]


def name_steps(num_steps: int) -> str:
    """Name the part that times training steps at a length."""
    return f"training steps at {num_steps:,}"


def name_memory(system: str, num_steps: int) -> str:
    """Name the part that measures the memory of a system at a length."""
    return f"memory of {TITLES[system]} at {num_steps:,}"
