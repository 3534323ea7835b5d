"""Pictures of answers: every class keeps its name, numbers only where there is room, for pages and for files."""

import itertools

import numpy as np
import pytest

from auxrnn.report.answers import answers_figure, confusion_figure, reliability_figure
from auxrnn.report.charts import to_png, to_svg

BINS = [(10, 0.35, 0.2), (100, 0.8, 0.7), (300, 0.97, 0.9)]
NAMES = [f"a dog of breed number {number}" for number in range(120)]


def texts_of(figure):
    """What is written in cells, beside rows, and below columns, with the boxes of the names of rows."""
    figure.canvas.draw()
    (axes,) = figure.axes
    rows = axes.get_yticklabels()
    boxes = [label.get_window_extent() for label in rows]
    return [one.get_text() for one in axes.texts], rows, [one.get_text() for one in axes.get_xticklabels()], boxes


@pytest.mark.parametrize("width", [370.0, 960.0])
@pytest.mark.parametrize("num_classes", [2, 10, 37, 120])
def test_names_of_rows_differ_and_do_not_overlap(num_classes, width):
    counts_CC = np.arange(num_classes**2).reshape(num_classes, num_classes) % 50
    _, rows, columns, boxes = texts_of(confusion_figure(NAMES[:num_classes], counts_CC.tolist(), width=width))
    assert len({label.get_text() for label in rows}) == num_classes
    assert all(label.get_fontsize() >= 8 for label in rows)
    assert all(above.y0 >= below.y1 - 2.5 for above, below in itertools.pairwise(boxes))
    assert len(columns) in (0, num_classes)


def test_counts_are_written_where_there_is_room_and_nothing_for_none():
    cells, *_ = texts_of(confusion_figure(["cat", "dog"], [[17, 0], [3, 4]], width=370.0))
    assert cells == ["17", "3", "4"]
    cells, *_ = texts_of(confusion_figure(NAMES, np.eye(120, dtype=int) * 1000, width=370.0))
    assert cells == []


def test_the_reliability_curve_has_a_second_one_where_there_is_a_temperature():
    for before, expected in ((None, ["perfect", "answers"]), (BINS, ["perfect", "as trained", "with the temperature"])):
        (axes,) = reliability_figure(BINS, width=370.0, before=before).axes
        assert axes.get_legend_handles_labels()[1] == expected
        assert axes.lines[-1].get_xydata() == pytest.approx(np.array([[35, 20], [80, 70], [97, 90]]))


def test_pictures_become_files_and_parts_of_pages():
    assert to_png(answers_figure(["cat", "dog"], [[17, 0], [3, 4]], BINS)).startswith(b"\x89PNG")
    assert to_png(answers_figure(["cat", "dog"], [[0, 0], [0, 0]], [])).startswith(b"\x89PNG")
    svg = to_svg(confusion_figure(["cat", "dog"], [[17, 0], [3, 4]], width=370.0), name="confusion")
    assert "var(--ink" in svg
