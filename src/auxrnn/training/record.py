"""What a training writes: events, one line of JSON each, and checkpoints from which it resumes exactly.

The file of events never keeps half a line or an event twice. A checkpoint is two files, `step-N.safetensors` and
`step-N.json`, never pickle. The JSON is written last and holds the checksums of both, so that what has no JSON, or does
not fit it, does not count. The one before the newest is kept.
"""

import contextlib
import json
import logging
import os
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from auxrnn.errors import RunError
from auxrnn.files import cannot_write, digest, find_checksum, write_aside
from auxrnn.training.processes import Processes


@runtime_checkable
class Recorder(Protocol):
    """Where events go."""

    def write(self, event: dict[str, Any]) -> None:
        """Keep one event."""

    def flush(self) -> int:
        """Make sure that all events so far are kept; return a mark to rewind to."""

    def rewind(self, mark: int) -> None:
        """Forget all events after the mark."""

    def checksum(self) -> str:
        """Return the checksum of all events that are kept."""


class FileRecorder:
    """Events as lines of a file; a mark is its size in bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, event: dict[str, Any]) -> None:
        """Append one line, or none at all."""
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with self.path.open("ab") as file:
                file.write((json.dumps(event) + "\n").encode())
        except OSError as error:
            with contextlib.suppress(OSError):  # where the file could not even be opened there is nothing to cut
                os.truncate(self.path, size)
            raise cannot_write(self.path, error) from error

    def flush(self) -> int:
        """Flush the file to the disk and return its size."""
        try:
            with self.path.open("ab") as file:
                os.fsync(file.fileno())
                return file.tell()
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def rewind(self, mark: int) -> None:
        """Cut the file back to its size at the mark."""
        try:
            self.path.touch()
            if self.path.stat().st_size < mark:
                raise RunError(f"{self.path} is shorter than its checkpoint recorded; train again into another folder")
            os.truncate(self.path, mark)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def checksum(self) -> str:
        """Return the checksum of the file."""
        return find_checksum(self.path)


class ListRecorder:
    """Events in a list, for training without a folder; a mark is their number."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: dict[str, Any]) -> None:
        """Append one event."""
        self.events.append(event)

    def flush(self) -> int:
        """Return the number of events."""
        return len(self.events)

    def rewind(self, mark: int) -> None:
        """Drop the events after the mark."""
        del self.events[mark:]

    def checksum(self) -> str:
        """Return the checksum of the list."""
        return digest(json.dumps(self.events))


NUM_KEPT = 2
logger = logging.getLogger(__name__)


class Checkpoint(NamedTuple):
    """Tensors by name, and the plain values that go with them."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]

    def weights(self, kind: Literal["network", "best"]) -> dict[str, Tensor]:
        """Return the weights of the newest network or of the best one, by their names in it; empty without any."""
        start = f"{kind}."
        return {name.removeprefix(start): one for name, one in self.tensors.items() if name.startswith(start)}


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, step: int) -> None:
    """Write a checkpoint, then remove all but the newest two."""
    data = safetensors.torch.save({name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()})
    stem = f"step-{step:08d}"
    write_aside(folder / f"{stem}.safetensors", data)
    entry = _compute_checksums(data, checkpoint.values) | {"values": checkpoint.values}
    write_aside(folder / f"{stem}.json", json.dumps(entry, indent=1) + "\n")
    remove_old(folder)


def remove_old(folder: Path) -> None:
    """Remove all checkpoints but the newest two, and what a killed process left."""
    for old in sorted(folder.glob("step-*.json"))[:-NUM_KEPT]:
        old.unlink()
    # Tensors whose JSON is gone or never came, and what a kill left half-written.
    kept = {path.stem for path in folder.glob("step-*.json")}
    for path in [*folder.glob("step-*.safetensors"), *folder.glob(".step-*")]:
        if path.stem not in kept:
            path.unlink(missing_ok=True)


def load_newest(folder: Path) -> Checkpoint | None:
    """Load the newest checkpoint that is whole; name each damaged one that is passed over. None where there is none."""
    for path in sorted(folder.glob("step-*.json"), reverse=True):
        if (checkpoint := load_checkpoint(path)) is not None:
            return checkpoint
        logger.warning("checkpoint %s is damaged; going back to the one before it", path.with_suffix(""))
    return None


def send_checkpoint(checkpoint: Checkpoint | None, processes: Processes) -> Checkpoint | None:
    """Return the checkpoint of the first process, in each of them."""
    if processes.is_alone:
        return checkpoint
    whole = b"" if checkpoint is None else safetensors.torch.save(checkpoint.tensors)
    values = b"" if checkpoint is None else json.dumps(checkpoint.values).encode()
    whole, values = processes.send(whole), processes.send(values)
    return Checkpoint(safetensors.torch.load(whole), json.loads(values)) if values else None


def newest_path(folder: Path) -> Path | None:
    """Return the newest checkpoint's tensor file, to tell the user where it is."""
    paths = sorted(folder.glob("step-*.json"))
    return paths[-1].with_suffix(".safetensors") if paths else None


def _compute_checksums(data: bytes, values: dict[str, Any]) -> dict[str, str]:
    parts = {"tensors_sha256": data, "values_sha256": json.dumps(values).encode()}
    return {name: digest(part) for name, part in parts.items()}


def load_checkpoint(path: Path) -> Checkpoint | None:
    """Load the checkpoint of a JSON file; None if it is not whole."""
    try:
        entry = json.loads(path.read_bytes())
        data = path.with_suffix(".safetensors").read_bytes()
        is_whole = _compute_checksums(data, entry["values"]).items() <= entry.items()
        return Checkpoint(safetensors.torch.load(data), entry["values"]) if is_whole else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError, SafetensorError):
        return None
