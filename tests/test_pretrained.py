"""A first phase trained once and adopted by other runs: what may differ after it, and that it changes nothing."""

import json
import shutil

import numpy as np
import pytest

from auxrnn.config import unflatten
from auxrnn.pretraining import first_phase
from command import TINY, call, files_below, train

FIRST = ["--pretrain-steps", "3", "--sampling-steps", "4"]
OBJECTIVES = ("reconstruct", "predict")
# Each other than the default, and other than in TINY: none of it matters before the first label.
OF_LABELS = {
    "supervised_window": 7,
    "joint": False,
    "auxiliary_weight": 3.0,
    "train_steps": 9,
    "lr_halving_epochs": 2.0,
    "label_smoothing": 0.1,
    "labels_per_class": 3,
    "class_weight": "balanced",
}
OF_BOTH = {
    "data": "mnist",
    "seed": 1,
    "segment_length": 9,
    "num_segments": 2,
    "objective": "predict",
    "auxiliary_window": 9,
    "pretrain_steps": 4,
    "hidden_size": 9,
    "batch_size": 9,
    "lr": 0.1,
    "train_examples": 50,
}


@pytest.fixture(scope="module", params=OBJECTIVES)
def pretraining(request, tmp_path_factory):
    """A finished first phase, and its objective; what it says of labels is not what the runs after it say."""
    folder = tmp_path_factory.mktemp("first") / request.param
    words = ["--train-steps", "0", "--supervised-window", "full", "--auxiliary-weight", "2", "--evaluate-every", "1"]
    train(folder, *FIRST, *words, "--objective", request.param)
    return folder, request.param


@pytest.fixture(scope="module")
def reconstructing(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / "run"
    train(folder, *FIRST, "--train-steps", "0")
    return folder


def make(**values):
    return unflatten({"data": "digits", "pretrain_steps": 3, "train_steps": 3} | values)


def events_without_seconds(folder):
    events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in event.items() if "seconds" not in name} for event in events]


@pytest.mark.parametrize("joint", ["--joint", "--no-joint"])
def test_a_run_that_adopts_a_first_phase_ends_as_one_that_pretrained_by_itself(pretraining, joint, tmp_path):
    source, objective = pretraining
    words = [*FIRST, "--train-steps", "3", "--objective", objective, joint, "--evaluate-every", "1"]
    train(tmp_path / "alone", *words)
    train(tmp_path / "adopted", *words, "--pretrained", source)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("alone", "adopted", source)]
    assert weights[0] == weights[1] != weights[2]
    assert events_without_seconds(tmp_path / "alone") == events_without_seconds(tmp_path / "adopted")


def test_a_run_that_adopts_a_first_phase_does_not_pretrain_and_leaves_it_as_it_was(reconstructing, tmp_path):
    before = {path: path.read_bytes() for path in reconstructing.rglob("*") if path.is_file()}
    train(tmp_path / "run", *FIRST, "--train-steps", "1", "--pretrained", reconstructing)
    steps = sorted(path.stem for path in (tmp_path / "run" / "checkpoints").glob("*.json"))
    assert steps == ["step-00000003", "step-00000004"]
    assert {path: path.read_bytes() for path in reconstructing.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", OF_LABELS)
def test_runs_that_differ_in_what_begins_with_the_labels_share_a_first_phase(name):
    assert make(**{name: OF_LABELS[name]}) != make()
    assert first_phase(make(**{name: OF_LABELS[name]})) == first_phase(make())


@pytest.mark.parametrize("name", OF_BOTH)
def test_runs_that_differ_in_what_pretraining_depends_on_share_none(name):
    assert first_phase(make(**{name: OF_BOTH[name]})) != first_phase(make())


def test_lengths_in_passes_over_the_data_have_a_first_phase_too():
    config = unflatten({"data": "digits", "pretrain_epochs": 2.0, "train_epochs": 5.0})
    first = first_phase(config)
    assert (first.schedule.pretrain_epochs, first.schedule.train_steps, first.schedule.train_epochs) == (2.0, 0, None)


@pytest.mark.parametrize("values", [{"objective": "none", "pretrain_steps": 0}, {"pretrain_steps": 0}])
def test_a_run_without_pretraining_has_no_first_phase(values):
    assert first_phase(make(**values)) is None


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ([*FIRST, "--segment-length", "9"], ["--segment-length is 9 here and 10 in"]),
        ([*FIRST, "--seed", "1"], ["--seed is 1 here and 0 in"]),
        ([*FIRST, "--objective", "predict"], ["--objective is predict here and reconstruct in"]),
        (["--pretrain-steps", "0"], ["--pretrained is for a run with pretraining", "--pretrain-steps"]),
        (["--objective", "none"], ["--pretrained is for a run with pretraining", "--objective"]),
    ],
)
def test_a_first_phase_that_does_not_fit_is_refused_in_one_sentence(reconstructing, tmp_path, words, parts):
    assert_refused(["digits", *TINY, *words, "--train-steps", "1"], reconstructing, parts, tmp_path)


def test_a_run_that_went_beyond_its_pretraining_is_refused(reconstructing, tmp_path):
    train(tmp_path / "whole", *FIRST, "--train-steps", "1", "--pretrained", reconstructing)
    words = ["digits", *TINY, *FIRST, "--train-steps", "1"]
    assert_refused(words, tmp_path / "whole", ["is not a finished pretraining", "--train-steps 0"], tmp_path)


def test_a_pretraining_that_was_stopped_is_refused(reconstructing, tmp_path):
    stopped = shutil.copytree(reconstructing, tmp_path / "stopped")
    (stopped / "model.safetensors").unlink()
    assert_refused(["digits", *TINY, *FIRST], stopped, ["is not a finished pretraining"], tmp_path)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    assert_refused(["digits", *TINY, *FIRST], tmp_path / "none", ["is not a run"], tmp_path)


def assert_refused(words, source, parts, folder):
    before = files_below(folder)
    result = call("train", *words, "--pretrained", source, "--out", folder / "run")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("auxrnn: ")
    for part in parts:
        assert part in result.err
    assert files_below(folder) == before


def test_a_first_phase_on_data_that_has_changed_since_is_refused_before_anything_is_made(tmp_path):
    rng = np.random.default_rng(0)
    data = tmp_path / "data.npz"
    np.savez(data, x=rng.random((60, 30)), y=np.arange(60) % 2)
    train(tmp_path / "first", *FIRST, "--train-steps", "0", data=data)
    np.savez(data, x=rng.random((60, 30)), y=np.arange(60) % 2)
    words = [*TINY, *FIRST, "--train-steps", "1", "--pretrained", tmp_path / "first", "--out", tmp_path / "second"]
    result = call("train", data, *words)
    assert result.code == 2
    assert "was pretrained on other data" in result.err
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_first_phase_whose_newest_checkpoint_is_gone_or_damaged_is_refused(is_gone, reconstructing, tmp_path):
    source = shutil.copytree(reconstructing, tmp_path / "first")
    newest = max((source / "checkpoints").glob("*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    if is_gone:
        shutil.rmtree(source / "checkpoints")
    words = [*TINY, *FIRST, "--train-steps", "1", "--pretrained", source, "--out", tmp_path / "second"]
    result = call("train", "digits", *words)
    assert result.code == 2
    assert "has no whole checkpoint" in result.err
    assert not (tmp_path / "second").exists()
