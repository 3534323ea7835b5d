"""What a run depends on beside its config: versions, machine, commit, device."""

import importlib.metadata
import json
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from auxrnn.build import CELLS
from auxrnn.config import RunConfig
from auxrnn.files import read_checked, read_sums, reading
from auxrnn.kernels.library import describe as describe_kernel
from auxrnn.models.cells.gated import Gated
from auxrnn.presets import PRESETS
from auxrnn.training.processes import find_turn

ENVIRONMENT = "environment.json"
NUMBER = "the number of processes"
PACKAGES = ("auxrnn", "torch", "numpy", "safetensors", "scikit-learn")


def describe_command() -> str:
    """Return the command of this process."""
    return shlex.join(["auxrnn", *sys.argv[1:]])


def describe_environment(config: RunConfig) -> dict[str, Any]:
    """Return the versions, the machine and the commit that a run depends on."""
    return {
        "command": describe_command(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": config.threads,
        "processes": find_turn().num_processes,
        "device": config.device,
        "lstm": describe_kernel(),
        "commit": _find_commit(),
    }


def read_environment(folder: Path) -> dict[str, Any]:
    """Return the versions, the machine and the commit that a run was begun with; nothing of a run that kept none."""
    path = folder / ENVIRONMENT
    if not path.exists() and ENVIRONMENT not in read_sums(folder):
        return {}
    with reading(path):
        return dict(json.loads(read_checked(path)))


def compare_environment(config: RunConfig, folder: Path) -> str:
    """Return what rounds differently from when a run began; nothing if a resumed run will end with the same bytes."""
    if not (began := read_environment(folder)):
        return ""
    cell = f"the {PRESETS[config.model.model].title}"
    with reading(folder / ENVIRONMENT):
        then = {"torch": began["versions"]["torch"], cell: began.get("lstm"), NUMBER: began.get("processes", 1)}
    now = {"torch": importlib.metadata.version("torch"), NUMBER: find_turn().num_processes}
    now |= {cell: describe_kernel()} if issubclass(CELLS.get(config.model.model, nn.Module), Gated) else {}
    # Both vector builds of the kernel compute the same bits.
    same = {"fused kernel (avx2)", "fused kernel (avx512)", None}
    changed = [name for name in now if then[name] != now[name] and not {then[name], now[name]} <= same]
    return ", ".join(f"{name} was {then[name]} and is {now[name]}" for name in changed)


def find_device() -> str:
    """Return where networks are trained unless another device is named."""
    # Other accelerators can be asked for by name, but nobody has tried them yet.
    return "cuda" if torch.cuda.is_available() else "cpu"


def _find_commit() -> str | None:
    """Return the commit of the source this package runs from, where it is a checkout of its own."""
    if not (Path(__file__).parents[2] / ".git").exists():
        return None
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - fixed words
    except (OSError, subprocess.CalledProcessError):
        return None
