"""Pictures of data: some examples as a person sees them, and as the model reads them.

Dimension letters: `T` steps, `D` channels of a step, `C` red, green and blue.
"""

import textwrap
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from jaxtyping import Float32, Int, Shaped
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from auxrnn.report import theme
from auxrnn.report.charts import WIDE, add_legend, add_title, new_figure

MOST_EXAMPLES, MOST_CHANNELS = 8, 8
MOST_STEPS = 2400
"""Pixels that can be told apart on the width of a picture."""
RGB = {"red": "#b3261e", "green": "#007a58", "blue": "#1f5fbf"}
FEW_STEPS = 60
TITLE_LETTERS, LINE_LETTERS, MOST_LINES = 60, 114, 4
NUM_CELLS, NUM_LAST = 49, 12
"""Steps of a text that there is room for, and how many of them are its last ones if it is longer."""
BOX, ELLIPSIS, PART_OF_LETTER = "\u25af", "\u2026", "\u00b7"
VISIBLE = {" ": "\u2423", "\n": "\u21b5", "\r": "\u21b5", "\t": "\u21e5"}
"""What stands for a step that is a blank, the end of a line or a tabulator."""
UNKNOWN_GROUND = "#fdebd8"


class ShownExample(NamedTuple):
    """One example to draw."""

    title: str
    """Its class, or "no label"."""
    value_T: Shaped[np.ndarray, "T *D"]
    """As the model reads it: numbers `[T, D]`, or tokens `[T]`."""
    text: str | None = None
    """For texts, as it is read."""


@matplotlib.rc_context(theme.STYLE)
def image_figure(
    shown: Sequence[ShownExample], *, size: tuple[int, int], order_T: Int[np.ndarray, " T"] | None, title: str
) -> Figure:
    """Draw up to 8 images of a height and width, and beside each its pixels in the order in which they are read.

    `order_T` is a permutation: step `t` is the pixel `order_T[t]`, counted row by row.
    """
    examples = _choose(shown)
    num_steps = len(examples[0].value_T)
    order = "pixels row by row" if order_T is None else "pixels in one shuffled order, the same for all"
    order += f"; shown are the first {MOST_STEPS:,}" if num_steps > MOST_STEPS else ""
    caption = f"Each image, and the {num_steps:,} steps that the model reads: its {order}"
    figure = _new_picture(100.0 * len(examples) + 90.0, title, caption)
    grid = figure.subplots(len(examples), 2, squeeze=False, width_ratios=(1, 9))
    for (picture, steps), example in zip(grid, examples, strict=True):
        color_TC = _to_colors(example.value_T)
        image_TC = np.empty_like(color_TC)
        image_TC[slice(None) if order_T is None else order_T] = color_TC
        picture.imshow(image_TC.reshape(*size, 3), interpolation="none")
        picture.set_axis_off()
        _draw_pixels(steps, example.value_T[:MOST_STEPS], color_TC[:MOST_STEPS])
        steps.set_title(_cut(example.title, TITLE_LETTERS), color=theme.color("ink"), pad=4)
        _number_steps(steps, "step" if example is examples[-1] else None)
        steps.set_yticks([])
    add_legend(figure, "outside lower right", num_columns=MOST_CHANNELS + 1)
    return figure


def _draw_pixels(axes: Axes, value_TD: Float32[np.ndarray, "T D"], color_TC: Float32[np.ndarray, "T C"]) -> None:
    """Draw the one channel of gray images as an area and several as lines, and above them the pixels as they look."""
    num_steps, num_channels = value_TD.shape
    axes.set_facecolor(theme.color("band"))
    if num_channels == 1:
        value_T = np.append(value_TD[:, 0], value_TD[-1, 0])
        axes.fill_between(np.arange(num_steps + 1), value_T, step="post", color=theme.color("ink"), linewidth=0)
    else:
        looks = list(RGB.items()) if num_channels == len(RGB) else [_look(each) for each in range(num_channels)]
        for channel, (name, color) in enumerate(looks):
            axes.plot(np.arange(num_steps) + 0.5, value_TD[:, channel], color=color, linewidth=0.7, label=name)
    axes.imshow(color_TC[None], extent=(0, num_steps, 1.15, 1.35), interpolation="none", aspect="auto")
    axes.axhspan(1.04, 1.15, color=theme.color("paper"), linewidth=0)
    axes.set(xlim=(0, num_steps), ylim=(-0.04, 1.35))


def _to_colors(value_TD: Float32[np.ndarray, "T D"]) -> Float32[np.ndarray, "T C"]:
    """Return pixels as they look; those of other than three channels are gray, as bright as their mean."""
    clipped_TD: Float32[np.ndarray, "T D"] = np.clip(value_TD, 0, 1)
    return clipped_TD if value_TD.shape[1] == len(RGB) else clipped_TD.mean(axis=1, keepdims=True).repeat(3, axis=1)


@matplotlib.rc_context(theme.STYLE)
def series_figure(shown: Sequence[ShownExample], *, title: str) -> Figure:
    """Draw up to 8 series of any lengths, their channels as curves on one scale; they end together, as in a batch."""
    examples = _choose(shown)
    num_channels = examples[0].value_T.shape[1]
    values = "values" if num_channels <= MOST_CHANNELS else f"first {MOST_CHANNELS} of {num_channels} channels"
    longest = max(len(example.value_T) for example in examples)
    figure = _new_picture(110.0 * len(examples) + 100.0, title, f"The {values} that the model reads")
    grid = figure.subplots(len(examples), squeeze=False, sharex=True, sharey=True)
    for axes, example in zip(grid.flat, examples, strict=True):
        num_steps = len(example.value_T)
        axes.set(facecolor=theme.color("band"), xlim=(-longest, 0))
        for channel in range(min(num_channels, MOST_CHANNELS)):
            name, color = _look(channel)
            (line,) = axes.plot(np.arange(num_steps) - num_steps + 0.5, example.value_T[:, channel], color=color)
            line.set(linewidth=1.2, linestyle="-" if channel < theme.NUM_SERIES else (0, (4, 1.5)), zorder=4)
            line.set(marker="o" if longest <= FEW_STEPS or num_steps == 1 else "", markersize=3)
            line.set_label(name if num_channels > 1 else "")
        if num_steps < longest:
            look: dict[str, Any] = {"facecolor": theme.color("paper"), "edgecolor": theme.color("rule")}
            axes.axvspan(-longest, -num_steps, hatch="////", linewidth=0, zorder=2, **look, label="padding")
        _name_example(axes, example)
        _number_steps(axes, "steps before the end" if example is examples[-1] else None)
    add_legend(figure, "outside lower right", num_columns=MOST_CHANNELS + 1)
    return figure


@matplotlib.rc_context(theme.STYLE)
def text_figure(
    shown: Sequence[ShownExample], *, title: str, unknown: int | None = None, what: str = "characters"
) -> Figure:
    """Draw up to 8 texts, or other sequences of tokens, and below each its first and last steps with their tokens.

    `unknown` is the token that all characters outside of the alphabet share; their steps are marked. None for bytes.
    """
    examples = _choose(shown)
    texts = [_wrap(example.text or "") for example in examples]
    what = "bytes" if unknown is None else what
    noun = "sequence" if what == "integers" else "text"
    caption = f"Each {noun}, and the first and last {what} that the model reads, with their tokens"
    figure = _new_picture(90.0 + sum(76.0 + 18.0 * len(lines) for lines in texts), title, caption)
    heights = [len(lines) + 2.2 for lines in texts]
    grid = figure.subplots(len(examples), squeeze=False, height_ratios=heights)
    for axes, example, lines, height in zip(grid.flat, examples, texts, heights, strict=True):
        axes.set_axis_off()
        axes.set(xlim=(0, NUM_CELLS), ylim=(height, 0))
        _name_example(axes, example)
        text = axes.text(0, 0.1, "\n".join(lines), family="monospace", va="top", linespacing=1.45, clip_on=True)
        text.set_color(theme.color("muted"))
        _draw_steps(axes, example, unknown=unknown, top=height - 2)
    add_legend(figure, "outside lower right", num_columns=MOST_CHANNELS + 1)
    return figure


def _draw_steps(axes: Axes, example: ShownExample, *, unknown: int | None, top: float) -> None:
    for cell, step in enumerate(choose_steps(len(example.value_T))):
        if step is None:
            axes.text(cell + 0.5, top + 1.2, ELLIPSIS, color=theme.color("muted"), ha="center")
            continue
        token, letter = int(example.value_T[step]), spell(example, step, is_bytes=unknown is None)
        is_unknown = token == unknown
        ink, muted = (theme.color("mark" if is_unknown else name) for name in ("ink", "muted"))
        ground = Rectangle((cell + 0.03, top), 0.94, 2, linewidth=0, label="not in the alphabet" if is_unknown else "")
        ground.set_facecolor(UNKNOWN_GROUND if is_unknown else theme.color("band"))
        axes.add_patch(ground)
        axes.text(cell + 0.5, top + 0.9, letter, family="monospace", color=ink, ha="center")
        axes.text(cell + 0.5, top + 1.7, str(token), size=7.5, color=muted, ha="center")


def choose_steps(num_steps: int) -> list[int | None]:
    """Return the steps that there is room for: all, or the first and the last around a gap, which is None."""
    if num_steps <= NUM_CELLS:
        return list(range(num_steps))
    return [*range(NUM_CELLS - 1 - NUM_LAST), None, *range(num_steps - NUM_LAST, num_steps)]


def spell(example: ShownExample, step: int, *, is_bytes: bool) -> str:
    """Return the letter of a step; none where the text does not have a character per step."""
    if is_bytes:
        letter = chr(int(example.value_T[step]))
        return VISIBLE.get(letter) or clean(letter) if letter.isascii() else PART_OF_LETTER
    if example.text is None or len(example.text) != len(example.value_T):
        return ""
    return VISIBLE.get(example.text[step]) or clean(example.text[step])


def _choose(shown: Sequence[ShownExample]) -> Sequence[ShownExample]:
    if not shown:
        raise ValueError("there are no examples to draw; give at least one")
    return shown[:MOST_EXAMPLES]


def _new_picture(height: float, title: str, caption: str) -> Figure:
    figure = new_figure(WIDE, height)
    add_title(figure, _cut(title, 80))
    figure.supxlabel(caption, x=0.005, ha="left", size="small", color=theme.color("muted"))
    return figure


def _look(channel: int) -> tuple[str, str]:
    """Return what a channel is called and its color."""
    return f"channel {channel + 1}" if channel == 0 else str(channel + 1), theme.color(theme.series(channel))


def _name_example(axes: Axes, example: ShownExample) -> None:
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
    axes.set_xlabel(name or "", size="small")


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
