"""How commands speak: results on stdout, all else on stderr."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from auxrnn.config import RunConfig
    from auxrnn.data.datasets import Dataset


def print_json(value: dict[str, Any]) -> None:
    """Print a result as one line of JSON."""
    print(json.dumps(value), flush=True)


def say(text: str) -> None:
    """Tell the user something that is no result."""
    print(text, file=sys.stderr)


def error_console() -> "Console":
    """Return the console for progress."""
    from rich.console import Console

    return Console(stderr=True)


def load_data(config: "RunConfig") -> "Dataset":
    """Load the data of a run, with progress on the error stream."""
    from auxrnn.data import datasets
    from auxrnn.progress import ReadingProgress

    with ReadingProgress(Path(config.data.data).name, error_console()) as progress:
        return datasets.load(config.data, observe=progress.observe)
