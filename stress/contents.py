"""What is in a run folder or a cache, without the times, and how two of them differ."""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

OF_TIME = (
    "seconds",
    "cpu_seconds",
    "mark",
    "values_sha256",
    "events_sha256",
    "metrics.jsonl",
    "environment.json",
    "sha256",
)
"""Size and checksums of what holds times depend on them too."""


def describe(folder: Path) -> dict[str, str]:
    """Return a digest of every file and folder below a folder, hidden ones too; times count for nothing."""
    return {_name(path.relative_to(folder), _digest(path)): _digest(path) for path in sorted(folder.rglob("*"))}


def find_differences(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Return in words what is not as expected."""
    leftover = [f"leftover {name}" for name in found if name not in expected]
    missing = [f"missing {name}" for name in expected if name not in found]
    other = [f"other bytes in {name}" for name in found if name in expected and found[name] != expected[name]]
    return other + missing + leftover


def _name(path: Path, digest: str) -> str:
    """Return the name of a file; of a checksum that the cache remembers, whose name depends on times, the checksum."""
    return str(path.with_name(digest) if _is_remembered(path) else path)


def _is_remembered(path: Path) -> bool:
    return path.parent.name == "checksums" and not path.name.startswith(".") and not path.suffix


def _digest(path: Path) -> str:
    if path.is_dir():
        return "folder"
    content = path.read_bytes()
    if _is_remembered(path):
        # What follows the checksum proves that it belongs to the name.
        content = content.split()[0]
    if path.suffix in (".json", ".jsonl"):
        text = content.decode(errors="replace")
        texts = text.splitlines() if path.suffix == ".jsonl" else [text]
        with contextlib.suppress(ValueError):  # a damaged file counts as it is
            content = json.dumps([_without_times(json.loads(text)) for text in texts]).encode()
    return hashlib.sha256(content).hexdigest()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(inner) for name, inner in value.items() if name not in OF_TIME}
    return value
