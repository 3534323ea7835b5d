"""Pictures of data as PNG: some examples as a person sees them, and as the model reads them.

Dimension letters: `T` steps, `D` channels of a step, `C` red, green and blue, `P` points of a curve.
"""

import textwrap
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import matplotlib
import numpy as np
from jaxtyping import Float, Float32, Int, Shaped
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from auxrnn.report import theme
from auxrnn.report.charts import WIDE, add_title, new_figure, to_png

MOST_EXAMPLES = 8
MOST_STEPS = 2400
"""What can be told apart on the width of a picture; of longer images both ends are shown."""
CHANNELS = {"red": "#b3261e", "green": "#007a58", "blue": "#1f5fbf"}
MOST_CHANNELS = 8
MOST_POINTS = 4000
FEW_STEPS = 60
TITLE_LETTERS = 60
LINE_LETTERS = 114
MOST_LINES = 4
NUM_CELLS = 49
NUM_LAST = 12
BREAK_CELLS = 2
NUM_ASCII = 128
BOX = "\u25af"
ELLIPSIS = "\u2026"
PART_OF_LETTER = "\u00b7"
VISIBLE = {" ": "\u2423", "\n": "\u21b5", "\r": "\u21b5", "\t": "\u21e5"}
"""What stands for a step that is a blank, the end of a line or a tabulator."""
UNKNOWN_GROUND = "#fdebd8"


class Shown(NamedTuple):
    """One example to draw."""

    title: str
    """Its class, or "no label"."""
    value_T: Shaped[np.ndarray, "T *D"]
    """As the model reads it: numbers `[T, D]`, or tokens `[T]`."""
    text: str | None = None
    """For texts, as it is read."""


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


@matplotlib.rc_context(theme.STYLE)
def image_figure(
    shown: Sequence[Shown], *, size: tuple[int, int], order_T: Int[np.ndarray, " T"] | None, title: str
) -> Figure:
    """Draw each image, and beside it its steps as colors and as curves."""
    examples = _choose(shown)
    num_steps, num_channels = examples[0].value_T.shape
    order = "pixels row by row" if order_T is None else "pixels in one shuffled order, the same for all"
    stretches = [slice(0, num_steps)]
    if num_steps > MOST_STEPS:
        stretches = [slice(0, MOST_STEPS // 2), slice(num_steps - MOST_STEPS // 2, num_steps)]
        order = f"{order}; shown are the first and last {MOST_STEPS // 2:,}" + (" (orange)" if order_T is None else "")
    figure = new_figure(WIDE, 100.0 * len(examples) + 90.0)
    add_title(figure, _cut(title, 80))
    _add_caption(figure, f"Each image, and the {num_steps:,} steps that the model reads: its {order}")
    if num_channels == len(CHANNELS):
        _add_legend(figure, [Line2D([], [], color=color, label=name) for name, color in CHANNELS.items()])
    widths, heights = [1.0, *[9 / len(stretches)] * len(stretches)], [1, 6] * len(examples)
    grid = figure.add_gridspec(len(heights), len(widths), width_ratios=widths, height_ratios=heights)
    for row, example in enumerate(examples):
        picture = figure.add_subplot(grid[2 * row : 2 * row + 2, 0])
        _draw_image(picture, example, size=size, order_T=order_T, marked=stretches if len(stretches) > 1 else [])
        for column, steps in enumerate(stretches, start=1):
            strip, curves = (figure.add_subplot(grid[2 * row + part, column]) for part in range(2))
            color_TC = _to_colors(example.value_T[steps])
            strip.imshow(color_TC[None], extent=(steps.start, steps.stop, 0, 1), interpolation="none", aspect="auto")
            strip.set_axis_off()
            strip.set_title(_cut(example.title, TITLE_LETTERS) if column == 1 else "", color=theme.color("ink"), pad=4)
            _draw_pixels(curves, example.value_T[steps], start=steps.start)
            _number_steps(curves, "step" if row == len(examples) - 1 else None)
    return figure


@matplotlib.rc_context(theme.STYLE)
def text_figure(shown: Sequence[Shown], *, title: str, unknown: int | None) -> Figure:
    """Draw texts with their first and last steps; those whose token is `unknown` are marked."""
    examples = _choose(shown)
    texts = [_wrap(example.text or "") for example in examples]
    figure = new_figure(WIDE, 90.0 + sum(76.0 + 18.0 * len(lines) for lines in texts))
    what = "bytes" if unknown is None else "characters"
    add_title(figure, _cut(title, 80))
    _add_caption(figure, f"Each text, and the first and last {what} that the model reads, with their tokens")
    if unknown is not None:
        _add_legend(figure, [Line2D([], [], color=UNKNOWN_GROUND, linewidth=9, label="not in the alphabet")])
    heights = [len(lines) + 2.2 for lines in texts]
    grid = figure.subplots(len(examples), squeeze=False, height_ratios=heights)
    for axes, example, lines, height in zip(grid.flat, examples, texts, heights, strict=True):
        axes.set_axis_off()
        axes.set(xlim=(0, NUM_CELLS), ylim=(height, 0))
        _name_example(axes, example)
        for number, line in enumerate(lines):
            axes.text(0, number + 0.5, line, family="monospace", color=theme.color("muted"), va="center", clip_on=True)
        _draw_steps(axes, lay_out_steps(example, unknown=unknown), top=height - 2)
    return figure


@matplotlib.rc_context(theme.STYLE)
def series_figure(shown: Sequence[Shown], *, title: str) -> Figure:
    """Draw series of one number of channels and any lengths, on one scale, aligned at their ends."""
    examples = _choose(shown)
    num_channels = examples[0].value_T.shape[1]
    values = "values" if num_channels <= MOST_CHANNELS else f"first {MOST_CHANNELS} of {num_channels} channels"
    longest = max(len(example.value_T) for example in examples)
    is_padded = any(len(example.value_T) < longest for example in examples)
    figure = new_figure(WIDE, 110.0 * len(examples) + 100.0)
    add_title(figure, _cut(title, 80))
    _add_caption(
        figure, f"The {values} that the model reads" + (", aligned on the right as in a batch" if is_padded else "")
    )
    grid = figure.subplots(len(examples), squeeze=False, sharex=True, sharey=True)
    for axes, example in zip(grid.flat, examples, strict=True):
        axes.set_facecolor(theme.color("band"))
        axes.set_xlim(-longest, 0)
        _name_example(axes, example)
        _draw_padding(axes, num_steps=len(example.value_T), longest=longest)
        _draw_channels(axes, example.value_T, is_marked=longest <= FEW_STEPS or len(example.value_T) == 1)
        _number_steps(axes, "steps before the end" if example is examples[-1] else None)
    if num_channels > 1:
        lines = grid[0, 0].lines
        for number, line in enumerate(lines, start=1):
            line.set_label(f"channel {number}" if number == 1 else str(number))
        _add_legend(figure, lines)
    return figure


def _choose(shown: Sequence[Shown]) -> Sequence[Shown]:
    if not shown:
        raise ValueError("there are no examples to draw; give at least one")
    return shown[:MOST_EXAMPLES]


def _add_caption(figure: Figure, text: str) -> None:
    figure.supxlabel(text, x=0.005, ha="left", size="small", color=theme.color("muted"))


def _add_legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    figure.legend(handles=handles, loc="outside lower right", ncols=len(handles), handlelength=1.2, columnspacing=1.2)


def _name_example(axes: Axes, example: Shown) -> None:
    """Write the class of an example above it, and how many steps it has on the right."""
    num_steps = len(example.value_T)
    axes.set_title(_cut(example.title, TITLE_LETTERS), color=theme.color("ink"), pad=5)
    axes.set_title(f"{num_steps:,} step{'' if num_steps == 1 else 's'}", loc="right", size="small", pad=5)


def _number_steps(axes: Axes, name: str | None) -> None:
    """Write the numbers of steps below axes, and what they are; those before the end are negative on the axes."""
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelbottom=name is not None)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{abs(step):,.0f}"))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    if name is not None:
        axes.set_xlabel(name, size="small")


def _draw_image(
    axes: Axes,
    example: Shown,
    *,
    size: tuple[int, int],
    order_T: Int[np.ndarray, " T"] | None,
    marked: Sequence[slice],
) -> None:
    color_TC = _to_colors(example.value_T)
    image_TC = np.empty_like(color_TC)
    image_TC[slice(None) if order_T is None else order_T] = color_TC
    axes.imshow(image_TC.reshape(*size, 3), interpolation="none")
    axes.set_axis_off()
    for steps in marked if order_T is None else ():
        rows = (steps.start / size[1] - 0.5, steps.stop / size[1] - 0.5)
        axes.plot([-0.06 * max(size)] * 2, rows, color=theme.color("mark"), linewidth=4, solid_capstyle="butt")
        axes.lines[-1].set_clip_on(False)
    axes.set(xlim=(-0.5, size[1] - 0.5), ylim=(size[0] - 0.5, -0.5))


def _draw_pixels(axes: Axes, value_TD: Float32[np.ndarray, "T D"], *, start: int) -> None:
    """Draw the one channel of gray images as an area, and several as lines."""
    num_steps, num_channels = value_TD.shape
    step_T = np.arange(start, start + num_steps + 1)
    axes.set_facecolor(theme.color("band"))
    axes.grid(visible=False)
    axes.set(xlim=(start, start + num_steps), yticks=[])
    axes.set_ylim(min(-0.04, float(value_TD.min())), max(1.04, float(value_TD.max())))
    axes.tick_params(labelleft=False)
    if num_channels == 1:
        value_T = np.append(value_TD[:, 0], value_TD[-1, 0])
        axes.fill_between(step_T, value_T, step="post", color=theme.color("ink"), linewidth=0)
        return
    colors = list(CHANNELS.values()) if num_channels == len(CHANNELS) else list(map(_color, range(num_channels)))
    for channel, color in enumerate(colors):
        axes.plot(step_T[:-1] + 0.5, value_TD[:, channel], color=color, linewidth=0.7, alpha=0.9)


def _to_colors(value_TD: Float32[np.ndarray, "T D"]) -> Float[np.ndarray, "T C"]:
    """Return pixels as they look; those of other than three channels are gray, as bright as their mean."""
    clipped_TD: Float32[np.ndarray, "T D"] = np.clip(value_TD, 0, 1)
    return clipped_TD if value_TD.shape[1] == 3 else clipped_TD.mean(axis=1, keepdims=True).repeat(3, axis=1)


def _color(channel: int) -> str:
    return theme.color(theme.series(channel))


def _draw_padding(axes: Axes, *, num_steps: int, longest: int) -> None:
    """Hatch what lies before the first step of a shorter series, and say so where there is room."""
    if num_steps == longest:
        return
    pale, white = theme.color("rule"), theme.color("paper")
    axes.axvspan(-longest, -num_steps, facecolor=white, hatch="////", edgecolor=pale, linewidth=0, zorder=2)
    if num_steps < 0.9 * longest:
        place = ((longest - num_steps) / longest / 2, 0.5)
        text = axes.text(*place, "padding", transform=axes.transAxes, size="small", ha="center", va="center", zorder=3)
        text.set(color=theme.color("muted"), bbox={"facecolor": white, "edgecolor": "none", "pad": 2})


def _draw_channels(axes: Axes, value_TD: Float32[np.ndarray, "T D"], *, is_marked: bool) -> None:
    """Draw the channels; those beyond the colors of the theme begin again, dashed."""
    for channel in range(min(value_TD.shape[1], MOST_CHANNELS)):
        step_P, value_P = thin(value_TD[:, channel], most=MOST_POINTS)
        (line,) = axes.plot(step_P - len(value_TD) + 0.5, value_P, color=_color(channel), linewidth=1.2, zorder=4)
        is_solid = channel < len(theme.SERIES)
        line.set(marker="o" if is_marked else "", markersize=3, linestyle="-" if is_solid else (0, (4, 1.5)))


def thin(value_T: Float32[np.ndarray, " T"], *, most: int) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    """Return the points of a curve: all, or the least and greatest of as many stretches as make `most` points."""
    step_T = np.arange(len(value_T), dtype=np.float64)
    if len(value_T) <= most:
        return step_T, value_T.astype(np.float64)
    edges = np.linspace(0, len(value_T), most // 2 + 1).astype(np.int64)
    least, greatest = np.minimum.reduceat(value_T, edges[:-1]), np.maximum.reduceat(value_T, edges[:-1])
    return np.repeat(step_T[edges[:-1]], 2), np.stack([least, greatest], axis=1).ravel().astype(np.float64)


class Step(NamedTuple):
    """One step of a text as it is drawn; `cell` is its place in the strip, from the left."""

    cell: int
    letter: str
    token: int
    is_unknown: bool


def lay_out_steps(example: Shown, *, unknown: int | None) -> list[Step]:
    """Return the steps that there is room for: all, or the first and the last with a gap between."""
    num_steps = len(example.value_T)
    cells = {step: step for step in range(min(num_steps, NUM_CELLS))}
    if num_steps > NUM_CELLS:
        cells = {step: step for step in range(NUM_CELLS - BREAK_CELLS - NUM_LAST)}
        cells |= {num_steps - back: NUM_CELLS - back for back in range(NUM_LAST, 0, -1)}
    steps = []
    for step, cell in cells.items():
        token = int(example.value_T[step])
        steps.append(Step(cell, _spell(example, step, is_bytes=unknown is None), token, token == unknown))
    return steps


def _spell(example: Shown, step: int, *, is_bytes: bool) -> str:
    """Return the letter of a step; none where the text does not have a character per step."""
    if is_bytes:
        letter = chr(int(example.value_T[step]))
        return PART_OF_LETTER if ord(letter) >= NUM_ASCII else VISIBLE.get(letter) or clean(letter)
    if example.text is None or len(example.text) != len(example.value_T):
        return ""
    return VISIBLE.get(example.text[step]) or clean(example.text[step])


def _draw_steps(axes: Axes, steps: Sequence[Step], *, top: float) -> None:
    for is_unknown, ground in ((False, theme.color("band")), (True, UNKNOWN_GROUND)):
        cells = [(step.cell + 0.03, 0.94) for step in steps if step.is_unknown == is_unknown]
        axes.broken_barh(cells, (top, 2), facecolors=ground, edgecolors="none")
    for step in steps:
        ink, muted = (theme.color(name) for name in (("mark", "mark") if step.is_unknown else ("ink", "muted")))
        axes.text(step.cell + 0.5, top + 0.9, step.letter, family="monospace", color=ink, ha="center")
        axes.text(step.cell + 0.5, top + 1.7, str(step.token), size=7.5, color=muted, ha="center")
    if steps and steps[-1].cell > len(steps):
        axes.text(NUM_CELLS - NUM_LAST - BREAK_CELLS / 2, top + 1.2, ELLIPSIS, color=theme.color("muted"), ha="center")


def clean(text: str) -> str:
    """Return a text on one line; what has no shape in the fonts of the pictures is an empty box."""
    return "".join(
        " " if letter.isspace() else letter if letter.isprintable() and ord(letter) in _find_letters() else BOX
        for letter in text
    )


def _cut(text: str, most: int) -> str:
    return clean(text) if len(text) <= most else clean(text[: most - 1]) + ELLIPSIS


def _wrap(text: str) -> list[str]:
    """Return the first lines of a text; the last ends in an ellipsis if there is more."""
    cleaned = clean(text[: MOST_LINES * LINE_LETTERS * 2])
    return textwrap.wrap(cleaned, LINE_LETTERS, max_lines=MOST_LINES, placeholder=ELLIPSIS) or [""]


@cache
def _find_letters() -> frozenset[int]:
    fonts = (FontProperties(), FontProperties(weight="bold"), FontProperties(family="monospace"))
    return frozenset.intersection(*(frozenset(get_font(findfont(font)).get_charmap()) for font in fonts))
