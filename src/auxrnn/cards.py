"""What travels with a model: its classes, how its sequences are read, and which examples it was trained on."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from auxrnn.config import RunConfig
from auxrnn.data.datasets import Dataset
from auxrnn.data.fitting import adopt, fit, measure_constant_loss, settle
from auxrnn.data.formats import Encoding, Format, from_plain, make_encoding, step_kind, to_plain
from auxrnn.data.images import ImageFormat
from auxrnn.data.sequences import Split
from auxrnn.data.splits import Division, divide
from auxrnn.errors import RunError
from auxrnn.networks import InputSpec


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
        kind = step_kind(self.format)
        num_classes = len(self.class_names)
        return InputSpec(kind.input_size, kind.vocabulary_size, num_classes, self.num_steps, self.constant_loss)


def make_card(config: RunConfig, dataset: Dataset, division: Division, *, start: ModelCard | None = None) -> ModelCard:
    """Settle how the sequences of a new run are read, learning from its training examples alone.

    A run that starts from another one's networks reads as that one did: other characters would mean other tokens.
    """
    form = settle(dataset.format, config.data)
    if start is not None:
        form = adopt(form, start.format)
    max_length = None if isinstance(form, ImageFormat) else form.max_length
    rows = division.train
    kept = Split(dataset.flat, rows, dataset.table.label_N[rows], Encoding(lambda value: value, max_length))
    fitted = fit(form, kept, config.data)
    loss = measure_constant_loss(kept._replace(encoding=make_encoding(fitted)))
    return ModelCard(dataset.class_names, fitted, int(kept.length_N.max()), dataset.checksum, loss)


def card_to_json(card: ModelCard) -> str:
    """Return a card as the text of model.json."""
    return json.dumps(card._asdict() | {"format": to_plain(card.format)}, indent=2) + "\n"


def read_card(folder: Path) -> ModelCard:
    """Read the card of a run."""
    path = folder / "model.json"
    try:
        values = json.loads(path.read_text())
        if "image_format" in values:
            return _read_first_version(values)
        return ModelCard(
            tuple(values["class_names"]),
            from_plain(values["format"]),
            values["num_steps"],
            values["checksum"],
            values.get("constant_loss", 1.0),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is missing or damaged; train again into another folder") from error


def _read_first_version(values: dict[str, Any]) -> ModelCard:
    form = from_plain({"kind": "images"} | values["image_format"])
    return ModelCard(tuple(values["class_names"]), form, form.num_steps, None)  # type: ignore[union-attr]  # it is an image's


def division_to_json(division: Division) -> str:
    """Return the splits as the text of splits.json: rows counted from 0, in the order of the files."""
    return json.dumps({name: rows.tolist() for name, rows in division._asdict().items()}) + "\n"


def find_division(config: RunConfig, dataset: Dataset, folder: Path) -> Division:
    """Return the splits of a run: those written in its folder, or where nothing was drawn, what the files say."""
    path = folder / "splits.json"
    if not path.exists():
        return divide(dataset.table, config.data, seed=config.seed)
    try:
        values = json.loads(path.read_text())
        division = Division(*(np.array(values[name], dtype=np.int64) for name in Division._fields))
        if any(len(rows) and not 0 <= rows.min() <= rows.max() < len(dataset.table.label_N) for rows in division):
            raise ValueError("rows that are not there")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is damaged; train again into another folder") from error
    return division


def check_same_data(card: ModelCard, dataset: Dataset) -> None:
    """Refuse data that is not what a run was trained on: its splits would mean other examples."""
    if card.checksum is not None and card.checksum != dataset.checksum:
        raise RunError(f"{dataset.name} has changed since this run began; put it back as it was, or train again")
