"""What a planned run takes: counted as the run will count it, from little, and written down once."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from auxrnn import runs
from auxrnn.config import DataConfig
from auxrnn.data.catalog import DATASETS
from auxrnn.data.sequences import Flat
from auxrnn.data.summary import count_parts
from auxrnn.errors import UsageError
from auxrnn.experiments.estimates import EstimateBook, RunEstimate, add_seconds, estimate_run, make_key, open_stand_in
from auxrnn.experiments.made_shapes import can_make, make_dataset
from auxrnn.experiments.trials import PhaseCost, Trial, choose_lengths, extrapolate_rows, extrapolate_steps, has_shown
from auxrnn.kernels.library import find_kernel
from auxrnn.plain_config import unflatten
from auxrnn.training.cost import count_evaluations
from auxrnn.training.loop import train
from auxrnn.training.memory import estimate_growth, find_longest
from auxrnn.training.process_memory import read_peak, start_measuring

CPU = torch.device("cpu")
TINY = {"data": "digits", "image_size": 4, "hidden_size": 4, "embedding_size": 4, "head_size": 4, "segment_length": 3}
LENGTHS = {"pretrain_steps": 7, "train_steps": 23, "batch_size": 64, "threads": 1}
SAME_COST = {"seed": 1, "lr": 0.5, "permutation": "other", "gate_init": "chrono", "data_dir": "a", "init_from": "b"}
OTHER_COST = {
    "hidden_size": 5,
    "train_steps": 24,
    "batch_size": 65,
    "threads": 2,
    "supervised_window": 2,
    "image_size": 5,
    "optimizer": "adam",
    "sampling_steps": 0,
    "evaluate_every": 1,
    "train_examples": 100,
}


def make_config(**values):
    return unflatten(TINY | LENGTHS | values)


def open_real(config):
    config = runs.settle(config)
    dataset = runs.load_dataset(config)
    return runs.open_session(config, dataset, runs.prepare(config, dataset), None)


def count_bytes(session):
    return estimate_growth(session).bytes_for(session.batches.batch_size, find_longest(session))


@pytest.mark.parametrize("evaluate_every", [None, 3, 100])
def test_evaluations_are_counted_as_training_does_them(evaluate_every):
    session = open_real(make_config(evaluate_every=evaluate_every, train_examples=100))
    assert train(session)
    done = [event["phase"] for event in session.recorder.events if event["event"] == "evaluation"]
    planned = {phase.name: count_evaluations(phase, evaluate_every=evaluate_every) for phase in session.phases}
    assert planned == {name: done.count(name) for name in ("pretrain", "joint")}


def test_epochs_of_digits_are_as_many_updates_as_its_batches():
    session = open_stand_in(make_config(train_steps=None, train_epochs=2, pretrain_steps=None, pretrain_epochs=0.5))
    assert [phase.num_steps for phase in session.phases] == [12, 46]


def test_a_stand_in_for_a_needle_run_counts_and_weighs_as_the_run_itself():
    values = {"data": "needle", "length": 20, "image_size": None, "validation_fraction": 0.1, "label_fraction": 0.5}
    config = make_config(**values, train_steps=None, train_epochs=1.5)
    stand_in, real = open_stand_in(config), open_real(config)
    assert stand_in.phases == real.phases
    assert stand_in.batches.steps_per_epoch == real.batches.steps_per_epoch
    assert [split.num_examples for split in stand_in.splits] == [split.num_examples for split in real.splits]
    assert count_bytes(stand_in) == count_bytes(real)


def test_a_stand_in_for_mnist_weighs_as_much_as_pictures_in_its_place():
    config = runs.settle(make_config(data="mnist", image_size=None, supervised_window="full"))
    dataset = make_dataset(config.data)
    assert dataset.flat.value_K.shape == (70_000 * 784, 1)
    few = [np.flatnonzero(dataset.table.part_N == part)[:200] for part in np.unique(dataset.table.part_N)]
    table = dataset.table._replace(
        begin_N1=np.arange(401) * 784,
        origin_N=np.arange(400),
        **{name: getattr(dataset.table, name)[np.concatenate(few)] for name in ("label_N", "part_N")},
    )
    pixels = np.random.default_rng(0).integers(256, size=(400 * 784, 1), dtype=np.uint8)
    pictures = dataset._replace(flat=Flat(pixels, table.begin_N1), table=table)
    real = runs.open_session(config, pictures, runs.prepare(config, pictures), None)
    assert count_bytes(open_stand_in(config)) == count_bytes(real)


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "digits"])
def test_a_stand_in_has_the_examples_and_classes_that_are_published(name):
    request, facts = DataConfig(data=name, image_size=3 if name == "stanford_dogs" else None), DATASETS[name]
    assert can_make(request)
    dataset = make_dataset(request)
    parts = count_parts(dataset.table)
    assert (parts["train"], parts["test"]) == (facts.train_examples, facts.test_examples)
    assert len(np.unique(dataset.table.label_N)) == len(dataset.class_names) == facts.num_classes


def test_own_files_and_digits_are_read_rather_than_made(tmp_path):
    assert not can_make(DataConfig(data="digits"))
    assert not can_make(DataConfig(data=str(tmp_path)))
    assert not can_make(DataConfig(data="dbpedia", unlabeled=tmp_path))


def test_made_texts_are_about_as_long_as_those_of_dbpedia():
    length_N = open_stand_in(make_config(data="dbpedia", image_size=None)).batches.split.length_N
    assert 250 < length_N.mean() < 350
    assert np.quantile(length_N, 0.99) < 600
    assert length_N.max() == 1014


def test_crops_count_as_training_images_but_are_never_held_out():
    values = {"data": "stanford_dogs", "image_size": 3, "enlarge_to": 30_000, "validation_fraction": 0.1}
    splits = open_stand_in(make_config(**values, train_steps=1)).splits
    assert splits.validation.num_examples == 1200
    assert splits.test.num_examples == 8580
    session = open_stand_in(make_config(**values | {"validation_fraction": 0.0}, train_steps=1))
    assert session.batches.split.num_examples == 30_000


def test_dogs_without_a_size_are_refused():
    with pytest.raises(UsageError, match="image-size"):
        open_stand_in(make_config(data="stanford_dogs", image_size=None))


def test_seconds_are_all_updates_and_evaluations_of_all_phases():
    costs = {"pretrain": PhaseCost(2.0, 10.0), "joint": PhaseCost(3.0, 100.0)}
    config = make_config(evaluate_every=5)
    once, twice = (
        add_seconds(open_stand_in(planned).phases, costs, evaluate_every=5)
        for planned in (config, replace(config, schedule=replace(config.schedule, train_steps=46)))
    )
    assert once == 7 * 2 + 2 * 10 + 23 * 3 + 6 * 100
    assert twice - once == 23 * 3 + 5 * 100


def test_rows_go_on_as_the_last_two_trials_did():
    assert extrapolate_rows([Trial(1, 9.0), Trial(4, 3.0), Trial(16, 6.0)], 128) == 6 + 112 * 0.25
    assert extrapolate_rows([Trial(1, 6.0)], 3) == 18.0


@pytest.mark.parametrize(
    ("trials", "most"), [([Trial(1, 2.0), Trial(4, 1.0)], 1.0), ([Trial(1, 0.0), Trial(4, 1.0)], 32)]
)
def test_a_chance_of_measuring_carries_no_further_than_proportion(trials, most):
    assert extrapolate_rows(trials, 128) == most


def test_steps_of_a_recurrence_go_on_in_a_line_and_those_of_attention_with_their_square():
    def quadratic(size):
        return Trial(size, 3.0 * size + 0.5 * size**2)

    assert extrapolate_steps([Trial(100, 1.5), Trial(300, 3.5)], 1000, is_attention=False) == pytest.approx(10.5)
    given = extrapolate_steps([quadratic(100), quadratic(300)], 1000, is_attention=True)
    assert given == pytest.approx(quadratic(1000).seconds)


def test_only_long_sequences_are_tried_at_shorter_lengths():
    assert choose_lengths(300, shortest=100) == [300]
    assert choose_lengths(301, shortest=100) == [100, 300]


def test_more_rows_are_tried_until_they_take_long_and_come_no_more_for_nothing():
    assert not has_shown([Trial(1, 10.0)])
    assert not has_shown([Trial(1, 0.01), Trial(4, 0.04)])
    assert not has_shown([Trial(1, 10.0), Trial(4, 10.5)])
    assert has_shown([Trial(1, 10.0), Trial(4, 20.0)])


def test_a_run_far_too_large_for_this_test_is_estimated_in_little_memory():
    values = {"data": "stanford_dogs", "image_size": 128, "objective": "none", "supervised_window": "full"}
    config = unflatten(values | {"batch_size": 256, "train_epochs": 1000, "threads": 1})
    before = start_measuring(CPU)
    estimate = estimate_run(config)
    assert estimate.bytes > 10e9
    assert read_peak(CPU) - before < 2e9
    assert estimate.seconds > 0


@pytest.mark.slow  # a ratio of short times, which a busy machine can turn around
@pytest.mark.parametrize(
    "values",
    [
        {"model": "transformer", "hidden_size": 8, "num_heads": 2, "head_size": 4},
        {"objective": "reconstruct", "supervised_window": 5, "auxiliary_window": 5, "pretrain_steps": 1},
        {"objective": "predict", "supervised_window": "full", "pretrain_steps": 1},
        {"model": "gru", "objective": "none", "supervised_window": "full"},
    ],
    ids=["attention", "windows", "a full window", "gru"],
)
def test_sequences_sixteen_times_as_long_are_estimated_to_take_several_times_as_long(values):
    small = {"data": "needle", "hidden_size": 4, "embedding_size": 4, "head_size": 4, "segment_length": 3}
    planned = small | {"batch_size": 4, "train_steps": 1, "threads": 1} | values

    def estimate_least(length):
        return min(estimate_run(unflatten(planned | {"length": length})).seconds for _ in range(3))

    assert estimate_least(32_000) > 4 * estimate_least(2000)


def test_an_estimate_leaves_the_number_of_threads_as_it_was():
    estimate_run(make_config(threads=2))
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(("name", "value"), SAME_COST.items())
def test_runs_that_take_the_same_share_an_entry(name, value):
    assert make_key(make_config(**{name: value})) == make_key(make_config())


@pytest.mark.parametrize(("name", "value"), OTHER_COST.items())
def test_runs_that_take_something_else_have_entries_of_their_own(name, value):
    assert make_key(make_config(**{name: value})) != make_key(make_config())


def test_another_kernel_does_not_believe_the_book(monkeypatch):
    before = make_key(make_config())
    monkeypatch.setenv("AUXRNN_KERNEL", "none")
    find_kernel.cache_clear()
    try:
        assert make_key(make_config()) != before
    finally:
        monkeypatch.undo()
        find_kernel.cache_clear()


def test_a_book_measures_once_and_remembers_over_a_restart(tmp_path):
    config = make_config()
    path = tmp_path / "new" / "estimates.json"
    assert EstimateBook(path).find(config) is None
    measured = EstimateBook(path).get(config)
    assert measured.seconds > 0
    again = EstimateBook(path)
    assert again.find(replace(config, seed=5)) == again.get(config) == measured
    other = make_config(hidden_size=5)
    assert again.find(other) is None
    again.get(other)
    assert again.find(config) == measured
    assert len(json.loads(path.read_text())) == 2


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"a": 1}', b'{"a": {"seconds": 1}}', b"\xff"])
def test_a_damaged_book_is_begun_anew(tmp_path, content):
    config, path = make_config(), tmp_path / "estimates.json"
    path.write_bytes(content)
    assert EstimateBook(path).find(config) is None
    measured = EstimateBook(path).get(config)
    assert isinstance(measured, RunEstimate)
    assert EstimateBook(path).find(config) == measured
