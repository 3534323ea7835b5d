"""Labels beside the ends of lines, moved apart just enough to be read."""

from collections.abc import Sequence

import numpy as np
from sklearn.isotonic import isotonic_regression


def spread_labels(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Move the wanted heights apart by at least `gap`, within `low` and `high`, by the least squared distance.

    Labels keep the order of their wanted heights; equal ones keep the order given.
    """
    room = high - low - gap * (len(wanted) - 1)
    if room < 0:
        raise ValueError(f"{len(wanted)} labels {gap} apart do not fit between {low} and {high}; make the gap smaller")
    if len(wanted) == 0:
        return []
    order = np.argsort(wanted, kind="stable")
    # Without the gaps that must lie below each label, "apart by at least the gap" is just "never falling".
    gaps = gap * np.arange(len(wanted))
    placed = isotonic_regression(np.asarray(wanted, dtype=float)[order] - gaps, y_min=low, y_max=low + room) + gaps
    heights = np.empty(len(wanted))
    heights[order] = placed
    return [float(height) for height in heights]
