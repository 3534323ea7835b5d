"""How commands speak: results on stdout, all else on stderr."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

RunFolder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


def print_json(value: dict[str, Any]) -> None:
    """Print a result as one line of JSON."""
    print(json.dumps(value), flush=True)


def say(text: str) -> None:
    """Tell the user something that is no result."""
    print(text, file=sys.stderr)


def error_console() -> Console:
    """Give the console for progress."""
    return Console(stderr=True)
