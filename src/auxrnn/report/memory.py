"""What an r-LSTM remembers: for each image the digit, the segment to reconstruct, its reconstruction and the error.

A segment is shown by the rows of the image that hold it, equally many for each image. Adds `K`, the images that are
shown, and `Y` and `X`, their rows and columns.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from auxrnn.report import theme
from auxrnn.report.charts import LEGEND_LINE, NARROW_BELOW, add_title, draw_lines, new_figure
from auxrnn.report.records import Reconstructions
from auxrnn.report.results import LineChart

PIXEL_COLORS = LinearSegmentedColormap.from_list("pixels", ["#ffffff", "#8b97a8", "#101b2d"])
ERROR_COLORS = LinearSegmentedColormap.from_list("errors", ["#ffffff", "#d98aa8", "#7d0f3f"])
UNREAD_ALPHA = 0.3
PARTS = ("image", "segment", "reconstructed", "error")
LABEL_WIDTH = 110.0


@matplotlib.rc_context(theme.STYLE)
def memory_figure(shown: Reconstructions, *, width: float) -> Figure:
    """Draw one image per column, in blocks of four on a phone."""
    figure = new_figure(width, _find_height(shown, width))
    _draw_memory(figure, shown)
    return figure


@matplotlib.rc_context(theme.STYLE)
def overview_figure(chart: LineChart, shown: Reconstructions) -> Figure:
    """Draw a line chart and beside it what the network remembers, each under its title."""
    widths = (700.0, 880.0)
    figure = new_figure(sum(widths), max(400.0, 40.0 + _find_height(shown, widths[1])))
    left, right = figure.subfigures(1, 2, width_ratios=widths, wspace=0.02, squeeze=False).flat
    draw_lines(left, chart)
    add_title(left, chart.title)
    _draw_memory(right, shown)
    add_title(right, "What r-LSTM remembers of the pixels it read")
    return figure


def _count_columns(width: float) -> int:
    return 4 if width < NARROW_BELOW else 8


def _count_rows(shown: Reconstructions) -> int:
    """Return how many rows of an image the segments need."""
    return int((shown.anchor_K // shown.width - shown.start_K // shown.width).max()) + 1


def _find_height(shown: Reconstructions, width: float) -> float:
    """Return the height in pixels at which the images fill the width."""
    num_columns = _count_columns(width)
    num_blocks = -(-len(shown.image_KT) // num_columns)
    pixel = (width - LABEL_WIDTH) / num_columns / (shown.width + 1)
    block = pixel * (shown.height + (len(PARTS) - 1) * _count_rows(shown)) + 90.0
    return num_blocks * block + LEGEND_LINE * (len(PARTS) if width < NARROW_BELOW else 1)


def _draw_memory(figure: Figure | SubFigure, shown: Reconstructions) -> None:
    num_columns, num_rows = _count_columns(float(figure.bbox.width)), _count_rows(shown)
    num_blocks = -(-len(shown.image_KT) // num_columns)
    heights = [shown.height, *[num_rows] * (len(PARTS) - 1)] * num_blocks
    grid = figure.subplots(len(heights), num_columns, squeeze=False, height_ratios=heights)
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[], facecolor=theme.color("outside"))
        axes.grid(visible=False)
        axes.spines[:].set(visible=True, color=theme.color("outside"))
    columns = np.concatenate(np.split(grid, num_blocks), axis=1).T
    for example, column in enumerate(columns[: len(shown.image_KT)]):
        _draw_example(column.tolist(), shown, example, num_rows=num_rows)
    for axes in columns[len(shown.image_KT) :].flat:
        axes.set_axis_off()
    for row, axes in enumerate(grid[:, 0]):
        axes.set_ylabel(PARTS[row % len(PARTS)], rotation=0, ha="right", va="center", size="small")
    mark = theme.color("mark")
    handles = [
        Patch(fill=False, edgecolor=mark, linewidth=1.6, label="segment"),
        Line2D([], [], color=mark, marker="o", linestyle="", label="anchor (paler: not read yet)"),
        Line2D([], [], color=mark, marker="s", fillstyle="none", linestyle="", label="given pixel"),
        Patch(facecolor=ERROR_COLORS(0.5), edgecolor="none", label="absolute error, its mean below"),
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=1 if figure.bbox.width < NARROW_BELOW else 4)


def _draw_example(column: Sequence[Axes], shown: Reconstructions, example: int, *, num_rows: int) -> None:
    start, anchor = int(shown.start_K[example]), int(shown.anchor_K[example])
    shape, mark = (shown.height, shown.width), theme.color("mark")
    step_YX = np.arange(shown.height * shown.width).reshape(shape)
    image_YX = shown.image_KT[example].astype(float).reshape(shape)
    predicted_YX = shown.find_predicted()[example].reshape(shape)
    is_segment_YX = (step_YX >= start) & (step_YX <= anchor)
    given = anchor if shown.is_reversed else start
    error_YX = np.abs(predicted_YX - image_YX)

    digit, segment, rebuilt, error = column
    look: dict[str, Any] = {"cmap": PIXEL_COLORS, "vmin": 0, "vmax": 1, "interpolation": "none"}
    # As colors: SVG files would lose an `alpha` of each pixel.
    pixels = PIXEL_COLORS(image_YX)
    pixels[..., 3] = np.where(step_YX <= anchor, 1.0, UNREAD_ALPHA)
    digit.imshow(pixels, interpolation="none")
    segment.imshow(np.where(is_segment_YX, image_YX, np.nan), **look)
    rebuilt.imshow(np.where(step_YX == given, image_YX, predicted_YX), **look)
    error.imshow(error_YX, **(look | {"cmap": ERROR_COLORS}))

    _outline(digit, is_segment_YX)
    y, x = divmod(anchor, shown.width)
    digit.plot(x, y, "o", color=mark, markeredgecolor=theme.color("paper"), markersize=7, clip_on=False, zorder=5)
    first_row = min(start // shown.width, shown.height - num_rows)
    for axes in (segment, rebuilt, error):
        axes.set_ylim(first_row + num_rows - 0.5, first_row - 0.5)
    for axes in (segment, rebuilt):
        corner = (given % shown.width - 0.5, given // shown.width - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=mark, linewidth=1.6, clip_on=False, zorder=5))
    digit.set_title(f"{anchor - start} steps", loc="center", pad=4, size="small")
    error.set_xlabel(f"{np.nanmean(error_YX):.2f}", size="small")


def _outline(axes: Axes, is_segment_YX: Bool[np.ndarray, "Y X"]) -> None:
    """Draw the edge of a segment: read row by row, it is one stretch of rows in each column."""
    num_rows_X = is_segment_YX.sum(axis=0)
    top_X = np.where(num_rows_X > 0, is_segment_YX.argmax(axis=0) - 0.5, np.nan)
    edges = np.arange(len(top_X) + 1) - 0.5
    look: dict[str, Any] = {"edgecolor": theme.color("mark"), "linewidth": 1.6, "clip_on": False, "zorder": 4}
    axes.stairs(top_X + num_rows_X, edges, baseline=top_X, **look)
