"""What a format learns from the training data alone: an alphabet, or the scale of each channel."""

import numpy as np
from jaxtyping import Int64

from auxrnn.config import DataConfig
from auxrnn.data.formats import Format, kind_of
from auxrnn.data.images import ImageFormat
from auxrnn.data.sequences import Split
from auxrnn.data.series import SeriesFormat, fit_scale
from auxrnn.data.texts import NUM_CODE_POINTS, TextFormat, choose_alphabet
from auxrnn.errors import UsageError

NUM_MEASURED = 1000


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
