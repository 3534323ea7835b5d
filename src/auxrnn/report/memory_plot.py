"""What r-LSTM remembers: for each example the digit, the segment asked for, the rebuilt one and the difference.

The segment is shown by the rows of the image that hold it, as many for each example.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.patches import Rectangle

from auxrnn.report import theme
from auxrnn.report.canvas import Point, SegmentCanvas, crop_rows, mean_errors, outline
from auxrnn.report.panel import Box, Panel

PIXEL_COLORS = LinearSegmentedColormap.from_list("pixels", ["#ffffff", "#8b97a8", "#101b2d"])
ERROR_COLORS = LinearSegmentedColormap.from_list("errors", ["#ffffff", "#d98aa8", "#7d0f3f"])
UNREAD_ALPHA = 0.3
ENLARGEMENT = 8

FONT_SIZE = 13.0
LETTER_WIDTH = 0.52 * FONT_SIZE
LABEL_WIDTH = 74.0
COLUMN_GAP = 10.0
# Half of a frame, or of the mark of an anchor, lies outside its cell; the picture must not cut it off.
FRAME_ROOM = 4.0
HEADER_HEIGHT = 24.0
STRIP_GAP = 7.0
FOOTER_HEIGHT = 46.0
KEY_HEIGHT = 22.0
KEY_PAD = 9.0
SWATCH_SIZE = 12.0
KEY_TEXTS = ("segment", "anchor (paler: not yet read)", "given pixel", "error, 0 to 1")


class Grid(NamedTuple):
    """Sizes that follow from the width of the figure and from what it shows; examples stand in blocks of columns."""

    columns: int
    num_blocks: int
    cell_width: float
    digit_height: float
    strip_height: float

    @property
    def block_height(self) -> float:
        """How high one block is, from its captions to its mean errors."""
        return HEADER_HEIGHT + self.digit_height + 3 * (STRIP_GAP + self.strip_height) + FOOTER_HEIGHT


def draw_memory(panel: Panel, canvases: Sequence[SegmentCanvas], *, columns: int) -> None:
    """Fill the panel, which should be `memory_height` high, with the examples and a key below them."""
    grid = _grid(canvases, width=panel.box.width, columns=columns)
    for block in range(grid.num_blocks):
        _label_rows(panel, grid, top=block * grid.block_height)
    for index, (canvas, rows) in enumerate(zip(canvases, crop_rows(canvases), strict=True)):
        left = LABEL_WIDTH + (index % columns) * (grid.cell_width + COLUMN_GAP)
        _draw_example(panel, grid, canvas, rows=rows, corner=(left, (index // columns) * grid.block_height))
    _draw_key(panel, top=grid.num_blocks * grid.block_height)


def memory_height(canvases: Sequence[SegmentCanvas], *, width: float, columns: int) -> float:
    """Give the height at which pixels are square and nothing is left over."""
    grid = _grid(canvases, width=width, columns=columns)
    return grid.num_blocks * grid.block_height + (1 + max(line for _, line in _place_key(width))) * KEY_HEIGHT


def _grid(canvases: Sequence[SegmentCanvas], *, width: float, columns: int) -> Grid:
    cell_width = (width - LABEL_WIDTH - (columns - 1) * COLUMN_GAP - FRAME_ROOM) / columns
    height, num_pixels = canvases[0].image_YX.shape
    strip = crop_rows(canvases)[0]
    pixel = cell_width / num_pixels
    return Grid(columns, -(-len(canvases) // columns), cell_width, pixel * height, pixel * (strip.stop - strip.start))


def _strip_top(grid: Grid, strip: int) -> float:
    return HEADER_HEIGHT + grid.digit_height + STRIP_GAP + strip * (grid.strip_height + STRIP_GAP)


def _label_rows(panel: Panel, grid: Grid, *, top: float) -> None:
    heights = [HEADER_HEIGHT / 2, HEADER_HEIGHT + grid.digit_height / 2]
    heights += [_strip_top(grid, strip) + grid.strip_height / 2 for strip in range(3)]
    heights += [_strip_top(grid, 3) + 7]
    for text, height in zip(("steps back", "digit", "segment", "rebuilt", "error", "mean error"), heights, strict=True):
        panel.add_text((0.0, top + height), text, size=FONT_SIZE - 1, color=theme.color("muted"))


def _draw_example(panel: Panel, grid: Grid, canvas: SegmentCanvas, *, rows: slice, corner: tuple[float, float]) -> None:
    left, top = corner
    middle = left + grid.cell_width / 2
    ink, steps_back, error = theme.color("ink"), str(canvas.num_steps_back), f"{mean_errors([canvas])[0]:.2f}"
    panel.add_text((middle, top + HEADER_HEIGHT / 2), steps_back, size=FONT_SIZE, color=ink, align="center")
    panel.add_text((middle, top + _strip_top(grid, 3) + 7), error, size=FONT_SIZE, color=ink, align="center")

    digit = panel.add_axes(Box(left, top + HEADER_HEIGHT, grid.cell_width, grid.digit_height))
    alpha_YX = np.where(canvas.is_read_YX, 1.0, UNREAD_ALPHA)
    _show_pixels(digit, canvas.image_YX, PIXEL_COLORS, alpha_YX=alpha_YX)
    digit.add_collection(LineCollection(outline(canvas.is_segment_YX), colors=theme.color("mark"), linewidths=1.6))
    _mark_anchor(digit, canvas.anchor)

    strips = ((canvas.truth_YX, PIXEL_COLORS), (canvas.rebuilt_YX, PIXEL_COLORS), (canvas.error_YX, ERROR_COLORS))
    for strip, (values_YX, colors) in enumerate(strips):
        axes = panel.add_axes(Box(left, top + _strip_top(grid, strip), grid.cell_width, grid.strip_height))
        _show_pixels(axes, values_YX[rows], colors, alpha_YX=np.ones_like(values_YX[rows]))
        if colors is PIXEL_COLORS:
            _mark_given(axes, (canvas.given[0], canvas.given[1] - rows.start))


def _show_pixels(
    axes: Axes, values_YX: Float[np.ndarray, "Y X"], colors: Colormap, *, alpha_YX: Float[np.ndarray, "Y X"]
) -> None:
    """Paint values from 0 to 1 one pixel a cell; NaN leaves the neutral ground to be seen."""
    rgba = colors(np.clip(np.nan_to_num(values_YX), 0, 1))
    rgba[..., 3] = np.where(np.isnan(values_YX), 0.0, alpha_YX)
    height, width = values_YX.shape
    # Not every reader of SVG or PDF keeps the edges of enlarged pixels, so they come enlarged.
    enlarged = rgba.repeat(ENLARGEMENT, axis=0).repeat(ENLARGEMENT, axis=1)
    axes.imshow(enlarged, interpolation="none", aspect="auto", extent=(-0.5, width - 0.5, height - 0.5, -0.5))
    axes.set_facecolor(theme.color("outside"))
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(color=theme.color("outside"), linewidth=1)


def _mark_anchor(axes: Axes, pixel: Point) -> None:
    edge = theme.color("paper")
    axes.plot(*pixel, "o", color=theme.color("mark"), markeredgecolor=edge, markersize=7, clip_on=False, zorder=5)


def _mark_given(axes: Axes, pixel: Point) -> None:
    x, y = pixel
    frame = Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=theme.color("mark"), linewidth=1.6, clip_on=False)
    axes.add_patch(frame)


def _draw_key(panel: Panel, *, top: float) -> None:
    draws = (_draw_segment_swatch, _draw_anchor_swatch, _draw_given_swatch, _draw_scale_swatch)
    for text, draw, (left, line) in zip(KEY_TEXTS, draws, _place_key(panel.box.width), strict=True):
        middle = top + (line + 0.5) * KEY_HEIGHT
        axes = panel.add_axes(Box(left, middle - SWATCH_SIZE / 2, 2 * SWATCH_SIZE, SWATCH_SIZE))
        axes.set_axis_off()
        draw(axes)
        axes.set(xlim=(-1, 1), ylim=(0.5, -0.5))
        position = (left + 2 * SWATCH_SIZE + KEY_PAD, middle)
        panel.add_text(position, text, size=FONT_SIZE - 1, color=theme.color("muted"))


def _place_key(width: float) -> list[tuple[float, int]]:
    """Give the left side and the line of each entry, as many on a line as fit."""
    places: list[tuple[float, int]] = []
    left, line = 0.0, 0
    for text in KEY_TEXTS:
        entry_width = 2 * SWATCH_SIZE + KEY_PAD + LETTER_WIDTH * len(text)
        if left > 0 and left + entry_width > width:
            left, line = 0.0, line + 1
        places.append((left, line))
        left += entry_width + KEY_PAD
    return places


def _draw_segment_swatch(axes: Axes) -> None:
    frame = Rectangle((-1, -0.5), 2, 1, fill=False, edgecolor=theme.color("mark"), linewidth=1.6, clip_on=False)
    axes.add_patch(frame)


def _draw_anchor_swatch(axes: Axes) -> None:
    _mark_anchor(axes, (0, 0))


def _draw_given_swatch(axes: Axes) -> None:
    _mark_given(axes, (0, 0))


def _draw_scale_swatch(axes: Axes) -> None:
    axes.imshow(ERROR_COLORS(np.linspace(0, 1, 16)[None]), extent=(-1, 1, 0.5, -0.5), aspect="auto")
