"""Names of lines beside the right ends of their axes, instead of a key."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from auxrnn.report.axis_style import FONT_SIZE
from auxrnn.report.labels import spread_labels
from auxrnn.report.panel import Box

LEADER_LENGTH = 28.0
LINE_HEIGHT = 1.4 * FONT_SIZE


class LineEnd(NamedTuple):
    """A text for the right end of a line, and where that is in its data."""

    text: str
    x: float
    y: float
    color: str


def draw_line_ends(axes: Axes, ends: Sequence[LineEnd], *, frame: Box) -> None:
    """Write each text to the right of the axes, as near its height as the others let it; `frame` is theirs."""
    to_axes = axes.transData + axes.transAxes.inverted()
    starts = [to_axes.transform((end.x, end.y)) for end in ends]
    places = spread_labels([height for _, height in starts], gap=LINE_HEIGHT / frame.height, low=0.0, high=1.0)
    before, after, begin = (1 + pixels / frame.width for pixels in (2, LEADER_LENGTH - 5, LEADER_LENGTH))
    for end, (start, height), place in zip(ends, starts, places, strict=True):
        leader = axes.plot([start, before, after], [height, height, place], color=end.color, linewidth=0.8)[0]
        leader.set(transform=axes.transAxes, clip_on=False)
        text = axes.text(begin, place, end.text, size=FONT_SIZE, color=end.color, transform=axes.transAxes)
        text.set(va="center", parse_math=False)
