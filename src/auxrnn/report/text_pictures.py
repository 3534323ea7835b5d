"""Texts, and below each the steps that a model reads: a character or byte each, with its token.

Dimension letters: `T` steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from auxrnn.report import theme
from auxrnn.report.example_rows import (
    CAPTION_HEIGHT,
    FONT_SIZE,
    HEADER_HEIGHT,
    INNER_WIDTH,
    MARGIN,
    Entry,
    Shown,
    choose,
    count_steps,
    draw_header,
    new_page,
    write_caption,
)
from auxrnn.report.lettering import BOX, ELLIPSIS, clean_step, measure, wrap
from auxrnn.report.panel import Box, Panel

LINE_HEIGHT = 18.0
MOST_LINES = 4
NUM_CELLS = 49
CELL_WIDTH = INNER_WIDTH / NUM_CELLS
CELL_HEIGHT = 34.0
NUM_LAST = 12
BREAK_CELLS = 2
TOKEN_SIZE = 7.5
STRIP_GAP = 6.0
ROW_GAP = 16.0
LETTER_LINE = 16.0
TOKEN_LINE = 29.0
NUM_ASCII = 128
PART_OF_LETTER = "\u00b7"
UNKNOWN_GROUND = "#fdebd8"


class Step(NamedTuple):
    """One step of a text as it is drawn."""

    cell: int
    """Its place in the strip, from the left."""
    letter: str
    token: int
    is_unknown: bool


def text_figure(shown: Sequence[Shown], *, title: str, unknown: int | None) -> Figure:
    """Draw texts with their first and last steps; those whose token is `unknown` are marked."""
    examples = choose(shown)
    texts = [wrap(example.text or "", INNER_WIDTH, size=FONT_SIZE, max_lines=MOST_LINES) for example in examples]
    heights = [CAPTION_HEIGHT + len(lines) * LINE_HEIGHT + STRIP_GAP + CELL_HEIGHT + ROW_GAP for lines in texts]
    page = new_page(sum(heights))
    what = "bytes" if unknown is None else "characters"
    key = [] if unknown is None else [Entry("not in the alphabet", theme.color("mark"))]
    draw_header(page, title, f"Each text, and the first and last {what} that the model reads, with their tokens", key)
    top = HEADER_HEIGHT
    for example, lines, height in zip(examples, texts, heights, strict=True):
        write_caption(page, example.title, left=MARGIN, top=top, note=count_steps(len(example.value_T)))
        _write_lines(page, lines, top=top + CAPTION_HEIGHT)
        steps = lay_out_steps(example, unknown=unknown)
        _draw_steps(page, steps, top=top + CAPTION_HEIGHT + len(lines) * LINE_HEIGHT + STRIP_GAP)
        top += height
    return page.figure


def lay_out_steps(example: Shown, *, unknown: int | None) -> list[Step]:
    """Give the steps that there is room for: all, or the first and the last with a gap between."""
    num_steps = len(example.value_T)
    cells = {step: step for step in range(min(num_steps, NUM_CELLS))}
    if num_steps > NUM_CELLS:
        cells = {step: step for step in range(NUM_CELLS - BREAK_CELLS - NUM_LAST)}
        cells |= {num_steps - back: NUM_CELLS - back for back in range(NUM_LAST, 0, -1)}
    letters = _spell(example, list(cells), is_bytes=unknown is None)
    tokens = [int(example.value_T[step]) for step in cells]
    return [
        Step(cell, letter, token, token == unknown)
        for cell, letter, token in zip(cells.values(), letters, tokens, strict=True)
    ]


def _spell(example: Shown, steps: Sequence[int], *, is_bytes: bool) -> list[str]:
    """Give a letter for each step; none where the text does not have a character a step."""
    if is_bytes:
        tokens = [int(example.value_T[step]) for step in steps]
        return [clean_step(chr(token)) if token < NUM_ASCII else PART_OF_LETTER for token in tokens]
    if example.text is None or len(example.text) != len(example.value_T):
        return [""] * len(steps)
    letters = [clean_step(example.text[step]) for step in steps]
    return [letter if measure(letter, size=FONT_SIZE) < CELL_WIDTH else BOX for letter in letters]


def _write_lines(page: Panel, lines: Sequence[str], *, top: float) -> None:
    for number, line in enumerate(lines):
        position = (MARGIN, top + (number + 0.5) * LINE_HEIGHT - 1)
        page.add_text(position, line, size=FONT_SIZE, color=theme.color("muted")).set_parse_math(False)


def _draw_steps(page: Panel, steps: Sequence[Step], *, top: float) -> None:
    axes = page.add_axes(Box(MARGIN, top, INNER_WIDTH, CELL_HEIGHT))
    axes.set_axis_off()
    axes.set(xlim=(0, INNER_WIDTH), ylim=(CELL_HEIGHT, 0))
    for is_unknown, ground in ((False, theme.color("band")), (True, UNKNOWN_GROUND)):
        cells = [(step.cell * CELL_WIDTH + 0.5, CELL_WIDTH - 1) for step in steps if step.is_unknown == is_unknown]
        axes.broken_barh(cells, (0, CELL_HEIGHT), facecolors=ground, edgecolors="none")
    for step in steps:
        ink, muted = ("mark", "mark") if step.is_unknown else ("ink", "muted")
        _write_centered(axes, step.cell + 0.5, LETTER_LINE, step.letter, size=FONT_SIZE, color=ink)
        _write_centered(axes, step.cell + 0.5, TOKEN_LINE, str(step.token), size=TOKEN_SIZE, color=muted)
    if steps and steps[-1].cell > len(steps):
        middle = steps[-NUM_LAST].cell - BREAK_CELLS / 2
        _write_centered(axes, middle, CELL_HEIGHT / 2, ELLIPSIS, size=FONT_SIZE, color="muted")


def _write_centered(axes: Axes, cell: float, line: float, text: str, *, size: float, color: str) -> None:
    drawn = axes.text(cell * CELL_WIDTH, line, text, size=size, color=theme.color(color), ha="center", va="baseline")
    drawn.set_parse_math(False)
