"""Images, and beside each the sequence of pixels that a model reads: as colors, and as curves.

Dimension letters: `T` steps, `D` channels of a step, `H` and `W` rows and columns, `C` red, green and blue.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from auxrnn.report import theme
from auxrnn.report.example_rows import (
    CAPTION_HEIGHT,
    HEADER_HEIGHT,
    MARGIN,
    TITLE_SIZE,
    WIDTH,
    Entry,
    Shown,
    choose,
    draw_header,
    new_page,
    number_steps,
    style,
    write_caption,
)
from auxrnn.report.lettering import ELLIPSIS
from auxrnn.report.panel import Box, Panel

IMAGE_SIDE = 80.0
ROW_HEIGHT = 104.0
AXIS_HEIGHT = 32.0
GAP = 24.0
STRIP_HEIGHT = 9.0
STRIP_GAP = 2.0
BREAK_WIDTH = 28.0
MARK_WIDTH = 4.0
LEFT = MARGIN + IMAGE_SIDE + GAP
MOST_STEPS = 2400
"""What can be told apart on the width of a picture; of longer sequences both ends are shown."""
CHANNELS = (Entry("red", "#b3261e"), Entry("green", "#007a58"), Entry("blue", "#1f5fbf"))


def image_figure(
    shown: Sequence[Shown], *, size: tuple[int, int], order_T: Int[np.ndarray, " T"] | None, title: str
) -> Figure:
    """Draw images of a height and width with their sequences; `order_T` is the order in which pixels are read."""
    examples = choose(shown)
    page = new_page(len(examples) * ROW_HEIGHT + AXIS_HEIGHT)
    num_steps, num_channels = examples[0].value_T.shape
    explanation = _explain(num_steps, is_permuted=order_T is not None)
    draw_header(page, title, explanation, CHANNELS if num_channels == len(CHANNELS) else ())
    for row, example in enumerate(examples):
        top = HEADER_HEIGHT + row * ROW_HEIGHT
        _draw_image(page, example, size=size, order_T=order_T, top=top)
        write_caption(page, example.title, left=LEFT, top=top)
        _draw_sequence(page, example, top=top + CAPTION_HEIGHT, is_last=row == len(examples) - 1)
    return page.figure


def _explain(num_steps: int, *, is_permuted: bool) -> str:
    order = "pixels in one shuffled order, the same for all" if is_permuted else "pixels row by row"
    if num_steps <= MOST_STEPS:
        return f"Each image, and the {num_steps:,} steps that the model reads: its {order}"
    ends = f"first and last {MOST_STEPS // 2:,}" + ("" if is_permuted else " (orange)")
    return f"Each image, and the {ends} of {num_steps:,} steps that the model reads: its {order}"


def _stretches(num_steps: int) -> list[slice]:
    if num_steps <= MOST_STEPS:
        return [slice(0, num_steps)]
    return [slice(0, MOST_STEPS // 2), slice(num_steps - MOST_STEPS // 2, num_steps)]


def _draw_image(
    page: Panel, example: Shown, *, size: tuple[int, int], order_T: Int[np.ndarray, " T"] | None, top: float
) -> None:
    color_TC = _to_colors(example.value_T)
    image_TC = np.empty_like(color_TC)
    image_TC[slice(None) if order_T is None else order_T] = color_TC
    height, width = size
    scale = IMAGE_SIDE / max(size)
    box = Box(MARGIN + (IMAGE_SIDE - width * scale) / 2, top, width * scale, height * scale)
    axes = page.add_axes(box)
    style(axes)
    axes.imshow(image_TC.reshape(height, width, 3), interpolation="none", aspect="auto")
    stretches = _stretches(len(color_TC))
    for steps in stretches if len(stretches) > 1 and order_T is None else ():
        rows = (steps.start / width - 0.5, steps.stop / width - 0.5)
        edge = [-0.5 - MARK_WIDTH / scale] * 2
        color = theme.color("mark")
        axes.plot(edge, rows, color=color, linewidth=MARK_WIDTH, solid_capstyle="butt", clip_on=False)
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))


def _draw_sequence(page: Panel, example: Shown, *, top: float, is_last: bool) -> None:
    stretches = _stretches(len(example.value_T))
    width = (WIDTH - MARGIN - LEFT - BREAK_WIDTH * (len(stretches) - 1)) / len(stretches)
    for index, steps in enumerate(stretches):
        left = LEFT + index * (width + BREAK_WIDTH)
        strip = page.add_axes(Box(left, top, width, STRIP_HEIGHT))
        style(strip)
        extent = (steps.start, steps.stop, 0, 1)
        strip.imshow(_to_colors(example.value_T[steps])[None], extent=extent, interpolation="none", aspect="auto")
        below = STRIP_HEIGHT + STRIP_GAP
        axes = page.add_axes(Box(left, top + below, width, IMAGE_SIDE - CAPTION_HEIGHT - below))
        style(axes)
        _draw_curves(axes, example.value_T[steps], start=steps.start)
        if is_last:
            number_steps(axes, name="step")
    if len(stretches) > 1:
        middle = (LEFT + width + BREAK_WIDTH / 2, top + (IMAGE_SIDE - CAPTION_HEIGHT) / 2)
        page.add_text(middle, ELLIPSIS, size=TITLE_SIZE, color=theme.color("muted"), align="center")


def _draw_curves(axes: Axes, value_TD: Float32[np.ndarray, "T D"], *, start: int) -> None:
    """Draw the one channel of gray images as an area, and several as lines."""
    num_steps, num_channels = value_TD.shape
    step_T = np.arange(start, start + num_steps + 1)
    axes.set_xlim(start, start + num_steps)
    axes.set_ylim(min(-0.04, float(value_TD.min())), max(1.04, float(value_TD.max())))
    if num_channels == 1:
        value_T = np.append(value_TD[:, 0], value_TD[-1, 0])
        axes.fill_between(step_T, value_T, step="post", color=theme.color("ink"), linewidth=0)
        return
    for channel in range(num_channels):
        color = CHANNELS[channel].color if num_channels == len(CHANNELS) else theme.color(theme.series(channel))
        axes.plot(step_T[:-1] + 0.5, value_TD[:, channel], color=color, linewidth=0.7, alpha=0.9)


def _to_colors(value_TD: Float32[np.ndarray, "T D"]) -> Float[np.ndarray, "T C"]:
    """Give pixels as they look; those of other than three channels are gray, as bright as their mean."""
    clipped_TD: Float32[np.ndarray, "T D"] = np.clip(value_TD, 0, 1)
    return clipped_TD if value_TD.shape[1] == 3 else clipped_TD.mean(axis=1, keepdims=True).repeat(3, axis=1)
