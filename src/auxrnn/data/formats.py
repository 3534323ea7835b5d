"""Formats of sequences: plain values that a run records, and the encoding that makes a network's input of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64, Shaped

from auxrnn.data.images import ImageFormat, to_unit
from auxrnn.data.series import SeriesFormat
from auxrnn.data.texts import TextFormat

Format = ImageFormat | TextFormat | SeriesFormat
KINDS: dict[str, type[ImageFormat] | type[TextFormat] | type[SeriesFormat]] = {
    "images": ImageFormat,
    "texts": TextFormat,
    "series": SeriesFormat,
}
Array = Shaped[np.ndarray, "..."]


class StepKind(NamedTuple):
    """What a step is: a vector of `input_size` features, or a token of a vocabulary."""

    input_size: int
    vocabulary_size: int | None


class Encoding(NamedTuple):
    """How kept values become what a network reads: vectors (float32) or tokens (int64)."""

    encode: Callable[[Array], Array]
    max_length: int | None = None
    is_backward: bool = False


def kind_of(form: Format) -> str:
    """Return the name of a format's kind: images, texts or series."""
    return next(kind for kind, cls in KINDS.items() if isinstance(form, cls))


def to_plain(form: Format) -> dict[str, Any]:
    """Return a format as plain values for JSON."""
    return {"kind": kind_of(form)} | form._asdict()


def from_plain(values: dict[str, Any]) -> Format:
    """Return the format that `to_plain` was given; anything else raises ValueError, KeyError or TypeError."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    return KINDS[fields.pop("kind")](**fields)


def step_kind(form: Format) -> StepKind:
    """Return what a network must be able to read."""
    if isinstance(form, TextFormat):
        return StepKind(1, form.vocabulary_size)
    return StepKind(form.channels if isinstance(form, ImageFormat) else form.num_channels, None)


def make_encoding(form: Format) -> Encoding:
    """Return the encoding of a format."""
    if isinstance(form, ImageFormat):
        return Encoding(to_unit)
    if isinstance(form, TextFormat):
        return Encoding(_look_up(form), form.max_length, form.is_backward)
    return Encoding(_standardize(form), form.max_length)


def _look_up(form: TextFormat) -> Callable[[Array], Int64[np.ndarray, "..."]]:
    table_V = form.make_table()

    def encode(value: Array) -> Int64[np.ndarray, "..."]:
        token: Int64[np.ndarray, "..."] = table_V[value].astype(np.int64)
        return token

    return encode


def _standardize(form: SeriesFormat) -> Callable[[Array], Array]:
    assert form.mean is not None, "the training data must be known first"
    mean_D, deviation_D = np.array(form.mean), np.array(form.deviation)

    def encode(value: Array) -> Array:
        # In double precision: a large mean would cost single precision most of its digits.
        scaled: Array = ((value - mean_D) / deviation_D).astype(np.float32)
        return scaled

    return encode
