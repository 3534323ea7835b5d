"""One trial: its curve, when it is given up, and what is left of it however it ends."""

import json
import threading
import time

import pytest

from auxrnn import runs
from auxrnn.config import unflatten
from auxrnn.data import datasets
from auxrnn.files import lock
from auxrnn.tuning import trials
from auxrnn.tuning.trials import is_hopeless, read_curve, run_trial

WORDS = [
    *("digits", "--recipe", "paper", "--image-size", "4", "--train-examples", "60", "--hidden-size", "4"),
    *("--embedding-size", "4", "--head-size", "4", "--segment-length", "5", "--supervised-window", "full"),
    *("--validation-fraction", "0.2", "--batch-size", "16", "--threads", "1", "--no-evaluate-all"),
]
SHORT = ["--pretrain-steps", "2", "--train-steps", "20", "--evaluate-every", "1"]
LONG = ["--objective", "none", "--train-steps", "20000", "--evaluate-every", "2000"]


@pytest.fixture
def made(tmp_path):
    """Give a run folder of ten updates with labels and no events yet, and what writes these."""
    values = {"data": "digits", "image_size": 4, "train_examples": 60, "pretrain_steps": 5, "train_steps": 10}
    config = runs.settle(unflatten(values))
    dataset = datasets.load(config.data)
    runs.create(config, runs.prepare(config, dataset), tmp_path)

    def write(*events):
        with (tmp_path / "metrics.jsonl").open("a") as file:
            file.writelines(json.dumps({"event": "evaluation"} | event) + "\n" for event in events)

    return tmp_path, write


def test_a_curve_holds_the_best_so_far_by_tenths_of_the_training_with_labels(made):
    folder, write = made
    assert read_curve(folder) == read_curve(folder / "nowhere") == {}
    write({"step": 5, "validation_auxiliary_loss": 0.3}, {"step": 0, "validation_accuracy": 9.0})
    assert read_curve(folder) == {}
    write({"step": 2, "validation_accuracy": 30.0}, {"step": 4, "validation_accuracy": 20.0})
    assert read_curve(folder) == {1: 9.0, 2: 30.0, 3: 30.0, 4: 30.0}
    write({"step": 10, "validation_accuracy": 50.0}, {"event": "result", "step": 10, "validation_accuracy": 70.0})
    assert read_curve(folder)[10] == 50.0


def test_only_what_is_worse_than_most_finished_trials_is_given_up():
    rivals = [{tenth: base + tenth for tenth in range(1, 11)} for base in (10, 20, 30, 40, 50)]
    bad, good = dict.fromkeys(range(1, 5), 25.0), dict.fromkeys(range(1, 5), 45.0)
    assert is_hopeless(bad, rivals)
    assert not is_hopeless(good, rivals)
    assert not is_hopeless(bad, rivals[:3]), "three trials are too few to know"
    assert not is_hopeless({1: 0.0, 2: 0.0}, rivals), "it has hardly begun"


def test_a_trial_ends_with_its_scores_and_never_looks_at_the_test_split(tmp_path):
    result = run_trial([*WORDS, *SHORT, "--no-evaluate-test"], tmp_path / "0", [])
    assert result.state == "complete", result.reason
    assert result.test_accuracy is None
    assert set(result.curve) == set(range(1, 11))
    assert result.accuracy == max(result.curve.values())
    assert result.loss > 0
    assert [path.name for path in tmp_path.iterdir()] == ["0.log"]
    assert "  test " not in (tmp_path / "0.log").read_text()


def test_the_winner_is_kept_with_its_look_at_the_test_split(tmp_path):
    result = run_trial([*WORDS, *SHORT], tmp_path / "best", [], is_kept=True)
    assert 0 <= result.test_accuracy <= 100
    assert (tmp_path / "best" / "model.safetensors").exists()


def test_a_bad_trial_is_stopped_by_its_curve(tmp_path):
    rivals = [dict.fromkeys(range(1, 11), 101.0)] * 5
    result = run_trial([*WORDS, *LONG], tmp_path / "0", rivals)
    assert (result.state, result.reason) == ("pruned", "")
    assert 3 <= max(result.curve) < 10
    assert not (tmp_path / "0").exists()


def test_a_trial_that_fails_says_why(tmp_path):
    result = run_trial([*WORDS, *SHORT, "--init-from", str(tmp_path / "nothing")], tmp_path / "0", [])
    assert result.state == "failed"
    assert "nothing is not a run" in result.reason


def test_a_stopped_trial_keeps_its_checkpoint_and_continues_from_there(tmp_path, monkeypatch):
    folder, found = tmp_path / "0", []
    stop = threading.Event()
    monkeypatch.setattr(trials, "STOP", stop)
    words = [*WORDS, "--objective", "none", "--train-steps", "3000", "--evaluate-every", "300"]
    worker = threading.Thread(target=lambda: found.append(run_trial(words, folder, [])))
    worker.start()
    until = time.monotonic() + 100
    while not read_curve(folder) and time.monotonic() < until:
        time.sleep(0.05)
    stop.set()
    worker.join()
    stop.clear()
    assert found[0].state == "stopped"
    assert list((folder / "checkpoints").iterdir())
    with lock(folder):
        # As if a process that outlived its study were still at work.
        worker = threading.Thread(target=lambda: found.append(run_trial(words, folder, [])))
        worker.start()
        worker.join(1)
        assert worker.is_alive()
    worker.join()
    assert found[1].state == "complete", found[1].reason
    assert found[1].curve.items() >= found[0].curve.items()


def test_on_a_machine_without_the_folder_a_temporary_one_takes_its_place(tmp_path):
    result = run_trial([*WORDS, *SHORT], tmp_path / "elsewhere" / "0", [])
    assert result.state == "complete"
    assert not list(tmp_path.iterdir())
