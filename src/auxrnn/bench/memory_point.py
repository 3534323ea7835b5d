"""Measures the memory of one training step, in a process of its own; prints JSON. Run by `memory.py`."""

import json
import sys

import torch

from auxrnn.bench.sizes import Sizes
from auxrnn.bench.systems import build_step
from auxrnn.training.process_memory import measure_memory, reset_peak


def main() -> None:
    """Take the system and four numbers from the command line: steps, rows, hidden units, threads."""
    system, *words = sys.argv[1:]
    num_steps, batch_size, hidden_size, num_threads = map(int, words)
    torch.set_num_threads(num_threads)
    torch.set_flush_denormal(True)
    step = build_step(system, Sizes(batch_size=batch_size, hidden_size=hidden_size), num_steps=num_steps)
    before = measure_memory().now
    step()
    reset_peak()
    step()
    sys.stdout.write(json.dumps({"peak_bytes": measure_memory().peak - before}) + "\n")


if __name__ == "__main__":
    main()
