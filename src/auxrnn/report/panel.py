"""A part of a figure in which things are placed by pixels of a plain screen, counted from its top left corner."""

from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

PIXELS_PER_INCH = 72


class Box(NamedTuple):
    """A rectangle, in pixels from the top left corner of what holds it."""

    left: float
    top: float
    width: float
    height: float


class Panel(NamedTuple):
    """A rectangle of a figure; what is placed in it moves with it."""

    figure: Figure
    box: Box

    def add_axes(self, box: Box) -> Axes:
        """Give axes whose frame is this box of the panel."""
        width, height = (inches * PIXELS_PER_INCH for inches in self.figure.get_size_inches())
        left, bottom = self.box.left + box.left, height - self.box.top - box.top - box.height
        return self.figure.add_axes((left / width, bottom / height, box.width / width, box.height / height))

    def add_text(
        self,
        position: tuple[float, float],
        text: str,
        *,
        size: float,
        color: str,
        align: Literal["left", "center", "right"] = "left",
        is_bold: bool = False,
    ) -> Text:
        """Write a text whose middle line runs through this position of the panel."""
        width, height = (inches * PIXELS_PER_INCH for inches in self.figure.get_size_inches())
        x, y = (self.box.left + position[0]) / width, 1 - (self.box.top + position[1]) / height
        weight = "bold" if is_bold else "normal"
        return self.figure.text(x, y, text, size=size, color=color, ha=align, va="center_baseline", weight=weight)


def new_figure(width: float, height: float) -> Figure:
    """Give an empty figure of this size in pixels, on which a point of a font is a pixel as well."""
    return Figure(figsize=(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH), dpi=PIXELS_PER_INCH)
