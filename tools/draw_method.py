"""Draws the pictures of docs/method.md as SVG: `python tools/draw_method.py docs`."""

import sys
from html import escape
from pathlib import Path

WIDTH, STEP, LEFT, NUM_STEPS = 960, 40, 98, 20
ANCHOR, SEGMENT, WINDOW = 11, 5, 4
INK, GRAY, PALE = "#1b2430", "#5b6673", "#e3e8ee"
MAIN, AUXILIARY, SUPERVISED = "#31465e", "#c2410c", "#0f6b5c"
STYLE = "font-family: system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def x_of(step: float) -> float:
    """Return the horizontal center of a step, counted from 1."""
    return LEFT + (step - 0.5) * STEP


def text(x: float, y: float, words: str, *, color: str = INK, size: int = 14, anchor: str = "middle") -> str:
    """Return a line of text."""
    return f'<text x="{x}" y="{y}" fill="{color}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'


def box(step: int, y: float, *, fill: str, stroke: str, label: str = "", color: str = INK) -> str:
    """Return a square around the center of a step, with a label."""
    square = f'<rect x="{x_of(step) - 15}" y="{y - 15}" width="30" height="30" rx="4" fill="{fill}" stroke="{stroke}"/>'
    return square + (text(x_of(step), y + 5, label, color=color, size=12) if label else "")


def cell(step: int, y: float, *, color: str, has_graph: bool) -> str:
    """Return a state of a recurrent network: filled where the graph is kept, empty where it is not."""
    fill, stroke = (color, color) if has_graph else ("white", "#9aa5b1")
    return f'<circle cx="{x_of(step)}" cy="{y}" r="11" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>'


def arrow(x1: float, y1: float, x2: float, y2: float, *, color: str = GRAY, dash: str = "") -> str:
    """Return an arrow from one point to another; its head takes the color of the line."""
    head = f'marker-end="url(#{color[1:]})"'
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="1.5" {dash} {head}/>'


def bar(first: int, last: int, y: float, words: str, *, color: str) -> str:
    """Return a bracket below steps `first` to `last`, and what it means."""
    left, right = x_of(first) - 15, x_of(last) + 15
    line = f'<path d="M{left} {y - 7} V{y} H{right} V{y - 7}" fill="none" stroke="{color}" stroke-width="2"/>'
    return line + text((left + right) / 2, y + 19, words, color=color, size=13)


def main_row(y: float, kept: set[int]) -> list[str]:
    """Return the inputs and the states of the main LSTM; states in `kept` belong to a gradient window."""
    parts = [text(LEFT - 8, y + 5, "main LSTM", size=13, anchor="end"), text(LEFT - 8, y + 65, "input", anchor="end")]
    for step in range(1, NUM_STEPS + 1):
        is_segment = ANCHOR - SEGMENT <= step <= ANCHOR
        parts.append(box(step, y + 60, fill="#fff1e6" if is_segment else "white", stroke=PALE, label=f"x{step}"))
        parts.append(arrow(x_of(step), y + 44, x_of(step), y + 15))
        if step > 1:
            parts.append(arrow(x_of(step - 1) + 12, y, x_of(step) - 14, y))
    colors = {step: AUXILIARY if step <= ANCHOR else SUPERVISED for step in kept}
    return parts + [
        cell(step, y, color=colors.get(step, MAIN), has_graph=step in kept) for step in range(1, NUM_STEPS + 1)
    ]


def classifier(y: float) -> list[str]:
    """Return the classifier on the last state."""
    x = x_of(NUM_STEPS)
    return [
        arrow(x, y - 14, x, y - 44, color=SUPERVISED),
        f'<rect x="{x - 38}" y="{y - 76}" width="76" height="30" rx="4" fill="white" stroke="{SUPERVISED}"/>',
        text(x, y - 56, "class?", color=SUPERVISED, size=13),
    ]


def draw_reconstruct() -> str:
    """Return the r-LSTM: a decoder rebuilds, last step first, what was read before the anchor."""
    y = 190
    kept = set(range(ANCHOR - WINDOW + 1, ANCHOR + 1)) | set(range(NUM_STEPS - WINDOW + 1, NUM_STEPS + 1))
    parts = main_row(y, kept) + classifier(y)
    parts.append(text(LEFT - 8, 95, "decoder", size=13, anchor="end"))
    for place in range(SEGMENT):
        step, source = ANCHOR + place, ANCHOR - place
        target = box(step, 40, fill="#fff1e6", stroke=AUXILIARY, label=f"x{source - 1}")
        parts += [cell(step, 90, color=AUXILIARY, has_graph=True), target]
        parts.append(arrow(x_of(step), 78, x_of(step), 57, color=AUXILIARY))
        parts.append(text(x_of(step), 122, f"x{source}", color=GRAY, size=11))
        if place:
            parts.append(arrow(x_of(step - 1) + 12, 90, x_of(step) - 14, 90, color=AUXILIARY))
    parts.append(arrow(x_of(ANCHOR), y - 13, x_of(ANCHOR), 128, color=AUXILIARY))
    parts.append(text(x_of(ANCHOR) - 12, 160, "anchor", color=AUXILIARY, size=13, anchor="end"))
    parts.append(text(x_of(ANCHOR) - 28, 45, "rebuilt, last step first", color=AUXILIARY, size=13, anchor="end"))
    parts.append(text(x_of(ANCHOR) - 28, 122, "is fed", color=GRAY, size=12, anchor="end"))
    parts.append(bar(ANCHOR - SEGMENT, ANCHOR, 286, "segment", color=AUXILIARY))
    parts.append(bar(ANCHOR - WINDOW + 1, ANCHOR, 330, "auxiliary window", color=AUXILIARY))
    parts.append(bar(NUM_STEPS - WINDOW + 1, NUM_STEPS, 330, "supervised window", color=SUPERVISED))
    return whole(parts, 365)


def draw_predict() -> str:
    """Return the p-LSTM: the main network reads on from the anchor, and a layer above says what comes next."""
    y = 190
    parts = [text(LEFT - 8, 95, "upper LSTM", size=13, anchor="end")]
    kept = set(range(ANCHOR - SEGMENT, ANCHOR)) | set(range(NUM_STEPS - WINDOW + 1, NUM_STEPS + 1))
    parts += main_row(y, kept) + classifier(y)
    for step in range(ANCHOR - SEGMENT, ANCHOR):
        parts.append(cell(step, 90, color=AUXILIARY, has_graph=True))
        parts.append(box(step, 40, fill="#fff1e6", stroke=AUXILIARY, label=f"x{step + 1}"))
        parts.append(arrow(x_of(step), 78, x_of(step), 57, color=AUXILIARY))
        parts.append(arrow(x_of(step), y - 13, x_of(step), 104, color=AUXILIARY))
        if step > ANCHOR - SEGMENT:
            parts.append(arrow(x_of(step - 1) + 12, 90, x_of(step) - 14, 90, color=AUXILIARY))
    cut = x_of(ANCHOR - SEGMENT) - STEP / 2
    parts.append(f'<line x1="{cut}" y1="110" x2="{cut}" y2="272" stroke="{AUXILIARY}" stroke-dasharray="4 4"/>')
    parts.append(text(cut - 8, 128, "anchor: the", color=AUXILIARY, size=13, anchor="end"))
    parts.append(text(cut - 8, 146, "gradient stops", color=AUXILIARY, size=13, anchor="end"))
    parts.append(
        text(x_of(ANCHOR) - 6, 45, "predicted from what was read so far", color=AUXILIARY, size=13, anchor="start")
    )
    parts.append(bar(ANCHOR - SEGMENT, ANCHOR, 286, "segment", color=AUXILIARY))
    parts.append(bar(NUM_STEPS - WINDOW + 1, NUM_STEPS, 330, "supervised window", color=SUPERVISED))
    return whole(parts, 365)


def draw_memory() -> str:
    """Return how a step is computed: one pass without a graph, then all windows as one batch each."""
    parts = [text(LEFT - 8, 65, "pass 1", anchor="end")]
    for step in range(1, NUM_STEPS + 1):
        parts.append(cell(step, 60, color=MAIN, has_graph=False))
        if step > 1:
            parts.append(arrow(x_of(step - 1) + 12, 60, x_of(step) - 14, 60))
    parts.append(
        text(x_of(1) - 12, 28, "no graph: nothing is kept but the states where windows begin", size=13, anchor="start")
    )
    parts.append(text(LEFT - 8, 165, "pass 2", anchor="end"))
    for last, color, words in ((ANCHOR, AUXILIARY, "auxiliary loss"), (NUM_STEPS, SUPERVISED, "classification loss")):
        start = last - WINDOW
        parts.append(f'<circle cx="{x_of(start)}" cy="60" r="11" fill="{PALE}" stroke="{color}" stroke-width="2"/>')
        parts.append(arrow(x_of(start), 74, x_of(start) + 28, 148, color=color))
        for step in range(start + 1, last + 1):
            parts.append(cell(step, 160, color=color, has_graph=True))
            if step > start + 1:
                parts.append(arrow(x_of(step - 1) + 12, 160, x_of(step) - 14, 160, color=color))
        parts.append(bar(start + 1, last, 192, words, color=color))
    parts.append(text(x_of(1) - 12, 140, "with a graph: the steps", size=13, anchor="start"))
    parts.append(text(x_of(1) - 12, 158, "inside the windows only", size=13, anchor="start"))
    return whole(parts, 225)


def whole(parts: list[str], height: int) -> str:
    """Return a finished SVG on a white ground, with an arrow head for each color."""
    heads = "".join(
        f'<marker id="{color[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{color}"/></marker>'
        for color in (GRAY, AUXILIARY, SUPERVISED)
    )
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" style="{STYLE}">'
    ground = f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    return "\n".join([opening, f"<defs>{heads}</defs>", ground, *parts, "</svg>", ""])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, picture in (("reconstruct", draw_reconstruct()), ("predict", draw_predict()), ("memory", draw_memory())):
        (folder / f"method-{name}.svg").write_text(picture)
