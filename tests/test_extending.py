"""`auxrnn resume RUN --train-steps N`: more of the same, whatever happens on the way."""

import json
import shutil

import pytest

from auxrnn import files, runs, saved
from auxrnn.files import read_sums
from command import TINY, call, train
from own_data import write_csv

STEADY = ["--objective", "none", "--lr-schedule", "halving", "--lr-halving-epochs", "1"]
COSINE = ["--objective", "none", "--lr-schedule", "cosine"]
WITH_PRETRAINING = ["--objective", "reconstruct", "--pretrain-steps", "2", "--lr-schedule", "halving"]
MAY_DIFFER = "the weights may differ"


def weights_of(folder):
    return (folder / "model.safetensors").read_bytes()


def extend(folder, number):
    result = call("resume", folder, "--train-steps", number)
    assert result.code == 0, result.err
    return result


def events_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def rates_of(folder):
    return [event["lr"] for event in events_of(folder) if event["event"] == "train"]


def last_step(folder):
    return [event["step"] for event in events_of(folder) if event["phase"] != "pretrain"][-1]


@pytest.mark.parametrize("words", [STEADY, WITH_PRETRAINING])
def test_a_finished_run_trained_on_at_a_rate_without_a_plan_ends_as_one_of_that_length(words, tmp_path):
    train(tmp_path / "long", *words, "--train-steps", "7")
    train(tmp_path / "short", *words, "--train-steps", "3")
    result = extend(tmp_path / "short", 7)
    assert weights_of(tmp_path / "short") == weights_of(tmp_path / "long")
    assert MAY_DIFFER not in result.err
    assert saved.read_config(tmp_path / "short").schedule.train_steps == 7
    assert last_step(tmp_path / "short") == 7
    assert call("evaluate", tmp_path / "short").code == 0
    assert call("resume", tmp_path / "short").code == 0


def test_with_a_cosine_the_rate_follows_the_new_length_and_it_is_said(tmp_path):
    train(tmp_path / "run", *COSINE, "--train-steps", "4", "--log-every", "1")
    assert MAY_DIFFER in extend(tmp_path / "run", 8).err
    train(tmp_path / "long", *COSINE, "--train-steps", "8", "--log-every", "1")
    ours, theirs = (rates_of(tmp_path / name) for name in ("run", "long"))
    assert ours[4:] == theirs[4:]
    assert ours[:4] != theirs[:4]


def test_pretraining_alone_is_followed_by_training_with_labels(tmp_path):
    train(tmp_path / "both", *WITH_PRETRAINING, "--train-steps", "3")
    train(tmp_path / "first", *WITH_PRETRAINING, "--train-steps", "0")
    assert MAY_DIFFER not in extend(tmp_path / "first", 3).err
    assert weights_of(tmp_path / "first") == weights_of(tmp_path / "both")


def test_a_length_in_epochs_becomes_one_in_updates(tmp_path):
    train(tmp_path / "run", *STEADY, "--train-epochs", "1")
    extend(tmp_path / "run", 5)
    schedule = saved.read_config(tmp_path / "run").schedule
    assert (schedule.train_steps, schedule.train_epochs) == (5, None)
    assert last_step(tmp_path / "run") == 5


def test_a_run_that_ran_out_of_patience_is_trained_on(tmp_path):
    words = [*STEADY, "--validation-fraction", "0.25", "--patience", "1", "--evaluate-every", "1", "--lr", "1e-9"]
    train(tmp_path / "run", *words, "--train-steps", "9")
    assert last_step(tmp_path / "run") == 1
    extend(tmp_path / "run", 9)
    assert last_step(tmp_path / "run") > 1


@pytest.mark.parametrize(("number", "part"), [("0", "at least 1"), ("3", "has done 3 updates"), ("2", "give more")])
def test_what_is_no_more_is_refused_and_changes_nothing(number, part, tmp_path):
    train(tmp_path / "run", *STEADY, "--train-steps", "3")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    result = call("resume", tmp_path / "run", "--train-steps", number)
    assert result.code == 2
    assert part in result.err
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


@pytest.mark.parametrize("words", [STEADY, [*STEADY, "--validation-fraction", "0.25", "--patience", "5"]])
def test_a_kill_at_any_write_leaves_a_run_that_can_be_used_and_trained_to_the_end(words, tmp_path, monkeypatch):
    """Stop before the first write, before the second, and so on, until one goes through."""
    train(tmp_path / "short", *words, "--train-steps", "3")
    whole = shutil.copytree(tmp_path / "short", tmp_path / "whole")
    extend(whole, 6)
    original = files.write_aside
    for number in range(30):
        folder = shutil.copytree(tmp_path / "short", tmp_path / f"run{number}")
        left = [number]

        def write(path, content, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            original(path, content)

        with monkeypatch.context() as patched:
            for module in (files, runs, runs_record()):
                patched.setattr(module, "write_aside", write)
            try:
                extend(folder, 6)
                break
            except Killed:
                pass
        assert call("evaluate", folder, "--checkpoint", "latest").code == 0, number
        config = saved.read_config(folder)
        if saved.is_finished(folder):
            assert config.schedule.train_steps == 3
            assert call("evaluate", folder).code == 0, number
        again = shutil.copytree(folder, tmp_path / f"again{number}")
        assert call("resume", again).code == 0, number
        assert call("evaluate", again).code == 0, number
        expected = {3: tmp_path / "short", 6: whole}[config.schedule.train_steps]
        assert weights_of(again) == weights_of(expected), number
        if weights_of(again) != weights_of(whole):
            extend(folder, 6)
            assert weights_of(folder) == weights_of(whole), number
        assert not [name for name in read_sums(again) if name.endswith(".next")] or saved.is_finished(folder)
    assert 5 < number < 29, "the kills prove nothing"


def runs_record():
    from auxrnn.training import record

    return record


def test_a_stopped_run_can_be_given_another_length(tmp_path):
    train(tmp_path / "long", *STEADY, "--train-steps", "6")
    folder = tmp_path / "run"
    train(folder, *STEADY, "--train-steps", "4", "--checkpoint-every", "2")
    (folder / "model.safetensors").unlink()
    for path in (folder / "checkpoints").glob("step-00000004.*"):
        path.unlink()
    extend(folder, 6)
    assert weights_of(folder) == weights_of(tmp_path / "long")


def test_data_that_changed_is_refused_before_anything_is_changed(tmp_path):
    path = write_csv(tmp_path / "data.csv")
    place = TINY.index("--train-examples")
    words = [*TINY[:place], *TINY[place + 2 :], *STEADY, "--train-steps", "2"]
    assert call("train", path, *words, "--out", tmp_path / "run").code == 0
    write_csv(path, 30)
    result = call("resume", tmp_path / "run", "--train-steps", "4")
    assert result.code == 1
    assert "has changed since this run began" in result.err
    assert saved.is_finished(tmp_path / "run")


def test_an_old_run_without_checksums_is_trained_on(tmp_path):
    train(tmp_path / "run", *STEADY, "--train-steps", "2")
    values = json.loads((tmp_path / "run" / "config.json").read_text()) | {"format": 2}
    (tmp_path / "run" / "config.json").write_text(json.dumps(values))
    (tmp_path / "run" / "sums.json").unlink()
    extend(tmp_path / "run", 4)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["format"] == 2
    assert last_step(tmp_path / "run") == 4
