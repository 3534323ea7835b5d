"""Save, load, resume exactly: tensors as safetensors, the rest as JSON beside them, never pickle.

A checkpoint is two files, `step-N.safetensors` and `step-N.json`. The JSON is written last and holds the checksums of
both, so that what has no JSON, or does not fit it, does not count. The one before the newest is kept.
"""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from auxrnn.files import write_aside

NUM_KEPT = 2
logger = logging.getLogger(__name__)


class Checkpoint(NamedTuple):
    """Tensors by name, and the plain values that go with them."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, step: int) -> None:
    """Write a checkpoint aside and rename it, then remove all but the newest two."""
    data = safetensors.torch.save({name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()})
    stem = f"step-{step:08d}"
    write_aside(folder / f"{stem}.safetensors", data)
    text = json.dumps(checkpoint.values)
    sums = {
        "tensors_sha256": hashlib.sha256(data).hexdigest(),
        "values_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    write_aside(folder / f"{stem}.json", json.dumps(sums | {"values": checkpoint.values}, indent=1) + "\n")
    for old in sorted(folder.glob("step-*.json"))[:-NUM_KEPT]:
        old.unlink()
    _remove_leftovers(folder)


def _remove_leftovers(folder: Path) -> None:
    """Remove tensors whose JSON is gone or never came, and what a kill left half-written."""
    kept = {path.stem for path in folder.glob("step-*.json")}
    for path in [*folder.glob("step-*.safetensors"), *folder.glob(".step-*")]:
        if path.stem not in kept:
            path.unlink(missing_ok=True)


def load_newest(folder: Path) -> Checkpoint | None:
    """Load the newest checkpoint that is whole; name each damaged one that is passed over. None where there is none."""
    for path in sorted(folder.glob("step-*.json"), reverse=True):
        checkpoint = _load(path)
        if checkpoint is not None:
            return checkpoint
        logger.warning("checkpoint %s is damaged; going back to the one before it", path.with_suffix(""))
    return None


def newest_path(folder: Path) -> Path | None:
    """Return the newest checkpoint's tensor file, to tell the user where it is."""
    paths = sorted(folder.glob("step-*.json"))
    return paths[-1].with_suffix(".safetensors") if paths else None


def _load(path: Path) -> Checkpoint | None:
    try:
        entry = json.loads(path.read_text())
        data = path.with_suffix(".safetensors").read_bytes()
        text = json.dumps(entry["values"])
        is_whole = (
            hashlib.sha256(data).hexdigest() == entry["tensors_sha256"]
            and hashlib.sha256(text.encode()).hexdigest() == entry["values_sha256"]
        )
        return Checkpoint(safetensors.torch.load(data), entry["values"]) if is_whole else None
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return None
