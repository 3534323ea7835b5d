"""What runs will take: in proportion to their work, at the speed of finished records or of one measured update."""

import json
import subprocess
import sys

import pytest

from auxrnn.config import flatten, unflatten
from auxrnn.experiments import estimates
from auxrnn.experiments.catalog import EXPERIMENTS, find_jobs
from auxrnn.experiments.estimates import estimate_bytes, estimate_seconds, find_work, list_runs
from auxrnn.experiments.jobs import Folders, Job, plan
from auxrnn.experiments.scales import find_scale
from auxrnn.report.records import RunRecord, write_record
from command import call

BASE = {"data": "mnist", "objective": "reconstruct", "pretrain_steps": 100, "train_steps": 200}
PLAIN = {"objective": "none", "pretrain_steps": 0, "supervised_window": "full"}


@pytest.fixture
def folders(tmp_path):
    return Folders(tmp_path / "runs", tmp_path / "records")


def make_job(**values):
    return Job("row", "column", unflatten(BASE | values))


def leave_record(job, folders, *, seconds):
    scores = {"test_accuracy": 90.0}
    write_record(RunRecord(job.name, flatten(job.config), scores, seconds, [], {}, {}), folders.records)


@pytest.mark.parametrize(
    ("changes", "factor"),
    [({"train_steps": 400}, 2), ({"batch_size": 256}, 2), ({"hidden_size": 256}, 4), ({"image_size": 56}, 4)],
)
def test_work_grows_with_updates_rows_units_and_steps(changes, factor):
    plain = BASE | PLAIN | {"batch_size": 128}
    assert find_work(unflatten(plain | changes)) == factor * find_work(unflatten(plain))


def test_back_propagation_takes_twice_as_long_as_reading_and_attention_grows_with_pairs_of_steps():
    full, none = (find_work(make_job(**PLAIN | {"supervised_window": window}).config) for window in ("full", 0))
    assert full == 3 * none
    short, long = (
        find_work(unflatten({"data": "mnist", "model": "transformer", "train_steps": 1, "image_size": side}))
        for side in (28, 280)
    )
    assert long > 300 * short


def test_epochs_are_counted_in_updates_of_the_published_data():
    epochs = find_work(make_job(**PLAIN, train_steps=None, train_epochs=2.0).config)
    assert epochs == find_work(make_job(**PLAIN, train_steps=2 * 469).config)


def test_a_run_takes_what_a_finished_one_of_its_system_took_for_each_part_of_its_work(folders):
    done, other = make_job(**PLAIN), make_job(**PLAIN | {"train_steps": 600})
    leave_record(done, folders, seconds=50.0)
    assert estimate_seconds(plan([other], folders), folders) == {other.name: pytest.approx(150.0)}


def test_a_pretraining_that_two_runs_share_counts_once(folders):
    done, *jobs = (make_job(supervised_window=window) for window in (1, 2, 3))
    leave_record(done, folders, seconds=90.0)
    first, one, other = plan(jobs, folders)
    seconds = estimate_seconds([first, one, other], folders)
    assert seconds[first.name] + seconds[one.name] == pytest.approx(90.0, rel=0.01)
    assert seconds[other.name] == pytest.approx(seconds[one.name], rel=0.01)


@pytest.mark.parametrize("values", [{}, {"model": "char_cnn", "data": "dbpedia"}], ids=["LSTM", "characters"])
def test_where_nothing_is_known_one_update_is_measured(values, folders):
    job = Job("row", "", unflatten(BASE | PLAIN | values))
    (seconds,) = estimate_seconds(plan([job], folders), folders).values()
    assert seconds > 0


def test_measurements_of_an_update_and_counts_of_data_take_some_seconds(folders):
    tasks = plan([make_job()._replace(kind="cost"), make_job()._replace(kind="data")], folders)
    assert set(estimate_seconds(tasks, folders).values()) == {estimates.SECONDS_TO_MEASURE}


def test_the_list_of_runs_has_what_finished_ones_took(folders, monkeypatch):
    monkeypatch.setattr(estimates, "_measure_speed", lambda: 1e9)
    scale = find_scale("desk", folders.runs)
    job, *_ = find_jobs(["figure5"], scale)
    leave_record(job, folders, seconds=77.0)
    first, *others = list_runs(["figure5"], scale, folders)
    assert len(others) == 8
    assert (first.name, first.is_done, first.seconds) == (job.name, True, 77.0)
    assert all(run.seconds > 0 for run in others)
    assert not any(run.is_done for run in others)


def test_of_runs_that_share_a_pretraining_the_first_counts_it(folders, monkeypatch):
    monkeypatch.setattr(estimates, "_measure_speed", lambda: 1e9)
    longest, shorter, *_ = list_runs(["figure4"], find_scale("desk", folders.runs), folders)
    assert longest.seconds > 1.3 * shorter.seconds


def test_memory_is_that_of_the_hungriest_update_and_small_where_data_is_missing(tmp_path):
    values = {"data": "digits", "objective": "none", "train_steps": 1, "threads": 1}
    small, large = (estimate_bytes(unflatten(values | {"batch_size": size})) for size in (4, 128))
    missing = estimate_bytes(unflatten(values | {"data": str(tmp_path / "missing.csv")}))
    assert missing == estimates.PROCESS_BYTES < small < large


def test_all_experiments_are_listed_without_any_data(tmp_path):
    command = [sys.executable, "-m", "auxrnn", "reproduce", "--list", "--json", "--runs", str(tmp_path / "runs")]
    done = subprocess.run([*command, "--results", str(tmp_path)], capture_output=True, text=True, check=True)
    listed = json.loads(done.stdout)["experiments"]
    assert len(listed) == 4 * len(EXPERIMENTS)
    assert all(entry["num_done"] == 0 < entry["seconds_left"] for entry in listed)


def test_the_list_measures_one_system_and_writes_nothing(tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(estimates, "time_step", lambda session, *_args, **_words: measured.append(session) or 1.0)
    estimates._measure_speed.cache_clear()
    words = ["reproduce", "--list", "--json", "--runs", tmp_path / "runs", "--results", tmp_path / "results"]
    listed = json.loads(call(*words).out)["experiments"]
    estimates._measure_speed.cache_clear()
    assert {entry["scale"] for entry in listed} == {"smoke", "desk", "full", "paper"}
    assert len(measured) == 1
    assert list(tmp_path.iterdir()) == []


def test_every_system_of_the_paper_has_a_known_speed(tmp_path):
    jobs = find_jobs(list(EXPERIMENTS), find_scale("desk", tmp_path))
    systems = {(job.config.model.model, job.config.loss.objective) for job in jobs if job.kind == "train"}
    assert systems <= estimates.RELATIVE_SPEEDS.keys()
