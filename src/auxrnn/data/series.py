"""Series of numbers as sequences: one step is the values of all channels at one time, standardized.

Dimension letters: `K` steps of many series, one after the other, `D` channels of a step.
"""

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


class Moments:
    """Mean and standard deviation of each channel, from blocks of any size, in double precision."""

    def __init__(self, num_channels: int) -> None:
        self._count = 0
        self._mean_D = np.zeros(num_channels)
        self._square_D = np.zeros(num_channels)

    def add(self, value_KD: Float32[np.ndarray, "K D"]) -> None:
        """Count some steps (Chan et al., 1983: sums of squares around the mean, merged)."""
        if not len(value_KD):
            return
        block_KD: Float64[np.ndarray, "K D"] = value_KD.astype(np.float64)
        mean_D = block_KD.mean(axis=0)
        shift_D = mean_D - self._mean_D
        total = self._count + len(block_KD)
        self._square_D += ((block_KD - mean_D) ** 2).sum(axis=0) + shift_D**2 * self._count * len(block_KD) / total
        self._mean_D += shift_D * len(block_KD) / total
        self._count = total

    def fit(self, series_format: SeriesFormat) -> SeriesFormat:
        """Return the format that scales by what was counted; a channel that never changes is only moved to zero."""
        deviation_D = np.sqrt(self._square_D / max(self._count, 1))
        # No tolerance is needed: sums of up to 2**29 equal 32-bit floats are exact in double precision.
        deviation_D = np.where(deviation_D > 0, deviation_D, 1.0)
        return series_format._replace(mean=tuple(self._mean_D.tolist()), deviation=tuple(deviation_D.tolist()))


def fit_channels(num_channels: int, like: object, *, place: str) -> SeriesFormat:
    """Return the format of series with so many channels: `like`, if it is given, which must fit them."""
    if like is None:
        return SeriesFormat(num_channels)
    if not isinstance(like, SeriesFormat):
        raise UsageError(f"{place} holds series of numbers; give the same kind of data as the training data")
    if like.num_channels != num_channels:
        what = f"{count_channels(num_channels)} instead of {count_channels(like.num_channels)}"
        raise RunError(f"{place} has {what}; give the channels of the training data, in their order")
    return like


def count_channels(number: int) -> str:
    """Return a number of channels in words: "1 channel", "3 channels"."""
    return "1 channel" if number == 1 else f"{number:,} channels"
