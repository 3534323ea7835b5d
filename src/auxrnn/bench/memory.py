"""Peak memory of a training step, measured in a process of its own for each point."""

from pathlib import Path

import torch

from auxrnn.bench.child import run_child
from auxrnn.bench.pages import VARIABLE
from auxrnn.bench.results import MemoryPoint
from auxrnn.bench.sizes import Sizes
from auxrnn.bench.systems import TITLES

# What torch's LSTM below a linear map keeps for its backward pass, and needs on the way back: numbers of four bytes
# for each hidden unit of each step of each sequence. Measured on two processors (18 and 21), and rounded up.
KEPT_PER_UNIT = 22
# Blocks of this many bytes and more go back to the system when freed: the heap's own reserves would differ by several
# percent from start to start.
MMAP_THRESHOLD = 65_536


def measure_point(sizes: Sizes, system: str, *, num_steps: int) -> MemoryPoint:
    """Run two steps in a fresh process and give the peak memory of the second."""
    found = run_child(
        "auxrnn.bench.memory_point",
        [system, num_steps, sizes.batch_size, sizes.hidden_size, torch.get_num_threads()],
        environment={"MALLOC_MMAP_THRESHOLD_": str(MMAP_THRESHOLD), VARIABLE: ""},
        doing=f"the memory of {TITLES[system]} was measured",
    )
    return MemoryPoint(system, num_steps, found["peak_bytes"])


def describe_lack(sizes: Sizes, num_steps: int) -> str:
    """Say how much memory full back-propagation needs and how much is free; nothing where it fits."""
    needed, free = needed_bytes(sizes, num_steps), _free_bytes()
    return "" if needed < free else f"needs {needed / 2**30:.0f} GiB of memory, {free / 2**30:.0f} are free"


def needed_bytes(sizes: Sizes, num_steps: int) -> int:
    """Estimate what full back-propagation takes at its peak."""
    return 4 * KEPT_PER_UNIT * sizes.hidden_size * sizes.batch_size * num_steps


def _free_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["MemAvailable"].split()[0]) * 1024
