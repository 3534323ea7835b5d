"""The best weights of a run give calibrated probabilities, everywhere and without changing an answer."""

import json

import numpy as np
import pytest
import torch

from auxrnn import Stream, runs, saved
from auxrnn.data.formats import make_encoding
from auxrnn.data.sequences import from_array, in_order
from auxrnn.errors import RunError
from auxrnn.training.calibration import fit_temperature
from auxrnn.training.evaluate import evaluate, predict_logits
from command import call, train
from own_data import write_arrays


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run whose validation split is larger than the part of it that is evaluated."""
    folder = tmp_path_factory.mktemp("runs") / "calibrated"
    words = ["--hidden-size", "8", "--objective", "none", "--readout", "mean", "--train-steps", "150", "--threads", "1"]
    data = write_arrays(folder.parent / "slopes.npz", num_rows=1800)
    result = call("train", data, *words, "--validation-fraction", "0.75", "--out", folder)
    assert result.code == 0, result.err
    return folder


def result_of(folder):
    return json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])


def load_uncalibrated(folder):
    trained = saved.load_run(folder)
    saved.calibrate(trained.network, 1 / trained.temperature)
    return trained.network


def logits_of(network, split):
    return predict_logits(network, in_order(split, 64))


def test_the_temperature_is_that_of_the_whole_validation_split(folder):
    split, result, network = runs.load_split(folder, "validation"), result_of(folder), load_uncalibrated(folder)
    assert split.num_examples > 1000, "only a part of it is evaluated"
    smoothing = 2 / (split.num_examples + 2)
    expected = fit_temperature(logits_of(network, split), torch.from_numpy(split.label_N), smoothing=smoothing)
    trained = saved.load_run(folder)
    assert (trained.weights, trained.temperature) == ("best", result["temperature"])
    assert trained.temperature == pytest.approx(expected, rel=1e-3)
    assert abs(trained.temperature - 1) > 0.05
    assert result["test_accuracy"] > 80


def test_it_changes_no_answer_and_lowers_the_loss(folder):
    split, trained = runs.load_split(folder, "validation"), saved.load_run(folder)
    before, after = logits_of(load_uncalibrated(folder), split), logits_of(trained.network, split)
    assert torch.equal(before.argmax(dim=1), after.argmax(dim=1))
    torch.testing.assert_close(after, before / trained.temperature)
    label_N = torch.from_numpy(split.label_N)
    losses = [float(torch.nn.functional.cross_entropy(logits_NC, label_N)) for logits_NC in (before, after)]
    assert losses[1] < losses[0]


def test_the_recorded_losses_are_those_before_it(folder):
    split, result = runs.load_split(folder, "test"), result_of(folder)
    before, after = (
        evaluate(network, in_order(split, 64))
        for network in (load_uncalibrated(folder), saved.load_run(folder).network)
    )
    assert result["test_loss"] == pytest.approx(before.loss, rel=1e-4)
    assert result["test_loss"] != pytest.approx(after.loss, rel=1e-4)
    assert result["test_accuracy"] == before.accuracy == after.accuracy


def test_predictions_and_streams_are_calibrated(folder, tmp_path):
    trained, rng = saved.load_run(folder), np.random.default_rng(0)
    x_NTD = 1000 + 10 * rng.standard_normal((3, 12, 2)).astype(np.float32)
    encoding = make_encoding(trained.card.format)
    split = from_array(x_NTD, np.zeros(3, dtype=np.int64))._replace(encoding=encoding)
    expected = predict_logits(load_uncalibrated(folder), in_order(split, 3)) / trained.temperature
    np.save(tmp_path / "new.npy", x_NTD)
    result = call("predict", folder, tmp_path / "new.npy", "--json")
    assert result.code == 0, result.err
    found = [list(each["probabilities"].values()) for each in json.loads(result.out)["predictions"]]
    np.testing.assert_allclose(found, expected.softmax(dim=1), atol=1e-5)
    np.testing.assert_allclose(Stream(trained.network, 3).step(encoding.encode(x_NTD)), found, atol=1e-5)


def test_final_weights_are_not_calibrated_and_neither_is_a_run_without_a_validation_split(folder, tmp_path):
    assert saved.load_run(folder, weights="final").temperature == 1
    train(tmp_path / "run", "--train-steps", "1", "--pretrain-steps", "0")
    assert saved.load_run(tmp_path / "run").temperature == 1


def test_a_temperature_that_was_changed_is_refused(folder, tmp_path):
    best = folder / "model-best.safetensors"
    content = best.read_bytes()
    found = str(result_of(folder)["temperature"]).encode()
    assert content.count(found) == 1
    best.write_bytes(content.replace(found, found[:-1] + (b"1" if found[-1:] != b"1" else b"2")))
    with pytest.raises(RunError, match=r"model-best\.safetensors is missing, damaged or edited"):
        saved.load_run(folder)
    best.write_bytes(content)


def test_too_few_validation_sequences_fit_no_temperature(tmp_path):
    data = write_arrays(tmp_path / "slopes.npz", num_rows=80)
    words = ["--objective", "none", "--train-steps", "30", "--hidden-size", "4", "--threads", "1"]
    assert call("train", data, *words, "--validation-fraction", "0.2", "--out", tmp_path / "run").code == 0
    assert saved.load_run(tmp_path / "run").temperature == 1.0
