"""Pictures of what a classifier answered: its confusion matrix, and how far its probabilities can be trusted.

Dimension letter: `C` classes.
"""

from collections.abc import Sequence

import matplotlib
import numpy as np
from jaxtyping import Int64
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, SubFigure

from auxrnn.report import theme
from auxrnn.report.charts import DASHES, new_figure
from auxrnn.report.data_pictures import clean

Bins = Sequence[tuple[int, float, float]]
"""Of each range of probability: the number of answers, their mean probability, and the part of them that is right."""
Counts = Sequence[Sequence[int]] | Int64[np.ndarray, "C C"]
"""How often each class, in rows, was taken for each, in columns."""
RELIABILITY_SIZE = 420.0
LEAST_ROW, MOST_ROW = 10.0, 34.0
"""Heights in pixels."""
AROUND = 110.0
"""Pixels for the title, the names of the axes and level names of columns."""
LETTER = 6.6
"""Width in pixels of a letter at the usual size of names."""
DARKEST = 0.6
"""Numbers in ink can still be read on a cell of this opacity, on a light page and on a dark one."""


@matplotlib.rc_context(theme.STYLE)
def confusion_figure(names: Sequence[str], counts: Counts, *, width: float) -> Figure:
    """Draw a confusion matrix `width` pixels wide: true classes in rows, answers in columns."""
    figure = new_figure(width, _confusion_height(names, width))
    draw_confusion(figure, names, counts)
    return figure


@matplotlib.rc_context(theme.STYLE)
def reliability_figure(bins: Bins, *, width: float, before: Bins | None = None) -> Figure:
    """Draw how often answers of each probability are right; `before` are those without the temperature of the run."""
    figure = new_figure(width, min(width, RELIABILITY_SIZE) + 40)
    draw_reliability(figure, bins, before)
    return figure


@matplotlib.rc_context(theme.STYLE)
def answers_figure(names: Sequence[str], counts: Counts, bins: Bins, *, before: Bins | None = None) -> Figure:
    """Draw a confusion matrix, as large as its classes need, and the reliability curve beside it."""
    wide = max(560.0, LEAST_ROW * len(names) + 160)
    figure = new_figure(wide + RELIABILITY_SIZE, max(_confusion_height(names, wide), RELIABILITY_SIZE))
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(wide, RELIABILITY_SIZE)).flat
    draw_confusion(left, names, counts)
    draw_reliability(right, bins, before)
    return figure


def _confusion_height(names: Sequence[str], width: float) -> float:
    row = min(max(LEAST_ROW, 0.75 * width / len(names)), MOST_ROW)
    return AROUND + _find_upright(names, width) + len(names) * row


def _find_upright(names: Sequence[str], width: float) -> float:
    """Return the height of the names of columns if they must stand upright; 0 where they are level or left out."""
    column, longest = 0.75 * width / len(names), LETTER * max(map(len, _shorten_all(names, width)))
    return longest if LEAST_ROW <= column <= longest else 0.0


def draw_confusion(figure: Figure | SubFigure, names: Sequence[str], counts: Counts) -> None:
    """Fill a figure with a confusion matrix; the darker a cell, the larger its share of the true class.

    Numbers and the names of columns are left out where there is no room for them; rows always have their names.
    """
    counts_CC: Int64[np.ndarray, "C C"] = np.array(counts, dtype=np.int64)
    width, height, num_classes = float(figure.bbox.width), float(figure.bbox.height), len(names)
    upright = _find_upright(names, width)
    row, column = (height - AROUND - upright) / num_classes, 0.75 * width / num_classes
    share_CC = counts_CC / np.maximum(counts_CC.sum(axis=1, keepdims=True), 1)
    axes = figure.subplots()
    # Color without a background: a page may be light or dark. Even a single mistake must not look like none.
    color_CC4 = np.empty((num_classes, num_classes, 4))
    color_CC4[:] = (*to_rgb(theme.color("series-3")), 0)
    color_CC4[..., 3] = np.where(counts_CC > 0, 0.12 + (DARKEST - 0.12) * share_CC, 0)
    axes.imshow(color_CC4, aspect="auto", interpolation="nearest")
    labels, ink = _shorten_all(names, width), theme.color("ink")
    axes.set_yticks(range(num_classes), labels, size=min(11.0, 0.85 * row), color=ink)
    if column >= LEAST_ROW:
        axes.set_xticks(range(num_classes), labels, size=min(11.0, column), color=ink)
        axes.tick_params(axis="x", length=0, labelrotation=90 if upright else 0)
        axes.set_xlabel("answer")
    else:
        axes.set_xticks([])
        axes.set_xlabel("answer, in the order of the rows")
    axes.set_ylabel("true class")
    axes.set_title("Confusion matrix")
    axes.grid(visible=False)
    if len(str(counts_CC.max())) * LETTER + 4 < column and row >= LEAST_ROW:
        for true, answer in np.argwhere(counts_CC):
            text = str(counts_CC[true, answer])
            axes.text(answer, true, text, ha="center", va="center", size=min(11.0, 0.85 * row))
    for edge in ("top", "bottom", "left", "right"):
        axes.spines[edge].set(visible=True, color=theme.color("rule"))


def draw_reliability(figure: Figure | SubFigure, bins: Bins, before: Bins | None) -> None:
    """Fill a figure with how often answers of each probability are right; larger marks stand for more answers."""
    axes = figure.subplots()
    axes.plot([0, 100], [0, 100], color=theme.color("muted"), linewidth=1.4, linestyle=DASHES, label="perfect")
    name = "answers" if before is None else "with the temperature"
    curves = [(bins, "series-3", "o", name)] + ([] if before is None else [(before, "series-2", "s", "as trained")])
    for points, color, mark, label in reversed(curves):
        if points:
            count, x, y = np.array(points, dtype=float).T
            axes.plot(100 * x, 100 * y, color=theme.color(color), zorder=3, marker=mark, markersize=4, label=label)
            axes.scatter(
                100 * x, 100 * y, s=20 + 280 * count / count.sum(), c=theme.color(color), marker=mark, alpha=0.3
            )
    axes.set(xlim=(0, 102), ylim=(0, 102), title="Right answers in percent", aspect="equal", anchor="N")
    axes.set_xlabel("probability of the answer in percent; larger: more answers", size="small")
    axes.legend(loc="best")


def _shorten_all(names: Sequence[str], width: float) -> list[str]:
    return [_shorten(name, max(6, int(0.25 * width / LETTER))) for name in names]


def _shorten(name: str, most: int) -> str:
    """Leave out the middle of a long name: names that begin alike often differ at the end."""
    return clean(name) if len(name) <= most else f"{clean(name[: (most - 1) // 2])}…{clean(name[-(most // 2) :])}"
