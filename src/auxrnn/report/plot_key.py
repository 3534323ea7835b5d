"""The key below a chart: what its colors, marks and kinds of lines stand for."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from auxrnn.report import theme
from auxrnn.report.axis_style import FONT_SIZE, LETTER_WIDTH
from auxrnn.report.panel import Box, Panel

LINE_HEIGHT = 24.0
SWATCH_WIDTH = 30.0
PAD = 8.0
GAP = 20.0


class KeyEntry(NamedTuple):
    """One entry: a text and the line or the mark that it explains; an empty `line` or `mark` is none."""

    text: str
    color: str
    line: str | tuple[float, tuple[float, ...]] = "-"
    mark: str = ""
    line_width: float = 2.0


def key_height(entries: Sequence[KeyEntry], *, width: float) -> float:
    """Give the height that the entries need at this width."""
    return LINE_HEIGHT * (1 + max([-1, *(line for _, line in _places(entries, width=width))]))


def draw_key(panel: Panel, entries: Sequence[KeyEntry], *, top: float) -> None:
    """Write the entries in lines from `top` on, as many on a line as the panel has room for."""
    if not entries:
        return
    width, height = panel.box.width, key_height(entries, width=panel.box.width)
    axes = panel.add_axes(Box(0, top, width, height))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
    for entry, (left, line) in zip(entries, _places(entries, width=width), strict=True):
        middle = (line + 0.5) * LINE_HEIGHT
        _draw_swatch(axes, entry, left=left, middle=middle)
        position = (left + SWATCH_WIDTH + PAD, top + middle)
        panel.add_text(position, entry.text, size=FONT_SIZE, color=theme.color("ink")).set_parse_math(False)


def _draw_swatch(axes: Axes, entry: KeyEntry, *, left: float, middle: float) -> None:
    if entry.line:
        ends = [left, left + SWATCH_WIDTH]
        stroke = axes.plot(ends, [middle, middle], color=entry.color, linewidth=entry.line_width)[0]
        stroke.set(linestyle=entry.line, solid_capstyle="butt")
    if entry.mark:
        axes.plot([left + SWATCH_WIDTH / 2], [middle], entry.mark, color=entry.color, markersize=7, clip_on=False)


def _places(entries: Sequence[KeyEntry], *, width: float) -> list[tuple[float, int]]:
    """Give the left side and the line of each entry."""
    places: list[tuple[float, int]] = []
    left, line = 0.0, 0
    for entry in entries:
        entry_width = SWATCH_WIDTH + PAD + LETTER_WIDTH * len(entry.text)
        if left > 0 and left + entry_width > width:
            left, line = 0.0, line + 1
        places.append((left, line))
        left += entry_width + GAP
    return places
