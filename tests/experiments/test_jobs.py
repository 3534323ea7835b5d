"""Jobs are known by their settings: who asks for the same run shares it, who asks for another does not."""

import pytest

from auxrnn.config import unflatten
from auxrnn.experiments.jobs import Job, name_job

BASE = {"data": "mnist", "image_size": 14, "supervised_window": 28, "pretrain_steps": 5, "train_steps": 5}
WITHOUT_EFFECT = {
    "data_dir": "elsewhere",
    "threads": 2,
    "device": "cpu",
    "evaluate_every": 3,
    "checkpoint_every": 7,
    "log_every": 9,
}
WITH_EFFECT = {
    "data": "pmnist",
    "image_size": 7,
    "train_examples": 100,
    "hidden_size": 9,
    "gate_init": "chrono",
    "objective": "predict",
    "supervised_window": 29,
    "auxiliary_window": 29,
    "segment_length": 9,
    "train_steps": 6,
    "joint": False,
    "lr": 0.1,
}


def make(**values):
    return unflatten(BASE | values)


def test_equal_settings_have_equal_names_wherever_they_stand_in_a_table():
    assert Job("one", "row", make()).name == Job("other", "column", make()).name == name_job(make())


def test_a_name_tells_people_what_the_run_is():
    words = name_job(make(seed=3)).split("-")
    assert (words[:3], words[-1]) == (["mnist14", "rlstm", "w28"], "s3")
    assert name_job(unflatten({"data": "dbpedia", "model": "transformer"})).startswith("dbpedia-transformer-")


def test_seeds_of_a_run_have_names_that_differ_in_their_end_alone():
    assert name_job(make(seed=1)) == name_job(make(seed=0)).removesuffix("-s0") + "-s1"


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_what_changes_no_weight_changes_no_name(name):
    assert make(**{name: WITHOUT_EFFECT[name]}) != make()
    assert name_job(make(**{name: WITHOUT_EFFECT[name]})) == name_job(make())


@pytest.mark.parametrize("name", WITH_EFFECT)
def test_what_changes_the_weights_changes_the_name(name):
    assert name_job(make(**{name: WITH_EFFECT[name]})) != name_job(make())


def test_a_training_a_measurement_and_a_count_of_the_same_settings_have_three_names():
    names = [name_job(make(), kind) for kind in ("train", "cost", "data")]
    assert len(set(names)) == 3
    assert [name.split("-")[0] for name in names] == ["mnist14", "cost", "data"]


def test_a_count_of_a_dataset_is_named_by_the_data_alone():
    assert name_job(make(hidden_size=9, seed=1), "data") == name_job(make(), "data")
    assert name_job(make(train_examples=100), "data") != name_job(make(), "data")


@pytest.mark.parametrize("changes", [{"lr": 0.1}, {"train_steps": 7}, {"sampling_steps": 3}, {"auxiliary_weight": 9.0}])
def test_a_measurement_is_not_named_by_how_long_and_how_fast_the_network_learns(changes):
    assert name_job(make(**changes), "cost") == name_job(make(), "cost")
    assert name_job(make(**changes)) != name_job(make())


@pytest.mark.parametrize("changes", [{"batch_size": 7}, {"hidden_size": 9}, {"segment_length": 5}])
def test_a_measurement_is_named_by_what_an_update_costs(changes):
    assert name_job(make(**changes), "cost") != name_job(make(), "cost")


def test_own_files_have_the_same_name_in_every_folder():
    first, second = (name_job(make(data=f"/{folder}/made.npz", image_size=None)) for folder in ("one", "two"))
    assert first == second != name_job(make(data="/one/other.npz", image_size=None))
