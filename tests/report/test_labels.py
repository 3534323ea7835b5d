from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxrnn.report.labels import spread_labels

ROUNDING = 1e-9
HEIGHTS = st.lists(st.floats(0, 100), max_size=8)


@given(HEIGHTS, st.floats(0, 14))
def test_labels_never_overlap_and_stay_in_range(wanted, gap):
    placed = spread_labels(wanted, gap=gap, low=0.0, high=100.0)
    ordered = sorted(placed)
    assert all(upper - lower >= gap - ROUNDING for lower, upper in pairwise(ordered))
    assert all(-ROUNDING <= place <= 100 + ROUNDING for place in placed)


@given(HEIGHTS, st.floats(0, 14))
def test_labels_keep_the_order_of_their_lines(wanted, gap):
    placed = spread_labels(wanted, gap=gap, low=0.0, high=100.0)
    by_wanted = sorted(range(len(wanted)), key=lambda index: wanted[index])
    places = [placed[index] for index in by_wanted]
    assert all(lower <= upper + ROUNDING for lower, upper in pairwise(places))


@given(st.lists(st.integers(0, 20), unique=True, max_size=8))
def test_labels_that_are_apart_stay_where_they_are(heights):
    wanted = [5.0 * height for height in heights]
    assert spread_labels(wanted, gap=5.0, low=0.0, high=100.0) == pytest.approx(wanted, abs=ROUNDING)


def test_labels_in_each_others_way_part_evenly():
    assert spread_labels([50.0, 90.0, 51.0], gap=5.0, low=0.0, high=100.0) == pytest.approx([48, 90, 53])


def test_labels_at_the_edge_are_pushed_inwards():
    assert spread_labels([100.0, 100.0, 99.0], gap=5.0, low=0.0, high=100.0) == pytest.approx([95, 100, 90])


def test_more_labels_than_fit_are_refused():
    with pytest.raises(ValueError, match="3 labels"):
        spread_labels([1.0, 2.0, 3.0], gap=60.0, low=0.0, high=100.0)
