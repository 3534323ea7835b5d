"""Pictures of a classifier's answers: which classes it confuses, and whether its probabilities can be trusted."""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from auxrnn.report import theme
from auxrnn.report.charts import DASHES, NARROW_BELOW, add_legend, new_figure

MOST_NUMBERED, MOST_NAMED = 20, 40
NAME_LETTERS = 14


@matplotlib.rc_context(theme.STYLE)
def confusion_figure(names: Sequence[str], counts: Sequence[Sequence[int]], *, width: float) -> Figure:
    """Draw how often each class was answered: true classes in rows, answers in columns, darker the larger its share."""
    count_CC = np.asarray(counts)
    side = min(width, 60.0 * len(names) + 200.0)
    figure = new_figure(width, side)
    axes = figure.subplots()
    share_CC = count_CC / count_CC.sum(axis=1, keepdims=True).clip(1)
    # Shapes whose color is see-through, not an image: they follow the page from light to dark.
    cells = np.argwhere(count_CC > 0)
    squares = [Rectangle((column - 0.5, row - 0.5), 1, 1) for row, column in cells.tolist()]
    colors = [(theme.color("series-3"), 0.08 + 0.9 * share_CC[row, column]) for row, column in cells.tolist()]
    axes.add_collection(PatchCollection(squares, facecolors=colors, linewidths=0))
    axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5), aspect="equal")
    axes.grid(visible=False)
    is_narrow = width < NARROW_BELOW
    if len(names) <= (MOST_NUMBERED // 2 if is_narrow else MOST_NUMBERED):
        for row, column in cells.tolist():
            color = theme.color("paper" if share_CC[row, column] > 0.5 else "ink")
            axes.text(column, row, str(count_CC[row, column]), ha="center", va="center", color=color, size="small")
    if len(names) <= MOST_NAMED:
        short = [name if len(name) <= NAME_LETTERS else name[: NAME_LETTERS - 1] + "\u2026" for name in names]
        rotation = 90 if max(map(len, short)) > 2 else 0
        axes.set_xticks(range(len(names)), short, rotation=rotation)
        axes.set_yticks(range(len(names)), short)
    axes.set(xlabel="answer", ylabel="true class")
    return figure


@matplotlib.rc_context(theme.STYLE)
def reliability_figure(bins: Sequence[tuple[int, float, float]], *, width: float) -> Figure:
    """Draw how often answers are right against how sure the network is; bins are number, confidence and accuracy."""
    figure = new_figure(width, min(width, 420.0))
    axes = figure.subplots()
    number, confidence, accuracy = zip(*bins, strict=True)
    axes.plot([0, 1], [0, 1], color=theme.color("muted"), linestyle=DASHES, label="as sure as it is right")
    axes.plot(confidence, accuracy, "o-", color=theme.color("series-3"), label="answers, larger where there are more")
    size = 20 + 180 * np.array(number) / max(number)
    axes.scatter(confidence, accuracy, s=size, color=theme.color("series-3"), zorder=3)
    axes.set(xlim=(0, 1.03), ylim=(0, 1.03), xlabel="probability of the answer", ylabel="part that is right")
    add_legend(figure, "outside lower left", num_columns=1 if width < NARROW_BELOW else 2)
    return figure
