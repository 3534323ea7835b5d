"""A run as it lies in its folder: its config, its card, and the network that it trained, ready to use."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Float32
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from torch import Tensor

from auxrnn.build import InputSpec, build_network, build_phases
from auxrnn.config import MOST, OPEN_FIELDS, CheckpointName, RunConfig, Weights, flatten, unflatten
from auxrnn.data.formats import Format, from_plain, has_mask, make_encoding, step_sizes
from auxrnn.data.inputs import to_split
from auxrnn.errors import RunError, UsageError
from auxrnn.files import MISREAD, SUMS, damaged, read_checked, reading
from auxrnn.models.network import Trainable
from auxrnn.streaming import RawStream
from auxrnn.training.evaluate import predict_split
from auxrnn.training.loop import BEST
from auxrnn.training.record import load_newest

RUN_FORMAT = 3
"""Raised by one when a run folder can no longer be read by the version before."""
CONFIG, CARD, METRICS, FINAL = "config.json", "model.json", "metrics.jsonl", "model.safetensors"
TEMPERATURE = "temperature"
"""In the header of the weights that it belongs to."""
logger = logging.getLogger(__name__)


class ModelCard(NamedTuple):
    """With the weights and the config, all that prediction needs."""

    class_names: tuple[str, ...]
    format: Format
    num_steps: int
    """Length of the longest training sequence."""
    checksum: str | None
    """Of the data, and of how it was read; None for runs of the first version."""
    constant_loss: float = 1.0
    """Auxiliary loss per step of the best constant prediction on the training data."""

    @property
    def spec(self) -> InputSpec:
        """What a network must fit to read such sequences."""
        sizes = (*step_sizes(self.format), len(self.class_names), self.num_steps)
        return InputSpec(*sizes, self.constant_loss, has_mask(self.format))


class TrainedRun(NamedTuple):
    """A finished run, ready to evaluate or predict."""

    config: RunConfig
    card: ModelCard
    network: Trainable
    weights: Weights = "final"
    temperature: float = 1.0
    """What the logits of the network are divided by, already."""

    def predict_proba(
        self, x: ArrayLike | Sequence[Any], *, lengths: ArrayLike | None = None
    ) -> Float32[np.ndarray, "N C"]:
        """Return the probability of each class of `card.class_names` for sequences of raw values, as in the data.

        Give an array `[N, T]` or `[N, T, D]` (and lengths, where it is padded), a list of arrays of different lengths,
        a list of texts, or images as `[N, height, width]`, `[N, height, width, channels]` or their pixels `[N, T]`.
        """
        logits_NC = predict_split(self.network, to_split(x, self.card.format, lengths=lengths))
        probability_NC: Float32[np.ndarray, "N C"] = logits_NC.softmax(dim=1).numpy()
        return probability_NC

    def predict(self, x: ArrayLike | Sequence[Any], *, lengths: ArrayLike | None = None) -> list[str]:
        """Return the name of the likeliest class of each sequence; see `predict_proba`."""
        return [self.card.class_names[number] for number in self.predict_proba(x, lengths=lengths).argmax(axis=1)]

    def stream(self, num_sequences: int = 1) -> RawStream:
        """Return a stream that takes raw values step by step."""
        return RawStream(self.network, self.card.format, self.card.class_names, num_sequences)


def load_run(
    folder: Path | str, *, weights: Weights | None = None, checkpoint: CheckpointName | None = None
) -> TrainedRun:
    """Load a run's network, on the CPU; `network.to(device)` moves it, and batches follow.

    Unless others are named, the weights are the best on the validation split, of a run without one the final ones.
    The best ones of a finished run give calibrated probabilities. `checkpoint="latest"` takes both kinds from the
    newest checkpoint, of a run that may be unfinished.
    """
    folder = Path(folder)
    config = read_config(folder)
    if checkpoint is None and not is_finished(folder):
        what = f"has not finished training; `auxrnn resume {folder}` continues it"
        raise RunError(f"{folder} {what} (evaluate and predict use it as it is with --checkpoint latest)")
    stored = _read_weights(folder, weights) if checkpoint is None else _read_checkpoint(folder, config, weights)
    card = read_card(folder)
    network = build_network(config, card.spec)
    try:
        network.load_state_dict(stored.tensors)
    except RuntimeError as error:
        raise RunError(f"{stored.path} does not fit the run's config.json; train again into another folder") from error
    calibrate(network, stored.temperature)
    if not all(bool(value.isfinite().all()) for value in network.state_dict().values()):
        raise RunError(f"{stored.path} holds numbers that are not finite; train again into another folder")
    return TrainedRun(config, card, network, stored.kind, stored.temperature)


@torch.no_grad()
def calibrate(network: Trainable, temperature: float) -> None:
    """Divide the logits of a network by a temperature, for good."""
    for parameter in network.classifier.output.parameters():
        parameter.div_(temperature)


class Stored(NamedTuple):
    """Weights as they lie on the disk."""

    kind: Weights
    path: Path
    tensors: dict[str, Tensor]
    temperature: float = 1.0
    """1 of final weights, of checkpoints, and of earlier versions."""


def _read_weights(folder: Path, weights: Weights | None) -> Stored:
    """Return weights of a finished run."""
    weights = weights or ("best" if (folder / BEST).is_file() else "final")
    path = folder / (BEST if weights == "best" else FINAL)
    if not path.is_file():
        raise UsageError(f"{folder} has no best weights; they need --validation-fraction above 0 in training")
    content = read_checked(path)
    try:
        tensors, size = safetensors.torch.load(content), int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size]).get("__metadata__", {})
        return Stored(weights, path, tensors, float(header.get(TEMPERATURE, 1)))
    except (SafetensorError, ValueError) as error:
        raise damaged(path) from error


def _read_checkpoint(folder: Path, config: RunConfig, weights: Weights | None) -> Stored:
    """Return weights of the newest whole checkpoint."""
    path = folder / "checkpoints"
    checkpoint = load_newest(path)
    if checkpoint is None:
        raise RunError(f"{folder} has no whole checkpoint yet; `auxrnn resume {folder}` makes one")
    position, phases = checkpoint.values["position"], build_phases(config, 1, pretrain_steps_per_epoch=1)
    has_labels = phases[min(position["phase_index"], len(phases) - 1)].is_supervised
    phase = "training" if has_labels else "pretraining, which learns no labels"
    logger.info("the newest checkpoint is of update %s of %s", f"{position['step']:,}", phase)
    best = checkpoint.weights("best")
    if weights == "best" and not best:
        raise UsageError(f"{folder} has no best weights in its checkpoint; --weights final takes the newest")
    if best and weights != "final":
        return Stored("best", path, best)
    return Stored("final", path, checkpoint.weights("network"))


def is_finished(folder: Path) -> bool:
    """Return whether a run has its final weights."""
    return (folder / FINAL).is_file()


def read_config(folder: Path) -> RunConfig:
    """Read the config of a run; a folder that is no run, or one of another version, is refused."""
    path = folder / CONFIG
    if not path.is_file():
        raise UsageError(f"{folder} is not a run (it has no config.json); give a folder that `auxrnn train` made")
    try:
        values = json.loads(read_checked(path))
        run_format = values.pop("format")
        if run_format == RUN_FORMAT and not (folder / SUMS).exists():
            raise damaged(folder / SUMS)
        # The first two formats have no checksums.
        if run_format in (1, 2, RUN_FORMAT):
            config = unflatten(values)
            if config.threads is None or "auto" in [flatten(config)[name] for name in OPEN_FIELDS]:
                raise ValueError("what was left open is settled when a run begins")
            return config
        if not isinstance(run_format, int):
            raise TypeError("a format is a number")
    except UsageError as error:
        cure = "put it back as it was, or train again into another folder"
        raise RunError(f"{path} is damaged or edited ({error}); {cure}") from error
    except MISREAD as error:
        raise damaged(path) from error
    version = f"another version of auxrnn (run format {run_format}, here {RUN_FORMAT})"
    raise RunError(f"{folder} was made by {version}; use that version, or train again")


def read_card(folder: Path) -> ModelCard:
    """Read the card of a run."""
    path = folder / CARD
    with reading(path):
        values = json.loads(read_checked(path))
        if "image_format" in values:
            form = from_plain({"kind": "images"} | values["image_format"])
            # Runs of the first version are all of images.
            return ModelCard(tuple(values["class_names"]), form, form.num_steps, None)  # type: ignore[union-attr]
        classes, form, num_steps = tuple(values["class_names"]), from_plain(values["format"]), values["num_steps"]
        make_encoding(form)
        if not all(isinstance(name, str) for name in classes) or not 0 < num_steps <= MOST:
            raise TypeError("a class is a name, and a length is a number")
        return ModelCard(classes, form, int(num_steps), values["checksum"], float(values.get("constant_loss", 1.0)))
