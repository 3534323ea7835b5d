"""`auxrnn runs`: one line a run, from its config and its events alone, whatever state its files are in."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from auxrnn.files import lock
from auxrnn.report.listing import list_runs
from command import TWO_AND_TWO, call, rewrite, train

OLD_RUNS = Path(__file__).parents[1] / "fixtures" / "old_runs"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    train(folder, *TWO_AND_TWO, "--validation-fraction", "0.3")
    return folder


@pytest.fixture
def runs(trained, tmp_path):
    """Give a folder with one finished run."""
    shutil.copytree(trained, tmp_path / "runs" / "demo" / "first")
    return tmp_path / "runs"


def copy_stopped(runs, name):
    """Leave a run as Ctrl-C does: a checkpoint and no final weights."""
    shutil.copytree(runs / "demo" / "first", runs / name)
    (runs / name / "model.safetensors").unlink()
    return runs / name


def states(folder):
    return {Path(line.run).name: line.state for line in list_runs(folder)}


def test_a_finished_run_in_a_nested_folder_is_listed_with_its_recorded_scores(runs):
    (line,) = list_runs(runs)
    result = json.loads((runs / "demo" / "first" / "metrics.jsonl").read_text().splitlines()[-1])
    assert (line.run, line.model, line.data) == (str(runs / "demo" / "first"), "r-LSTM", "digits")
    assert (line.validation_accuracy, line.test_accuracy) == (result["validation_accuracy"], result["test_accuracy"])
    assert line.minutes == result["seconds"] / 60
    assert (line.state, line.updates, line.planned_updates) == ("finished", 4, 4)


def test_a_stopped_a_training_and_a_damaged_run_are_named_as_such(runs):
    copy_stopped(runs, "stopped")
    busy = copy_stopped(runs, "busy")
    (copy_stopped(runs, "edited") / "config.json").write_text("{}")
    rewrite(copy_stopped(runs, "nonsense") / "config.json", "[]")
    shutil.copytree(runs / "demo" / "first", runs / "cut")
    os.truncate(runs / "cut" / "metrics.jsonl", 30)
    damaged = dict.fromkeys(("edited", "nonsense", "cut"), "damaged")
    with lock(busy):
        assert states(runs) == {"first": "finished", "stopped": "stopped", "busy": "training"} | damaged
    told = call("runs", runs)
    assert (told.code, told.err) == (0, "")
    assert "stopped at 4 of 4 updates" in told.out


@pytest.mark.parametrize("content", ["", "null", '{"event": 3}\n', '{"event": "train"}\nx\n', "\0" * 40])
def test_whatever_the_events_hold_there_is_a_line(runs, content):
    run = copy_stopped(runs, "odd")
    (run / "metrics.jsonl").write_text(content)
    assert states(runs)["odd"] in ("stopped", "damaged")


def test_a_config_of_another_program_is_no_run(runs):
    (runs / "other").mkdir()
    (runs / "other" / "config.json").write_text("{}")
    assert set(states(runs)) == {"first"}


@pytest.mark.parametrize(("sort", "names"), [("time", "cab"), ("name", "abc"), ("minutes", "bca"), ("accuracy", "bac")])
def test_runs_are_sorted_as_asked(runs, sort, names):
    # minutes, validation accuracy (of b alone), test accuracy, and when it was written
    facts = {"a": (60, 40.0, 99.0, 2), "b": (180, 80.0, 1.0, 1), "c": (120, None, 30.0, 3)}
    for name, (seconds, validation, test, changed) in facts.items():
        run = copy_stopped(runs, name)
        scores = {"test_accuracy": test} | ({} if validation is None else {"validation_accuracy": validation})
        event = {"event": "evaluation", "total_step": 1, "seconds": seconds} | scores
        (run / "metrics.jsonl").write_text(json.dumps(event) + "\n")
        os.utime(run / "metrics.jsonl", (changed, changed))
    shutil.rmtree(runs / "demo")
    listed = json.loads(call("runs", runs, "--sort", sort, "--json").out)["runs"]
    assert "".join(Path(line["run"]).name for line in listed) == names


def test_runs_of_earlier_versions_are_listed():
    assert {(Path(line.run).name, line.state, line.model) for line in list_runs(OLD_RUNS)} == {
        ("digits_run", "finished", "r-LSTM"),
        ("texts_run", "finished", "p-GRU"),
    }


def test_no_runs_and_no_folder_are_said(tmp_path):
    assert call("runs", tmp_path) == (0, "", f"no runs in {tmp_path}; `auxrnn train` makes one\n")
    missing = call("runs", tmp_path / "missing")
    assert missing.code == 2
    assert "auxrnn runs FOLDER" in missing.err


def test_the_list_imports_no_torch():
    code = f"import sys; from auxrnn import cli; cli.run(['runs', {str(OLD_RUNS)!r}]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
