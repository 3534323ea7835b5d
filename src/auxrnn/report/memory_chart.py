"""What r-LSTM remembers: for each example the digit, the segment to reconstruct, the reconstruction and the difference.

A segment is shown by the rows of the image that hold it, as many for each example.
"""

from collections.abc import Sequence
from itertools import pairwise

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from auxrnn.report import theme
from auxrnn.report.canvas import SegmentCanvas, crop_rows, mean_errors, outline
from auxrnn.report.charts import LEGEND_LINE, NARROW_BELOW, add_title, draw_lines, new_figure
from auxrnn.report.results import LineChart

PIXEL_COLORS = LinearSegmentedColormap.from_list("pixels", ["#ffffff", "#8b97a8", "#101b2d"])
ERROR_COLORS = LinearSegmentedColormap.from_list("errors", ["#ffffff", "#d98aa8", "#7d0f3f"])
UNREAD_ALPHA = 0.3
ENLARGEMENT = 8
GAP = 1
"""Between the pictures of one example, in pixels of its image."""
LABEL_WIDTH = 110.0


@matplotlib.rc_context(theme.STYLE)
def memory_figure(canvases: Sequence[SegmentCanvas], *, width: float) -> Figure:
    """Draw one example per column, in two blocks on a phone."""
    figure = new_figure(width, _find_height(canvases, width=width))
    _draw_memory(figure, canvases)
    return figure


@matplotlib.rc_context(theme.STYLE)
def overview_figure(chart: LineChart, canvases: Sequence[SegmentCanvas]) -> Figure:
    """Draw a line chart and beside it what the network remembers, each under its title."""
    widths = (700.0, 880.0)
    figure = new_figure(sum(widths), max(400.0, 40.0 + _find_height(canvases, width=widths[1])))
    left, right = figure.subfigures(1, 2, width_ratios=widths, wspace=0.02, squeeze=False).flat
    draw_lines(left, chart)
    add_title(left, chart.title)
    _draw_memory(right, canvases)
    add_title(right, "What r-LSTM remembers of the pixels it read")
    return figure


def _shape(canvases: Sequence[SegmentCanvas], *, width: float) -> tuple[int, int]:
    """Return the number of blocks and of columns."""
    num_columns = 4 if width < NARROW_BELOW else 8
    return -(-len(canvases) // num_columns), num_columns


def _find_height(canvases: Sequence[SegmentCanvas], *, width: float) -> float:
    """Return the height in pixels at which the examples fill the width."""
    num_blocks, num_columns = _shape(canvases, width=width)
    pixel: float = (width - LABEL_WIDTH) / num_columns / (canvases[0].image_YX.shape[1] + GAP)
    num_legend_lines = 4 if width < NARROW_BELOW else 1
    return num_blocks * (pixel * _tops(canvases)[-1] + 50.0) + LEGEND_LINE * num_legend_lines


def _tops(canvases: Sequence[SegmentCanvas]) -> list[int]:
    """Return the rows where the digit, the three strips and what would follow them begin."""
    height, strip = len(canvases[0].image_YX), crop_rows(canvases)[0]
    return [0, *(height + GAP + place * (strip.stop - strip.start + GAP) for place in range(4))]


def _draw_memory(figure: Figure | SubFigure, canvases: Sequence[SegmentCanvas]) -> None:
    grid = figure.subplots(*_shape(canvases, width=float(figure.bbox.width)), squeeze=False)
    tops = _tops(canvases)
    for axes in grid.flat[len(canvases) :]:
        axes.set_axis_off()
    for axes, canvas, rows in zip(grid.flat, canvases, crop_rows(canvases), strict=False):
        _draw_example(axes, canvas, rows, tops=tops)
        axes.set(xlim=(-0.6, canvas.image_YX.shape[1] - 0.4), ylim=(tops[-1] - GAP - 0.4, -0.6))
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    for axes in grid[:, 0]:
        middles = [(top + below - GAP) / 2 for top, below in pairwise(tops)]
        axes.set_yticks(middles, ["digit", "segment", "reconstructed", "error"])
    num_legend_columns = 1 if figure.bbox.width < NARROW_BELOW else 4
    figure.legend(handles=_legend(), loc="outside lower left", ncols=num_legend_columns)


def _draw_example(axes: Axes, canvas: SegmentCanvas, rows: slice, *, tops: Sequence[int]) -> None:
    mark, paper = theme.color("mark"), theme.color("paper")
    alpha_YX = np.where(canvas.is_read_YX, 1.0, UNREAD_ALPHA)
    _show_pixels(axes, canvas.image_YX, PIXEL_COLORS, top=tops[0], alpha_YX=alpha_YX)
    axes.add_collection(LineCollection(outline(canvas.is_segment_YX), colors=mark, linewidths=1.6))
    axes.plot(*canvas.anchor, "o", color=mark, markeredgecolor=paper, markersize=7, clip_on=False, zorder=5)
    shown = ((canvas.truth_YX, PIXEL_COLORS), (canvas.rebuilt_YX, PIXEL_COLORS), (canvas.error_YX, ERROR_COLORS))
    for top, (values_YX, colors) in zip(tops[1:], shown, strict=False):
        _show_pixels(axes, values_YX[rows], colors, top=top, alpha_YX=np.ones_like(values_YX[rows]))
    for top in tops[1:3]:
        corner = (canvas.given[0] - 0.5, canvas.given[1] - rows.start + top - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=mark, linewidth=1.6, clip_on=False, zorder=5))
    axes.set_title(f"{canvas.num_steps_back} steps", loc="center", pad=4, size="small")
    axes.set_xlabel(f"{mean_errors([canvas])[0]:.2f}", size="small")


def _show_pixels(
    axes: Axes, values_YX: Float[np.ndarray, "Y X"], colors: Colormap, *, top: int, alpha_YX: Float[np.ndarray, "Y X"]
) -> None:
    """Paint values from 0 to 1 from the row `top` on; NaN shows the neutral ground."""
    height, width = values_YX.shape
    ground = theme.color("outside")
    axes.add_patch(Rectangle((-0.5, top - 0.5), width, height, facecolor=ground, edgecolor=ground, clip_on=False))
    rgba = colors(np.clip(np.nan_to_num(values_YX), 0, 1))
    rgba[..., 3] = np.where(np.isnan(values_YX), 0.0, alpha_YX)
    # Not every reader of SVG or PDF keeps the edges of enlarged pixels, so they come enlarged.
    enlarged = rgba.repeat(ENLARGEMENT, axis=0).repeat(ENLARGEMENT, axis=1)
    extent = (-0.5, width - 0.5, top + height - 0.5, top - 0.5)
    axes.imshow(enlarged, interpolation="none", extent=extent, zorder=2)


def _legend() -> list[Line2D | Patch]:
    mark = theme.color("mark")
    return [
        Patch(fill=False, edgecolor=mark, linewidth=1.6, label="segment"),
        Line2D([], [], color=mark, marker="o", linestyle="", label="anchor (paler: not read yet)"),
        Line2D([], [], color=mark, marker="s", fillstyle="none", linestyle="", label="given pixel"),
        Patch(facecolor=ERROR_COLORS(0.5), edgecolor="none", label="absolute error, its mean below"),
    ]
