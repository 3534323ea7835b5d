"""The memory of a training step does not grow with the length of the sequence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("memory_of_step.py")


def measure(num_steps, *settings):
    """Give the peak memory of the second step beyond what the process held before the first, and beyond the input."""
    command = [sys.executable, str(SCRIPT), str(num_steps), *map(str, settings)]
    # Freed blocks go back to the system at once: the heap's own reserves differ by several percent from start to start.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(done.stdout)
    return found["peak"] - found["input"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process as Linux tells it")
@pytest.mark.parametrize(
    "settings",
    [("reconstruct", 20, 30, 30), ("reconstruct", 1, 300, 100), ("predict", 1, 300, 100), ("none", 1, 1, 300)],
)
def test_peak_memory_grows_less_than_5_percent_from_1000_to_16000_steps(settings):
    short = measure(1_000, *settings)
    long = measure(16_000, *settings)
    assert long < 1.05 * short, f"{short / 1e6:.0f} MB at 1,000 steps, {long / 1e6:.0f} MB at 16,000"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process as Linux tells it")
def test_full_back_propagation_does_grow_so_that_the_measure_can_fail():
    assert measure(4_000, "none", 1, 1, "full") > 2 * measure(1_000, "none", 1, 1, "full")
