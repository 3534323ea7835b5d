"""Formats of sequences: plain values that a run records, and the encoding that makes a network's input of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64

from auxrnn.config import DataConfig
from auxrnn.data.images import ImageFormat, to_unit
from auxrnn.data.sequences import Array, Encoding, Split
from auxrnn.data.series import SeriesFormat, fit_scale
from auxrnn.data.texts import NUM_CODE_POINTS, TextFormat, choose_alphabet
from auxrnn.errors import UsageError

Format = ImageFormat | TextFormat | SeriesFormat
KINDS: dict[str, type[ImageFormat] | type[TextFormat] | type[SeriesFormat]] = {
    "images": ImageFormat,
    "texts": TextFormat,
    "series": SeriesFormat,
}
NUM_MEASURED = 1000


class StepKind(NamedTuple):
    """What a step is: a vector of `input_size` features, or a token of a vocabulary."""

    input_size: int
    vocabulary_size: int | None


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


def settle(form: Format, data: DataConfig) -> Format:
    """Return the format with the user's options; options that its kind does not have are refused."""
    if isinstance(form, TextFormat):
        max_length = form.max_length if data.max_length is None else data.max_length
        return form._replace(max_length=max_length, is_backward=data.read_backward)
    if data.read_backward:
        raise UsageError(f"read_backward has no effect on {kind_of(form)}; remove it")
    if isinstance(form, SeriesFormat):
        return form._replace(max_length=data.max_length)
    if data.max_length is not None:
        raise UsageError("max_length has no effect on images; image_size makes them shorter")
    return form


def fit(form: Format, train: Split, data: DataConfig) -> Format:
    """Return the format with what it learns from the training examples."""
    if isinstance(form, TextFormat) and form.tokens == "characters" and form.alphabet is None:
        alphabet = choose_alphabet(count_all_characters(train), most=data.alphabet_size)
        return form._replace(alphabet=alphabet)
    if isinstance(form, SeriesFormat) and form.mean is None:
        return fit_scale(form, train.values())
    return form


def measure_constant_loss(train: Split) -> float:
    """Return the auxiliary loss per step of the best constant prediction: variance of vectors, entropy of tokens.

    Measured on at most `NUM_MEASURED` training examples; 1 where nothing ever changes, so that it can be divided by.
    """
    chosen = np.unique(np.linspace(0, train.num_examples - 1, min(NUM_MEASURED, train.num_examples)).astype(np.int64))
    encoded = [train.encoding.encode(value_K) for value_K in train.select(chosen).values()]
    value_K = np.concatenate(encoded) if encoded else np.zeros((0, 1), np.float32)
    if not len(value_K):
        return 1.0
    if np.issubdtype(value_K.dtype, np.integer):
        share_V = np.bincount(value_K) / len(value_K)
        share_V = share_V[share_V > 0]
        loss = float(-(share_V * np.log(share_V)).sum())
    else:
        loss = float(value_K.astype(np.float64).var(axis=0).sum())
    return loss if loss > 0 else 1.0


def count_all_characters(split: Split) -> Int64[np.ndarray, " V"]:
    """Count how often each code point occurs in a split of texts."""
    count_V = np.zeros(NUM_CODE_POINTS, dtype=np.int64)
    for value_K in split.values():
        # No longer than its largest code point: a million entries would cost more than the counting.
        found_V = np.bincount(value_K)
        count_V[: len(found_V)] += found_V
    return count_V


def adopt(form: Format, other: Format) -> Format:
    """Return the format with what another one has learned, so that its network can be trained further."""
    if kind_of(form) != kind_of(other):
        raise UsageError(f"init_from is a run on {kind_of(other)}, and these are {kind_of(form)}; leave it out")
    if isinstance(form, TextFormat) and isinstance(other, TextFormat):
        if form.tokens != other.tokens:
            raise UsageError(
                f"tokens is {form.tokens!r}, and the run of --init-from reads {other.tokens}; give the same"
            )
        return form._replace(alphabet=other.alphabet)
    if isinstance(form, SeriesFormat) and isinstance(other, SeriesFormat):
        return form._replace(mean=other.mean, deviation=other.deviation)
    assert isinstance(form, ImageFormat)
    return form
