"""Series of numbers as sequences: one step is the values of all channels at one time, standardized.

Dimension letters: `K` steps of many series, one after the other, `D` channels of a step.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64

from auxrnn.errors import RunError, UsageError


class SeriesFormat(NamedTuple):
    """How numbers are scaled before they are read: plain values, so that a run can record them."""

    num_channels: int
    mean: tuple[float, ...] | None = None
    """What is taken from each channel; None until the training data is known."""
    deviation: tuple[float, ...] | None = None
    """What each channel is then divided by."""
    max_length: int | None = None
    """How many steps of a series are read: the first ones."""


def fit_scale(form: SeriesFormat, blocks: Iterable[Float32[np.ndarray, "_ D"]]) -> SeriesFormat:
    """Return the format that scales by mean and deviation of all steps; a channel that never changes is only moved.

    Blocks of any size are counted in double precision (Chan et al., 1983: squares around the mean, merged).
    """
    count, mean_D, square_D = 0, np.zeros(form.num_channels), np.zeros(form.num_channels)
    for value_KD in blocks:
        if not len(value_KD):
            continue
        block_KD: Float64[np.ndarray, "K D"] = value_KD.astype(np.float64)
        block_mean_D, total = block_KD.mean(axis=0), count + len(block_KD)
        shift_D = block_mean_D - mean_D
        square_D += ((block_KD - block_mean_D) ** 2).sum(axis=0) + shift_D**2 * count * len(block_KD) / total
        mean_D += shift_D * len(block_KD) / total
        count = total
    deviation_D = np.sqrt(square_D / max(count, 1))
    # No tolerance is needed: sums of up to 2**29 equal 32-bit floats are exact in double precision.
    deviation_D = np.where(deviation_D > 0, deviation_D, 1.0)
    return form._replace(mean=tuple(mean_D.tolist()), deviation=tuple(deviation_D.tolist()))


def fit_channels(places: Sequence[tuple[str, int]], like: object) -> SeriesFormat:
    """Return the format of series at some places, each with its number of channels; `like` is kept, and must fit."""
    if not isinstance(like, SeriesFormat | None):
        raise UsageError(f"{places[0][0]} holds series of numbers; give the same kind of data as the training data")
    form = like or SeriesFormat(places[0][1])
    for place, num_channels in places:
        if num_channels != form.num_channels:
            what = f"{count_channels(num_channels)} instead of {count_channels(form.num_channels)}"
            raise RunError(f"{place} has {what}; give the channels of the training data, in their order")
    return form


def count_channels(number: int) -> str:
    """Return a number of channels in words: "1 channel", "3 channels"."""
    return "1 channel" if number == 1 else f"{number:,} channels"
