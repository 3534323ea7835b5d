"""Times training steps of some systems side by side, in a process of its own; prints JSON. Run by `cases.py`."""

import json
import sys

import torch

from auxrnn.bench.sizes import Sizes
from auxrnn.bench.systems import build_step
from auxrnn.bench.timing import time_side_by_side
from auxrnn.heap import keep_freed_memory


def main() -> None:
    """Take five numbers from the command line (steps, rows, hidden units, threads, rounds) and the systems."""
    num_steps, batch_size, hidden_size, num_threads, rounds = map(int, sys.argv[1:6])
    keep_freed_memory()  # as `auxrnn train` does
    torch.set_num_threads(num_threads)
    torch.set_flush_denormal(True)
    sizes = Sizes(batch_size=batch_size, hidden_size=hidden_size)
    steps = {system: build_step(system, sizes, num_steps=num_steps) for system in sys.argv[6:]}
    sys.stdout.write(json.dumps(time_side_by_side(steps, rounds=rounds)) + "\n")


if __name__ == "__main__":
    main()
