"""The demo's two figures: how accuracy grows, and what r-LSTM remembers.

They come as SVG text to stand inside a page, whose colors they follow, or together as PNG for a README. A figure has
one width at which its letters are right, so a page holds a wide one for desks and a narrow one for phones.
"""

import io
import re
from collections.abc import Sequence

import matplotlib
from matplotlib.figure import Figure

from auxrnn.report import theme
from auxrnn.report.canvas import SegmentCanvas
from auxrnn.report.curve_plot import draw_curves
from auxrnn.report.memory_plot import draw_memory, memory_height
from auxrnn.report.panel import PIXELS_PER_INCH, Box, Panel, new_figure
from auxrnn.report.records import Curve

WIDE = 960.0
NARROW = 370.0
CURVES_HEIGHT = 440.0


def accuracy_figure(curves: Sequence[Curve], *, chance: float, width: float = WIDE) -> Figure:
    """Draw test accuracy against updates, pretraining counted, with each final figure beside its line."""
    figure = new_figure(width, CURVES_HEIGHT)
    draw_curves(Panel(figure, Box(0, 0, width, CURVES_HEIGHT)), curves, chance=chance)
    return figure


def memory_figure(canvases: Sequence[SegmentCanvas], *, width: float = WIDE, columns: int = 8) -> Figure:
    """Draw digits, the segment asked for, what r-LSTM rebuilt of it and how far off that is, an example a column."""
    height = memory_height(canvases, width=width, columns=columns)
    figure = new_figure(width, height)
    draw_memory(Panel(figure, Box(0, 0, width, height)), canvases, columns=columns)
    return figure


def to_svg(figure: Figure, *, name: str) -> str:
    """Give a figure as an `<svg>` element; `name` tells its ids from those of the page's other figures."""
    buffer = io.StringIO()
    figure.patch.set_visible(False)
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=no_metadata)
    svg = buffer.getvalue()
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg[svg.index("<svg") :])
    return theme.follow_scheme(svg)


def to_png(figure: Figure) -> bytes:
    """Give a figure on white, twice as fine as a plain screen."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=2 * PIXELS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def overview_png(curves: Sequence[Curve], canvases: Sequence[SegmentCanvas] = (), *, chance: float) -> bytes:
    """Give both figures side by side on white, twice as fine as a plain screen; the curves alone without canvases."""
    margin, title_height, curves_width, curves_height = 32.0, 40.0, 700.0, 380.0
    columns, width = _overview_columns(canvases) if canvases else (0, -margin)
    height = memory_height(canvases, width=width, columns=columns) if canvases else 0.0
    left = Box(margin, margin + title_height, curves_width, max(curves_height, height))
    right = Box(left.left + left.width + margin, left.top, width, height)
    figure = new_figure(right.left + right.width + margin, left.top + left.height + margin)

    _draw_title(figure, left, "Test accuracy while training")
    draw_curves(Panel(figure, left), curves, chance=chance)
    if canvases:
        _draw_title(figure, right, "What r-LSTM remembers of the pixels it read")
        draw_memory(Panel(figure, right), canvases, columns=columns)
    return to_png(figure)


def _overview_columns(canvases: Sequence[SegmentCanvas]) -> tuple[int, float]:
    """Give columns and width: two lines of four large examples, or one line where segments would make them too high."""
    is_low = memory_height(canvases, width=600.0, columns=4) <= 1.5 * CURVES_HEIGHT
    return (4, 600.0) if is_low else (8, 880.0)


def _draw_title(figure: Figure, below: Box, title: str) -> None:
    Panel(figure, below).add_text((0.0, -22.0), title, size=16.0, color=theme.color("ink"), is_bold=True)
