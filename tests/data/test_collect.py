"""Examples one by one become flat arrays; classes get an order, and what nobody can train on is refused."""

import os
from pathlib import Path

import numpy as np
import pytest

from auxrnn.data.datasets import NO_PART, collect, load_sources, open_sources
from auxrnn.data.examples import Example, Problems, Source, Understood
from auxrnn.data.formats import SeriesFormat
from auxrnn.data.sequences import NO_LABEL
from auxrnn.errors import RunError


def source_of(*examples, class_names=None, name="made.npz"):
    """A source of the given (label, length or values, part) without files."""
    made = []
    for row, (label, value, *part) in enumerate(examples):
        value_TD = np.full((value, 1), row, dtype=np.float32) if isinstance(value, int) else value
        made.append(Example(value_TD, label, f"{name}, example {row}", *part))
    understood = Understood("made", SeriesFormat(1), made, len(made), 0, class_names)
    return Source(name, (), {"reader": "made"}, lambda _problems, _like: understood)


def gather_all(*sources, problems):
    with Path(os.devnull).open("wb") as nowhere:
        return collect(sources, open_sources(sources, problems), nowhere, problems=problems)


def gather(*examples, **options):
    problems = options.pop("problems", Problems())
    return gather_all(source_of(*examples, **options), problems=problems)


def test_values_lie_one_after_the_other_and_keep_their_labels_and_parts(tmp_path, monkeypatch):
    monkeypatch.setenv("AUXRNN_CACHE_DIR", str(tmp_path))
    source = source_of(("b", 2, "train"), ("a", 1, "train"), (None, 3, "train"), ("b", 1, "test"))
    loaded = load_sources([source])
    assert loaded.flat.value_K.ravel().tolist() == [0, 0, 1, 2, 2, 2, 3]
    assert loaded.flat.begin_N1.tolist() == [0, 2, 3, 6, 7]
    assert loaded.table.label_N.tolist() == [1, 0, NO_LABEL, 1]
    assert loaded.table.part_N.tolist() == [0, 0, 0, 2]
    assert loaded.facts.class_names == ("a", "b")


@pytest.mark.parametrize(
    ("labels", "order"),
    [(["10", "9", "-1"], ("-1", "9", "10")), (["b", "10", "9"], ("10", "9", "b"))],
    ids=["numbers", "words"],
)
def test_classes_are_ordered_by_value_if_all_are_numbers_else_by_letters(labels, order):
    table, facts = gather(*((label, 1) for label in labels))
    assert facts.class_names == order
    assert [order[number] for number in table.label_N] == labels


def test_better_names_and_their_order_come_from_the_files():
    table, facts = gather(("2", 1), ("1", 1), class_names={"1": "one", "2": "two", "3": "three"})
    assert facts.class_names == ("one", "two")
    assert table.label_N.tolist() == [1, 0]


def test_an_empty_sequence_is_left_out_and_counted():
    problems = Problems()
    table, facts = gather(("a", 1), ("a", 0), ("b", 2), problems=problems)
    assert len(table.label_N) == 2
    assert facts.skipped == ("made.npz, example 1 is empty",)


def test_crops_point_to_their_picture():
    pixel = np.zeros((1, 1), dtype=np.uint8)
    examples = [
        Example(pixel, "a", "1.png"),
        Example(pixel, "a", "1.png, crop 1", None, "1.png"),
        Example(pixel, "b", "2.png"),
        Example(pixel, "b", "2.png, crop 1", None, "2.png"),
        Example(pixel, "b", "2.png, crop 2", None, "2.png"),
    ]
    understood = Understood("made", SeriesFormat(1), examples, 5, 0)
    source = Source("made", (), {}, lambda _problems, _like: understood)
    table, _facts = gather_all(source, problems=Problems())
    assert table.origin_N.tolist() == [0, 0, 2, 2, 2]


def test_a_second_source_goes_into_its_part_and_the_unlabeled_lose_their_labels():
    first, test, more = (source_of(*examples) for examples in ([("a", 1), ("b", 1)], [("a", 1)], [("b", 1)]))
    table, _facts = gather_all(first, test._replace(part="test"), more._replace(part="unlabeled"), problems=Problems())
    assert table.part_N.tolist() == [NO_PART, NO_PART, 2, 3]
    assert table.label_N.tolist() == [0, 1, 0, NO_LABEL]


@pytest.mark.parametrize(
    ("examples", "part"),
    [
        ([], "made.npz holds no examples"),
        ([("a", 1), ("a", 1)], "has the single class 'a'"),
        ([(None, 1), (None, 1)], "has no labels"),
        ([("a", 1, "train"), ("b", 1, "train"), ("c", 1, "test")], "example 2 has the label 'c', which no training"),
        ([("a", 1), ("b", np.zeros((2, 3), np.float32))], "example 1 has 3 channels where the first example has 1"),
    ],
    ids=["nothing", "one class", "no labels", "only in test", "channels"],
)
def test_what_nobody_can_train_on_is_refused_or_noted(assert_one_sentence, examples, part):
    with pytest.raises(RunError) as error:
        gather(*examples)
    assert_one_sentence(error, part)
    problems = Problems(is_patient=True)
    gather(*examples, problems=problems)
    assert part in problems.refused[0]


def test_a_label_without_a_name_is_refused(assert_one_sentence):
    with pytest.raises(RunError) as error:
        gather(("1", 1), ("7", 1), class_names={"1": "one", "2": "two"})
    assert_one_sentence(error, "example 1 has the label '7', which has no class name")
