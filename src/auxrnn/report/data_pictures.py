"""Pictures of data as PNG: some examples as a person sees them, and as the model reads them.

Dimension letters: `T` steps.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from auxrnn.report.charts import to_png
from auxrnn.report.example_rows import Shown
from auxrnn.report.image_pictures import image_figure
from auxrnn.report.series_pictures import series_figure
from auxrnn.report.text_pictures import text_figure

__all__ = ["Shown", "draw_images", "draw_series", "draw_texts"]


def draw_images(
    shown: Sequence[Shown], *, size: tuple[int, int], order_T: Int[np.ndarray, " T"] | None, title: str
) -> bytes:
    """Draw up to 8 images of a height and width, and beside each its pixels in the order in which they are read.

    `order_T` is a permutation: step `t` is the pixel `order_T[t]`, counted row by row. Of long sequences both ends are
    shown.
    """
    return to_png(image_figure(shown, size=size, order_T=order_T, title=title))


def draw_texts(shown: Sequence[Shown], *, title: str, unknown: int | None = None) -> bytes:
    """Draw up to 8 texts, and below each its first and last steps with their tokens.

    `unknown` is the token that all characters outside of the alphabet share; their steps are marked. None for bytes.
    """
    return to_png(text_figure(shown, title=title, unknown=unknown))


def draw_series(shown: Sequence[Shown], *, title: str) -> bytes:
    """Draw up to 8 series, their channels as curves; they end together, as in a batch."""
    return to_png(series_figure(shown, title=title))
