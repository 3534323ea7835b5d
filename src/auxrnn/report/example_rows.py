"""What all pictures of data share: examples one below the other, each with its class, under a title.

Dimension letters: `T` steps, `D` channels of a step.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from auxrnn.report import theme
from auxrnn.report.lettering import fit, measure
from auxrnn.report.panel import Box, Panel, new_figure

MOST = 8
WIDTH = 960.0
MARGIN = 32.0
INNER_WIDTH = WIDTH - 2 * MARGIN
FONT_SIZE = 13.0
SMALL_SIZE = 12.0
TITLE_SIZE = 16.0
HEADER_HEIGHT = 76.0
CAPTION_HEIGHT = 22.0
KEY_GAP = 16.0


class Shown(NamedTuple):
    """One example to draw."""

    title: str
    """Its class, or "no label"."""
    value_T: Shaped[np.ndarray, "T *D"]
    """As the model reads it: numbers `[T, D]`, or tokens `[T]`."""
    text: str | None = None
    """For texts, as it is read."""


class Entry(NamedTuple):
    """A word of a key, in the color of what it stands for."""

    text: str
    color: str


def choose(shown: Sequence[Shown]) -> Sequence[Shown]:
    """Give as many examples as a picture has room for."""
    if not shown:
        raise ValueError("there are no examples to draw; give at least one")
    return shown[:MOST]


def new_page(height: float) -> Panel:
    """Give an empty picture with room for rows of this height in all, below a header."""
    figure: Figure = new_figure(WIDTH, HEADER_HEIGHT + height + MARGIN / 2)
    return Panel(figure, Box(0, 0, WIDTH, HEADER_HEIGHT + height))


def draw_header(page: Panel, title: str, explanation: str, key: Sequence[Entry] = ()) -> None:
    """Write the title, what is to be seen below it, and a key on the right."""
    write(page, (MARGIN, 30.0), title, width=INNER_WIDTH, size=TITLE_SIZE, is_bold=True)
    left = WIDTH - MARGIN
    for entry in reversed(key):
        left -= measure(entry.text, size=SMALL_SIZE)
        write(page, (left, 54.0), entry.text, width=INNER_WIDTH, size=SMALL_SIZE, color=entry.color)
        left -= KEY_GAP
    write(page, (MARGIN, 54.0), explanation, width=left - MARGIN, size=SMALL_SIZE, color=theme.color("muted"))


def write(
    page: Panel,
    position: tuple[float, float],
    text: str,
    *,
    width: float,
    size: float = FONT_SIZE,
    color: str | None = None,
    is_bold: bool = False,
) -> None:
    """Write a text of any kind, cut to a width."""
    drawn = fit(text, width, size=size, is_bold=is_bold)
    written = page.add_text(position, drawn, size=size, color=color or theme.color("ink"), is_bold=is_bold)
    written.set_parse_math(False)


def write_caption(page: Panel, title: str, *, left: float, top: float, note: str = "") -> None:
    """Write the class of an example above it, and a note on the right."""
    middle, right = top + CAPTION_HEIGHT / 2 - 2, WIDTH - MARGIN
    note_width = measure(note, size=SMALL_SIZE)
    write(page, (left, middle), title, width=right - left - note_width - KEY_GAP)
    write(page, (right - note_width, middle), note, width=INNER_WIDTH, size=SMALL_SIZE, color=theme.color("muted"))


def style(axes: Axes) -> None:
    """Draw nothing of axes but a pale ground."""
    axes.set_facecolor(theme.color("band"))
    axes.spines[:].set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.tick_params(colors=theme.color("muted"), labelsize=SMALL_SIZE - 1, length=0, pad=5)


def number_steps(axes: Axes, *, name: str) -> None:
    """Write the numbers of steps below axes, and what they are; those before the end are negative on the axes."""
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{abs(step):,.0f}"))
    axes.set_xlabel(name, size=SMALL_SIZE, color=theme.color("muted"), labelpad=4)


def count_steps(num_steps: int) -> str:
    """Say how many steps there are."""
    return f"{num_steps:,} step{'' if num_steps == 1 else 's'}"
