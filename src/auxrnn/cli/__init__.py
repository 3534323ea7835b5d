"""The command line: parses, calls, prints. Results on stdout, progress on stderr; exit codes 0, 1, 2 and 130."""

from auxrnn.cli import data, evaluating, export, listing, looking, machine, paper, training, tuning, using
from auxrnn.cli.commands import app, main, run

__all__ = [
    "app", "data", "evaluating", "export", "listing", "looking", "machine", "main", "paper", "run", "training",
    "tuning", "using",
]  # fmt: skip
