"""Splits are drawn seeded and stratified, crops stay with their picture, and no class loses its last example."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxrnn.config import DataConfig
from auxrnn.data.datasets import NO_PART, PARTS, Table
from auxrnn.data.sequences import NO_LABEL
from auxrnn.data.splits import divide, drawn_parts, hold_out, is_drawn, keep_labels, keep_some_of_each, take_examples
from auxrnn.errors import UsageError

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=80)
SEEDS = st.integers(0, 2**31)


def table_of(labels, *, part=NO_PART, origins=None):
    label_N = np.array(labels, dtype=np.int64)
    rows = np.arange(len(labels), dtype=np.int64)
    part_N = np.broadcast_to(np.array(part, dtype=np.int8), rows.shape).copy()
    begins = np.arange(len(labels) + 1, dtype=np.int64)
    return Table(begins, label_N, part_N, rows if origins is None else np.array(origins, dtype=np.int64))


def config(**values):
    return DataConfig(data="made", **values)


def assert_stratified(part, whole, label_N):
    """Each class to within one example of its share, and no row twice."""
    exact = np.bincount(label_N[whole], minlength=5) * len(part) / len(whole)
    assert (np.abs(np.bincount(label_N[part], minlength=5) - exact) < 1).all()
    assert len(set(part.tolist())) == len(part)


@given(labels=LABELS, seed=SEEDS, data=st.data())
def test_a_subset_has_the_exact_size_and_the_proportions_of_the_whole(labels, seed, data):
    label_N, rows = np.array(labels), np.arange(len(labels))
    num_examples = data.draw(st.integers(1, len(labels)))
    part = take_examples(label_N, rows, num_examples, seed=seed)
    assert len(part) == num_examples
    assert_stratified(part, rows, label_N)
    assert part.tolist() == take_examples(label_N, rows, num_examples, seed=seed).tolist()


@given(labels=LABELS, seed=SEEDS, fraction=st.floats(0, 0.99))
def test_holding_out_divides_the_examples_and_keeps_the_proportions_in_both(labels, seed, fraction):
    table, rows = table_of(labels), np.arange(len(labels))
    num_held_out = round(fraction * len(labels))
    if fraction > 0 and not 0 < num_held_out < len(labels):
        with pytest.raises(UsageError):
            hold_out(table, rows, fraction, seed=seed)
        return
    train, validation = hold_out(table, rows, fraction, seed=seed)
    assert len(validation) == num_held_out
    assert sorted([*train, *validation]) == rows.tolist()
    assert_stratified(train, rows, table.label_N)
    if num_held_out:
        assert_stratified(validation, rows, table.label_N)


@given(labels=LABELS, seed=SEEDS, fraction=st.floats(0.01, 1))
def test_a_fraction_of_labels_keeps_at_least_one_of_each_class(labels, seed, fraction):
    label_N, rows = np.array(labels), np.arange(len(labels))
    kept = keep_labels(label_N, rows, fraction, seed=seed)
    assert set(label_N[kept]) == set(labels)
    assert len(kept) == max(round(fraction * len(labels)), len(set(labels)))
    assert (np.diff(kept) > 0).all()


@given(labels=LABELS, fraction=st.floats(0.01, 0.99), data=st.data())
def test_a_drawn_test_split_leaves_every_class_an_example_and_ignores_the_seed(labels, fraction, data):
    table = table_of(labels)
    try:
        division = divide(table, config(test_fraction=fraction), seed=1)
    except UsageError:
        assert round(fraction * len(labels)) == 0 or len(set(labels)) == len(labels)
        return
    assert set(table.label_N[division.train]) == set(labels)
    assert sorted([*division.train, *division.test]) == list(range(len(labels)))
    assert divide(table, config(test_fraction=fraction), seed=2).test.tolist() == division.test.tolist()


def test_crops_go_where_their_picture_goes():
    labels = [0, 0, 0, 1, 1, 1] * 10
    origins = [row - row % 3 for row in range(60)]
    table = table_of(labels, origins=origins)
    division = divide(table, config(test_fraction=0.2, validation_fraction=0.2), seed=0)
    for rows in (division.test, division.validation):
        assert len(rows)
        assert (table.origin_N[rows] == rows).all()
        assert not np.isin(table.origin_N[division.train], rows).any()


def test_rows_without_a_label_train_but_are_never_drawn_to_test_on():
    table = table_of([0, 1, NO_LABEL] * 20)
    division = divide(table, config(validation_fraction=0.1, label_fraction=0.5), seed=0)
    assert (table.label_N[division.test] != NO_LABEL).all()
    assert (table.label_N[division.validation] != NO_LABEL).all()
    assert (table.label_N[division.train] == NO_LABEL).sum() == 20
    assert (table.label_N[division.labeled] != NO_LABEL).all()
    assert len(division.labeled) == round(0.5 * (len(division.train) - 20))


@given(labels=st.lists(st.integers(NO_LABEL, 4), min_size=1, max_size=80), seed=SEEDS, num_labels=st.integers(1, 20))
def test_each_class_keeps_so_many_labels_or_all_and_fewer_are_some_of_more(labels, seed, num_labels):
    label_N, rows = np.array(labels), np.arange(len(labels))
    kept, more = (keep_some_of_each(label_N, rows, count, seed=seed) for count in (num_labels, num_labels + 3))
    for label in set(labels) - {NO_LABEL}:
        assert (label_N[kept] == label).sum() == min(num_labels, labels.count(label))
    assert (label_N[kept] != NO_LABEL).all()
    assert set(kept.tolist()) <= set(more.tolist())
    assert kept.tolist() == sorted(set(kept.tolist()))


def test_labels_per_class_leave_the_other_splits_alone_and_are_said_where_there_are_fewer():
    table = table_of([0] * 30 + [1] * 10 + [2] * 3)
    whole, few = (
        divide(table, config(validation_fraction=0.2, **more), seed=0) for more in ({}, {"labels_per_class": 4})
    )
    for name in ("train", "validation", "test"):
        assert getattr(whole, name).tolist() == getattr(few, name).tolist()
    assert is_drawn(table_of([0, 1]), config(labels_per_class=1, test_fraction=0.0))
    num_rare = int((table.label_N[few.labeled] == 2).sum())
    assert few.describe_rare(table, "abc", 4) == f"classes with fewer than 4 labels keep all of theirs: c ({num_rare})"
    assert few.describe_rare(table, "abc", 2) == whole.describe_rare(table, "abc", None) == ""
    with pytest.raises(ValueError, match="label_fraction and labels_per_class are both given"):
        config(label_fraction=0.5, labels_per_class=1)


def test_splits_that_the_files_make_are_kept():
    part = [PARTS.index(name) for name in ("train", "validation", "test", "unlabeled")] * 5
    table = table_of([0, 1, 0, NO_LABEL, 1, 0, 1, NO_LABEL] * 2 + [0, 1, 0, NO_LABEL], part=part)
    division = divide(table, config(), seed=7)
    assert division.test.tolist() == [2, 6, 10, 14, 18]
    assert division.validation.tolist() == [1, 5, 9, 13, 17]
    assert division.train.tolist() == [0, 4, 8, 12, 16, 3, 7, 11, 15, 19]
    assert division.labeled.tolist() == [0, 4, 8, 12, 16]
    assert (drawn_parts(table, config()), is_drawn(table, config())) == ([], False)
    assert is_drawn(table, config(label_fraction=0.5))


def test_what_is_drawn_is_named():
    table = table_of([0, 1] * 10)
    assert drawn_parts(table, config()) == ["test"]
    assert drawn_parts(table, config(validation_fraction=0.1)) == ["test", "validation"]
    assert drawn_parts(table, config(test_fraction=0.0)) == []


def test_another_seed_draws_other_examples():
    table, rows = table_of([0, 1] * 100), np.arange(200)
    by_seed = [
        (
            take_examples(table.label_N, rows, 50, seed=seed).tolist(),
            hold_out(table, rows, 0.5, seed=seed)[1].tolist(),
            keep_labels(table.label_N, rows, 0.5, seed=seed).tolist(),
            keep_some_of_each(table.label_N, rows, 20, seed=seed).tolist(),
        )
        for seed in (0, 1)
    ]
    assert all(first != second for first, second in zip(*by_seed, strict=True))


@pytest.mark.parametrize("num_examples", [0, 5])
def test_a_subset_that_cannot_be_drawn_is_wrong_usage(assert_one_sentence, num_examples):
    with pytest.raises(UsageError) as error:
        take_examples(np.arange(4), np.arange(4), num_examples, seed=0)
    assert_one_sentence(error, f"train_examples is {num_examples}", "from 1 to 4")


@pytest.mark.parametrize("fraction", [0.01, 0.99])
def test_holding_out_nothing_or_everything_is_wrong_usage(assert_one_sentence, fraction):
    with pytest.raises(UsageError) as error:
        hold_out(table_of([0, 1, 2, 3]), np.arange(4), fraction, seed=0)
    assert_one_sentence(error, f"validation_fraction is {fraction}", "of 4 examples")


def test_two_validation_splits_are_wrong_usage(assert_one_sentence):
    table = table_of([0, 1, 0, 1, 0, 1], part=[0, 0, 1, 1, 2, 2])
    with pytest.raises(UsageError) as error:
        divide(table, config(validation_fraction=0.5), seed=0)
    assert_one_sentence(error, "validation_fraction", "of its own")
