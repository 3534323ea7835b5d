"""One system that takes a training step whenever it is asked to, in a process of its own. Run by `cases.py`."""

import sys

import torch

from auxrnn.bench.sizes import Sizes
from auxrnn.bench.systems import build_step


def main() -> None:
    """Take a system and four numbers (steps, rows, hidden units, threads); answer each line when its step is done."""
    system, *words = sys.argv[1:]
    num_steps, batch_size, hidden_size, num_threads = map(int, words)
    torch.set_num_threads(num_threads)
    torch.set_flush_denormal(True)
    step = build_step(system, Sizes(batch_size=batch_size, hidden_size=hidden_size), num_steps=num_steps)
    for _ in sys.stdin:
        step()
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
