"""`python -m benchmarks labels` and `texts`: rivals get the labels that ours had, and tables and pictures appear."""

import csv
import itertools
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from auxrnn.config import DataConfig
from auxrnn.data import datasets
from auxrnn.data.splits import divide
from auxrnn.errors import RunError
from auxrnn.experiments import few_labels
from auxrnn.experiments.scales import DBPEDIA, find_scale
from auxrnn.report.records import RunRecord, write_record
from benchmarks import __main__ as command
from benchmarks import labels
from benchmarks.labels import MFCC, ROCKET, Result
from sounds import save_wav, tone

DOCS, RESULTS = (Path(__file__).parents[2] / name for name in ("docs", "results/labels"))
UPDATES = {1: 2, None: 3}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of seconds in a folder of its own: low and high tones of two speakers, and features made by hand."""
    for digit, speaker, index in itertools.product("01", ("ann", "theo"), range(8)):
        wave_TC = tone(200 + 10 * index, pitch=1500.0 if digit == "1" else 300.0)
        save_wav(tmp_path / "recordings" / f"{digit}_{speaker}_{index}.wav", wave_TC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(labels, "UPDATES", UPDATES)
    monkeypatch.setattr(labels, "PACKAGES", ())
    # Neither rival is installed where the tests run: how much a wave moves from step to step tells the tones apart.
    steepness = lambda waves, _rows: np.array([[np.abs(np.diff(wave)).mean()] for wave in waves])  # noqa: E731
    monkeypatch.setattr(labels, "_mfcc_features", steepness)
    monkeypatch.setattr(labels, "_rocket_features", lambda waves, rows: -steepness(waves, rows))
    return tmp_path


def call(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
    monkeypatch.setattr(command, "restart_with_large_pages", lambda: None)
    command.main()


def read_results(out):
    return [Result(**json.loads(path.read_text())) for path in (out / "records").glob("*.json")]


def test_the_official_test_recordings_and_the_held_out_speakers_are_trained_on_by_nobody(study):
    for split, is_test in labels.IS_TEST.items():
        found = {}
        for path in labels._write_tables(Path("recordings"), study / split, split):
            rows = [*csv.DictReader(path.read_text().splitlines())]
            assert all(Path(row["file"]).name[0] == row["label"] for row in rows)
            found[path.stem] = {Path(row["file"]).stem for row in rows}
        assert found["train"] | found["test"] == {path.stem for path in Path("recordings").glob("*.wav")}
        for name, stems in found.items():
            for _digit, speaker, index in (stem.split("_") for stem in stems):
                assert is_test(speaker, int(index)) == (name == "test")


def test_a_rival_is_fitted_on_the_labels_that_ours_has_and_tested_on_the_test_split(study, monkeypatch):
    fitted = []
    real = labels._fit

    def fit(system, feature_NF, label_N, tasks, test_rows, *, split):
        fitted.append((label_N, [*tasks], test_rows))
        return real(system, feature_NF, label_N, tasks, test_rows, split=split)

    monkeypatch.setattr(labels, "_fit", fit)
    train, test = labels._write_tables(Path("recordings"), study / "work", "official")
    labels._measure_rivals((train, test), study / "out", "official", (0, 7))
    config = DataConfig(data=str(train), test_data=test, validation_fraction=0.0, labels_per_class=1)
    table = datasets.load(config).table
    (label_N, tasks, test_rows), _ = fitted
    assert [(task.labels, task.seed) for task in tasks] == [(1, 0), (1, 7), (None, 0), (None, 7)]
    for task in tasks[:2]:
        assert task.rows.tolist() == divide(table, config, seed=task.seed).labeled.tolist()
        assert sorted(label_N[task.rows].tolist()) == [0, 1]
    assert tasks[2].rows.tolist() == divide(table, config, seed=0).train.tolist()
    assert test_rows.tolist() == divide(table, config, seed=0).test.tolist()
    results = read_results(study / "out")
    assert {(result.system, result.labels, result.seed) for result in results} == {
        *itertools.product((MFCC, ROCKET), UPDATES, (0, 7))
    }
    assert {result.accuracy for result in results} == {100.0}
    # What is there is not made again.
    fitted.clear()
    labels._measure_rivals((train, test), study / "out", "official", (0, 7))
    assert fitted == []


@pytest.mark.slow
def test_the_command_trains_ours_beside_the_rivals_and_goes_on_where_it_stopped(study, monkeypatch, capsys):
    monkeypatch.setattr(labels, "SYSTEMS", {"LSTM": "none", "r-LSTM": "reconstruct"})
    monkeypatch.setattr(labels, "AUXILIARY", (*labels.AUXILIARY[:-1], "2"))
    call(monkeypatch, "labels", "recordings", "--quick", "--out", "out", "--pictures", "pictures")
    results = read_results(study / "out")
    assert {(each.split, each.system, each.labels, each.seed) for each in results} == {
        *itertools.product(labels.IS_TEST, ("LSTM", "r-LSTM", ROCKET, MFCC), UPDATES, (0,))
    }
    assert sorted(path.name for path in Path("pictures").iterdir()) == [
        "few-labels-official.png",
        "few-labels-speakers.png",
    ]
    written = capsys.readouterr().out
    assert written.endswith((study / "out" / "labels.md").read_text() + "\n")
    times = {path: path.stat().st_mtime_ns for path in (study / "out" / "records").iterdir()}
    call(monkeypatch, "labels", "recordings", "--quick", "--out", "out", "--pictures", "pictures")
    assert times == {path: path.stat().st_mtime_ns for path in (study / "out" / "records").iterdir()}


def test_a_folder_without_recordings_is_refused_in_one_sentence(study):
    with pytest.raises(RunError, match=r"^empty holds no recordings; give the folder of the Free Spoken Digit"):
        labels.measure_labels(Path("empty"), study / "out", study)


def test_what_is_not_installed_is_named_before_anything_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(labels.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(RunError, match=r"^aeon and python_speech_features not installed; they come with `pip install"):
        labels.measure_labels(tmp_path, tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


def test_word_counts_get_as_many_labels_as_the_networks_of_few_labels_whose_records_are_taken(tmp_path, monkeypatch):
    counts = (14, 28, 42, 56, 70)
    for module in (labels, few_labels):
        monkeypatch.setattr(module, "COUNTS", {DBPEDIA: counts})
    for name, per_class in {"train": 5, "test": 1}.items():
        rows = [f'{1 + label},"title","word{label} and more"' for label in range(14)]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows * per_class) + "\n")
    jobs = few_labels.runs(find_scale("full", Path("unused")))
    job = next(job for job in jobs if (job.row, job.config.seed) == ("p-LSTM", 1))
    scores = {"test_accuracy": 62.5, "cpu_seconds": 90.0}
    write_record(RunRecord(job.name, {"seed": 1}, scores, 60.0, [], {}, {}), tmp_path / "records")
    call(
        monkeypatch, "texts", str(tmp_path), "--records", str(tmp_path / "records"), "--out", str(tmp_path / "out")
    )  # fmt: skip
    results = read_results(tmp_path / "out")
    assert Result("dbpedia", "p-LSTM", 1, 1, 62.5, 90.0) in results
    found = {(each.labels, each.seed): each.accuracy for each in results if each.system == labels.TF_IDF}
    assert found == dict.fromkeys(itertools.product((1, 2, 3, 4, None), (0, 1, 2)), 100.0)
    assert (tmp_path / "out" / "few-labels-dbpedia.png").exists()


def test_the_committed_table_and_a_picture_of_each_split_are_made_from_the_committed_results(tmp_path):
    shutil.copytree(RESULTS / "records", tmp_path / "records")
    labels.write_summary(tmp_path, tmp_path / "pictures")
    assert (tmp_path / "labels.md").read_text() == (RESULTS / "labels.md").read_text()
    names = [path.name for path in sorted((tmp_path / "pictures").iterdir())]
    assert names == [f"few-labels-{split}.png" for split in ("dbpedia", "official", "speakers")]
    assert all((DOCS / name).exists() for name in names)
