"""Run folders made by version 0.1.0 still evaluate, predict, resume and load, whatever has changed since."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import auxrnn
from command import call

FIXTURES = Path(__file__).parent / "fixtures" / "old_runs"
RUNS = ("digits_run", "texts_run")


@pytest.fixture(autouse=True)
def _in_a_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(FIXTURES, tmp_path / "old"))


def result_of(run):
    *_, last = (FIXTURES / run / "metrics.jsonl").read_text().splitlines()
    return json.loads(last)


@pytest.mark.parametrize("run", RUNS)
def test_an_old_run_evaluates_to_the_scores_that_it_recorded(run):
    result = call("evaluate", run, "--json")
    assert result.code == 0, result.err
    found, recorded = json.loads(result.out), result_of(run)
    assert found["weights"] == recorded["weights"] == "best"
    assert found["accuracy"] == pytest.approx(recorded["test_accuracy"])
    assert found["loss"] == pytest.approx(recorded["test_loss"], rel=1e-4)


@pytest.mark.parametrize("run", RUNS)
def test_an_old_run_predicts(run):
    np.save("digit.npy", np.zeros((1, 49, 1), np.uint8))
    path = {"digits_run": "digit.npy", "texts_run": "reviews.csv"}[run]
    result = call("predict", run, path, "--json")
    assert result.code == 0, result.err
    predictions = json.loads(result.out)["predictions"]
    assert len(predictions) == {"digits_run": 1, "texts_run": 60}[run]
    assert sum(predictions[0]["probabilities"].values()) == pytest.approx(1)


@pytest.mark.parametrize("run", RUNS)
def test_an_old_run_resumes_from_its_checkpoint_to_the_weights_that_it_had(run):
    for path in Path(run).rglob("*"):
        if path.name.startswith(("model.safetensors", "model-best", "step-00000004")):
            path.unlink()
    result = call("resume", run)
    assert result.code == 0, result.err
    for name in ("model.safetensors", "model-best.safetensors"):
        resumed, recorded = load_file(Path(run) / name), load_file(FIXTURES / run / name)
        assert resumed.keys() == recorded.keys()
        for key, tensor in recorded.items():
            # Other machines and versions of torch round differently.
            torch.testing.assert_close(resumed[key], tensor, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("run", RUNS)
def test_an_old_run_loads_with_its_config_and_its_classes(run):
    trained = auxrnn.load_run(Path(run))
    values = json.loads((FIXTURES / run / "config.json").read_text())
    assert trained.config.model.hidden_size == values["hidden_size"]
    assert trained.config.loss.objective == values["objective"]
    classes = {"digits_run": tuple("0123456789"), "texts_run": ("cat", "dog")}[run]
    assert trained.card.class_names == classes


@pytest.mark.parametrize("change", [{"hidden_size": 7}, {"objective": "none", "pretrain_steps": None}])
def test_an_old_run_with_an_edited_config_is_not_resumed(change):
    # It has no checksums that would tell.
    path = Path("digits_run", "config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    Path("digits_run", "model.safetensors").unlink()
    result = call("resume", "digits_run")
    assert (result.code, "checkpoint does not fit config.json" in result.err) == (1, True), result.err
