"""Segments of a pixel sequence laid out on the image they were read from; arrays only, nothing is drawn here.

Adds `K`, the test examples that are shown, `P`, the rebuilt pixels of all of them, and `Y` and `X`, the rows and
columns of the canvas.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from auxrnn.report.records import Reconstructions

Point = tuple[int, int]
"""Column and row of a pixel, counted from the top left."""
Edge = tuple[tuple[float, float], tuple[float, float]]
"""A side of a pixel, from corner to corner; pixel (x, y) is the square of side 1 around that point."""


class SegmentCanvas(NamedTuple):
    """One example and its segment on the canvas; NaN where there is nothing to show."""

    image_YX: Float[np.ndarray, "Y X"]
    is_read_YX: Bool[np.ndarray, "Y X"]
    is_segment_YX: Bool[np.ndarray, "Y X"]
    truth_YX: Float[np.ndarray, "Y X"]
    rebuilt_YX: Float[np.ndarray, "Y X"]
    error_YX: Float[np.ndarray, "Y X"]
    anchor: Point
    given: Point
    num_steps_back: int


class MemoryErrors(NamedTuple):
    """Mean squared errors a pixel, pixels from 0 to 1: of what was rebuilt, of blank paper, and of the mean image."""

    rebuilt: float
    blank: float
    mean_image: float


def lay_out_all(reconstructions: Reconstructions, *, most: int) -> list[SegmentCanvas]:
    """Lay out the first examples, at most `most`, with pixels scaled so that the images span 0 to 1."""
    low, high = float(reconstructions.image_KT.min()), float(reconstructions.image_KT.max())
    span = (high - low) or 1.0
    scaled = reconstructions._replace(
        image_KT=(reconstructions.image_KT - low) / span,
        reconstruction_KS=(reconstructions.reconstruction_KS - low) / span,
    )
    return [lay_out(scaled, example) for example in range(min(most, len(scaled.image_KT)))]


def lay_out(reconstructions: Reconstructions, example: int) -> SegmentCanvas:
    """Put an example, its true segment, the rebuilt one and their absolute difference where the pixels were read.

    The rebuilt segment shows the given step with its true value; the difference leaves it out.
    """
    image_T = reconstructions.image_KT[example].astype(float)
    if image_T.size != reconstructions.height * reconstructions.width:
        raise ValueError(
            f"an example has {image_T.size} steps and the canvas {reconstructions.height} x {reconstructions.width} "
            "pixels; one step must be one pixel"
        )
    start, length = int(reconstructions.start_K[example]), int(reconstructions.length_K[example])
    anchor = int(reconstructions.anchor_K[example])
    given = start + length if reconstructions.is_reversed else start
    first_predicted = start if reconstructions.is_reversed else start + 1

    step_T = np.arange(image_T.size)
    is_segment_T = (step_T >= start) & (step_T <= start + length)
    predicted_T = np.full_like(image_T, np.nan)
    predicted_T[first_predicted : first_predicted + length] = reconstructions.reconstruction_KS[example, :length]

    shape = (reconstructions.height, reconstructions.width)
    return SegmentCanvas(
        image_YX=image_T.reshape(shape),
        is_read_YX=(step_T <= anchor).reshape(shape),
        is_segment_YX=is_segment_T.reshape(shape),
        truth_YX=np.where(is_segment_T, image_T, np.nan).reshape(shape),
        rebuilt_YX=np.where(step_T == given, image_T, predicted_T).reshape(shape),
        error_YX=np.abs(predicted_T - image_T).reshape(shape),
        anchor=(anchor % shape[1], anchor // shape[1]),
        given=(given % shape[1], given // shape[1]),
        num_steps_back=anchor - start,
    )


def outline(is_inside_YX: Bool[np.ndarray, "Y X"]) -> list[Edge]:
    """Return the pixel sides that separate inside from outside; what lies beyond the canvas is outside."""
    padded_YX = np.pad(is_inside_YX, 1)
    edges: list[Edge] = []
    for y, x in np.argwhere(padded_YX[1:, :] != padded_YX[:-1, :]):
        edges.append(((x - 1.5, y - 0.5), (x - 0.5, y - 0.5)))
    for y, x in np.argwhere(padded_YX[:, 1:] != padded_YX[:, :-1]):
        edges.append(((x - 0.5, y - 1.5), (x - 0.5, y - 0.5)))
    return edges


def crop_rows(canvases: Sequence[SegmentCanvas]) -> list[slice]:
    """Return for each canvas the rows that hold its segment: as many for each, none beyond the canvas."""
    spans = [np.flatnonzero(canvas.is_segment_YX.any(axis=1)) for canvas in canvases]
    num_rows = max(int(rows[-1] - rows[0]) + 1 for rows in spans)
    firsts = [min(int(rows[0]), len(canvas.image_YX) - num_rows) for rows, canvas in zip(spans, canvases, strict=True)]
    return [slice(first, first + num_rows) for first in firsts]


def mean_errors(canvases: Sequence[SegmentCanvas]) -> tuple[float, float]:
    """Return the mean absolute error per rebuilt pixel, and that of leaving the same pixels at 0."""
    is_rebuilt = [~np.isnan(canvas.error_YX) for canvas in canvases]
    errors = [canvas.error_YX[mask_YX] for canvas, mask_YX in zip(canvases, is_rebuilt, strict=True)]
    truths = [canvas.image_YX[mask_YX] for canvas, mask_YX in zip(canvases, is_rebuilt, strict=True)]
    return float(np.concatenate(errors).mean()), float(np.abs(np.concatenate(truths)).mean())


def memory_errors(reconstructions: Reconstructions, mean_image_T: Float[np.ndarray, " T"]) -> MemoryErrors:
    """Return the mean squared errors over all rebuilt pixels, of the network and of two guesses without a memory."""
    offset_S = np.arange(reconstructions.reconstruction_KS.shape[1])
    is_rebuilt_KS = offset_S < reconstructions.length_K[:, None]
    first_K = reconstructions.start_K + (0 if reconstructions.is_reversed else 1)
    step_P = (first_K[:, None] + offset_S)[is_rebuilt_KS]
    truth_P = reconstructions.image_KT[np.nonzero(is_rebuilt_KS)[0], step_P]
    guesses = (reconstructions.reconstruction_KS[is_rebuilt_KS], np.zeros_like(truth_P), mean_image_T[step_P])
    return MemoryErrors(*(float(np.mean((guess_P - truth_P) ** 2)) for guess_P in guesses))
