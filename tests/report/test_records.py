import json

import numpy as np
import pytest

from auxrnn.errors import RunError
from auxrnn.report.records import read_curve, read_events, read_reconstructions

EVENTS = [{"event": "train", "step": 1}, {"event": "evaluation", "step": 2, "note": "\u00e9"}]


def write_lines(folder, events):
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events))


def evaluation(total_step, accuracy, phase="joint"):
    return {"event": "evaluation", "phase": phase, "total_step": total_step, "test_accuracy": accuracy}


def test_events_come_back_in_the_order_written(tmp_path):
    write_lines(tmp_path, EVENTS)
    assert read_events(tmp_path) == EVENTS


def test_a_run_that_has_not_begun_has_no_events(tmp_path):
    assert read_events(tmp_path / "nowhere") == []


LAST_LINE = json.dumps(EVENTS[1], ensure_ascii=False).encode()


@pytest.mark.parametrize("num_bytes", range(1, len(LAST_LINE)))
def test_a_last_line_cut_anywhere_costs_only_itself(tmp_path, num_bytes):
    write_lines(tmp_path, EVENTS[:1])
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(LAST_LINE[:num_bytes])
    assert read_events(tmp_path) == EVENTS[:1]


def test_damage_before_the_last_line_is_named(tmp_path):
    write_lines(tmp_path, EVENTS)
    text = (tmp_path / "metrics.jsonl").read_text()
    (tmp_path / "metrics.jsonl").write_text('{"event": "tr\n' + text)
    with pytest.raises(RunError, match="line 1"):
        read_events(tmp_path)


def test_a_curve_counts_pretraining_and_shows_no_accuracy_for_it(tmp_path):
    pretraining = {"event": "evaluation", "phase": "pretrain", "total_step": 30, "test_loss": 1.0}
    training = {"event": "train", "phase": "joint", "total_step": 35, "train_accuracy": 99.0}
    write_lines(tmp_path, [pretraining, training, evaluation(40, 50.0), evaluation(50, 60.0)])
    curve = read_curve(tmp_path, title="r-LSTM")
    assert curve == ("r-LSTM", [40, 50], [50.0, 60.0], 30)


def test_a_repeated_step_counts_as_the_resumed_run_wrote_it(tmp_path):
    write_lines(tmp_path, [evaluation(10, 20.0), evaluation(20, 30.0), evaluation(10, 21.0), evaluation(20, 31.0)])
    curve = read_curve(tmp_path, title="LSTM")
    assert (curve.steps, curve.accuracies) == ([10, 20], [21.0, 31.0])


def test_an_accuracy_that_is_no_number_is_left_out(tmp_path):
    write_lines(tmp_path, [evaluation(10, 20.0), evaluation(20, float("nan"))])
    assert read_curve(tmp_path, title="LSTM").steps == [10]


def test_reconstructions_come_back_as_written(demo, reconstructions):
    found = read_reconstructions(demo / "reconstructions.npz")
    for name, wanted in reconstructions._asdict().items():
        np.testing.assert_array_equal(getattr(found, name), wanted)
    assert found.is_reversed is True


def test_no_reconstructions_are_no_failure(tmp_path):
    assert read_reconstructions(tmp_path / "reconstructions.npz") is None


@pytest.mark.parametrize("keep", [0, 100, -30])
def test_damaged_reconstructions_are_said_to_be_damaged(demo, keep):
    path = demo / "reconstructions.npz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RunError, match="is damaged"):
        read_reconstructions(path)
