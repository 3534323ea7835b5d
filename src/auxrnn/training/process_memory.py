"""Memory of this process and of the machine: what is held, what was held at most, what is free."""

import os
from pathlib import Path
from typing import NamedTuple

import torch


class Memory(NamedTuple):
    """Bytes that a process holds: now, and at most since `reset_peak`."""

    now: int
    peak: int


def measure_memory() -> Memory:
    """Read the memory of this process from Linux; elsewhere this raises an OSError."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now, peak = (int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return Memory(now, peak)


def reset_peak() -> None:
    """Let the peak of `measure_memory` start from what is held now (Linux)."""
    handle = os.open("/proc/self/clear_refs", os.O_WRONLY)
    try:
        os.write(handle, b"5")
    finally:
        os.close(handle)


def start_measuring(device: torch.device) -> int:
    """Begin to watch for a peak, and give what is held now."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    reset_peak()
    return measure_memory().now


def read_peak(device: torch.device) -> int:
    """Give the peak since `start_measuring`."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else measure_memory().peak


def find_free_memory(device: torch.device) -> int | None:
    """Give the bytes that are free for a training on a device; None where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    return min([free, *_find_limits()])


def _find_limits() -> list[int]:
    """Give what is left of a limit that a container sets, if it does."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())["anon"]
        return [] if limit == "max" else [max(0, int(limit) - int(used))]
    except (OSError, KeyError, ValueError):
        return []
