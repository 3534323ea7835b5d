"""`auxrnn tune` with real trainings: what it leaves, what a kill loses, and what a user does wrong."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest

from auxrnn.config import read_file
from command import call, files_below, parse_train
from dask_processes import Cluster

SMALL = [
    *("digits", "--image-size", "4", "--train-examples", "80", "--head-size", "4", "--embedding-size", "4"),
    *("--hidden-size", "4", "--batch-size", "16", "--threads", "1"),
]
PAGE = Path(__file__).parents[2] / "docs" / "tuning.md"


def tune(folder, *words, minutes=0.02):
    return call("tune", *SMALL, "--minutes", minutes, "--out", folder, *words)


def read_study(folder):
    return optuna.load_study(study_name="auxrnn", storage=f"sqlite:///{folder / 'study.db'}")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Give a study that has time for the defaults and the winner alone, and what its command said."""
    folder = tmp_path_factory.mktemp("tuned") / "study"
    return folder, tune(folder, "--seed", "1")


def test_a_study_leaves_settings_a_page_and_a_run(tuned):
    folder, result = tuned
    assert result.code == 0, result.err
    assert {path.name for path in folder.iterdir()} == {"best", "best.toml", "index.html", "study.db"}
    assert "searching --auxiliary-weight" in result.err
    assert "--hidden-size" not in result.err
    assert result.out.splitlines()[-3].startswith(f"{folder}/best  validation ")
    assert call("evaluate", folder / "best").code == 0
    events = [json.loads(line) for line in (folder / "best" / "metrics.jsonl").read_text().splitlines()]
    (test,) = [event["test_accuracy"] for event in events if "test_accuracy" in event]
    assert f"test {test:.1f} %" in result.out


def test_the_file_of_settings_is_taken_by_train(tuned):
    folder, _ = tuned
    values = read_file(folder / "best.toml")
    assert (values["data"], values["hidden_size"], values["seed"]) == ("digits", 4, 1)
    run = parse_train(["--config", str(folder / "best.toml"), "--lr", "0.5"])["run"]
    assert (run.data.data, run.data.train_examples, run.schedule.lr) == ("digits", 80, 0.5)
    assert run.loss.objective == values["objective"]


def test_the_page_needs_no_network(tuned):
    page = (tuned[0] / "index.html").read_text()
    assert not re.search(r'(src|href)="?https?:|<script', page)
    assert "Trial 0 is the best" in page
    assert page.count("<svg") == 6


def test_a_study_that_is_done_is_not_done_again(tuned):
    folder, before = tuned
    shown = files_below(folder)
    result = tune(folder, "--seed", "1", "--json")
    assert "more --minutes extend the study" in result.err
    assert files_below(folder) == shown
    found = json.loads(result.out)
    assert (found["trials"], found["best"]) == (1, 0)
    assert f"{found['test_accuracy']:.1f}" in before.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "0"], "--workers must be at least 1"),
        (["--minutes", "-1"], "--minutes is -1.0; it must be a number above 0"),
        (["--train-steps", "9"], "--train-steps has no effect here: the minutes plan the length of every trial"),
        (["--seed", "2"], "holds a study with other settings (seed)"),
        (["--lr", "0.008", "--seed", "1"], "holds a study with other settings (fixed)"),
    ],
)
def test_a_mistake_is_one_sentence(tuned, words, said):
    result = tune(tuned[0], *words)
    assert (result.code, result.err.count("\n")) == (2, 1), result.err
    assert said in result.err


def test_a_missing_extra_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = tune(tmp_path / "study")
    assert (result.code, result.err) == (2, "auxrnn: auxrnn tune needs Optuna; pip install 'auxrnn[tune]'\n")


def test_a_damaged_study_is_one_sentence(tuned, tmp_path):
    (tmp_path / "study.db").write_bytes((tuned[0] / "study.db").read_bytes()[:5000] + b"x" * 9000)
    result = tune(tmp_path, "--seed", "1")
    assert result.code == 1
    assert re.search(r"study\.db cannot be read or written \(.*\); put it back as it was", result.err), result.err
    assert "Traceback" not in result.err


def test_data_that_has_changed_is_refused(tmp_path):
    words = ["--recipe", "fast", "--threads", "1", "--minutes", "0.01", "--out", str(tmp_path / "study")]
    rows = [f"{number % 7},{number % 3},{'ab'[number % 2]}" for number in range(60)]
    (tmp_path / "x.csv").write_text("\n".join(["u,v,label", *rows]) + "\n")
    assert call("tune", tmp_path / "x.csv", *words, "--hidden-size", "4").code == 0
    (tmp_path / "x.csv").write_text("\n".join(["u,v,label", *rows[1:], rows[0]]) + "\n")
    result = call("tune", tmp_path / "x.csv", *words, "--hidden-size", "4")
    assert result.code == 1
    assert "has changed since this study began" in result.err


def start(folder, *words, minutes):
    command = [sys.executable, "-m", "auxrnn", "tune", *SMALL, "--minutes", str(minutes), "--out", str(folder), *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_study_that_is_killed_goes_on(tmp_path, number):
    folder = tmp_path / "study"
    for seconds in (1.0, 4.0):
        process, before = start(folder, "--workers", "2", minutes=1.5), len(list(folder.glob("trial-*/checkpoints")))
        until = time.monotonic() + 100
        while len(list(folder.glob("trial-*/checkpoints"))) <= before and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(seconds)
        process.send_signal(number)
        _, said = process.communicate(timeout=100)
        assert process.returncode == (-9 if number == signal.SIGKILL else 130), said
        assert "Traceback" not in said
    begun = [trial.number for trial in read_study(folder).trials]
    process = start(folder, "--workers", "2", minutes=1.5)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    ended = [trial for trial in read_study(folder).trials if trial.state.is_finished()]
    assert [trial.number for trial in ended][: len(begun)] == begun
    assert not [trial for trial in ended if trial.state.name == "FAIL"]
    assert (folder / "best" / "model.safetensors").exists()


@pytest.mark.slow
def test_a_study_on_a_cluster_without_a_shared_disk(tmp_path):
    with Cluster(tmp_path / "cluster") as made:
        result = tune(tmp_path / "study", "--cluster", made.address, "--workers", "2", minutes=0.5)
    assert result.code == 0, result.err
    assert (tmp_path / "study" / "best" / "model.safetensors").exists()
    # How many there are depends on the machine.
    first = read_study(tmp_path / "study").trials[0]
    assert (first.state.name, set(first.intermediate_values)) == ("COMPLETE", set(range(1, 11)))
    assert not list((tmp_path / "study").glob("trial-*"))


@pytest.mark.slow
def test_the_commands_of_the_page_run_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line.split("#")[0].split()[1:] for line in PAGE.read_text().splitlines() if line.startswith("    auxrnn ")]
    assert [words[0] for words in lines] == ["tune", "train", "tune", "tune", "tune"]
    for words in lines[:-1]:
        words[words.index("--minutes") + 1] = {"30": "0.02", "60": "0.04"}[words[words.index("--minutes") + 1]]
        result = call(*words, "--threads", "1")
        assert result.code == 0, result.err
    shutil.rmtree("runs")
