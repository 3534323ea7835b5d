"""Memory of this process and of the machine: what is held, what was held at most, what is free."""

from pathlib import Path
from typing import NamedTuple

import psutil
import torch


class Memory(NamedTuple):
    """Bytes that a process holds: now, and at most since `reset_peak`."""

    now: int
    peak: int


def measure_memory() -> Memory:
    """Return the memory of this process as Linux tells it; elsewhere this raises an OSError."""
    # psutil knows no peak that can be reset.
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now, peak = (int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return Memory(now, peak)


def reset_peak() -> None:
    """Let the peak of `measure_memory` start from what is held now (Linux)."""
    Path("/proc/self/clear_refs").write_bytes(b"5")


def start_measuring(device: torch.device) -> int:
    """Reset the peak of a device, and return what is held now."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    reset_peak()
    return measure_memory().now


def read_peak(device: torch.device) -> int:
    """Return the peak since `start_measuring`."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else measure_memory().peak


def find_free_memory(device: torch.device) -> int:
    """Return the bytes that are free for a training on a device, within the limit of a container if there is one."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    available: int = psutil.virtual_memory().available
    return min([available, *_find_limits()])


def _find_limits() -> list[int]:
    """Return what is left of the limit that a container sets, if it does."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())["anon"]
        return [] if limit == "max" else [max(0, int(limit) - int(used))]
    except (OSError, KeyError, ValueError):
        return []
