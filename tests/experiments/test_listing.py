"""The time of what is left: first phases are shared, and not counted where they are done."""

import pytest

from auxrnn.config import unflatten
from auxrnn.experiments.estimates import RunEstimate
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.listing import find_seconds
from auxrnn.experiments.workers import Folders, plan

SECONDS = {"pretrain": 10.0, "train": 5.0}


@pytest.fixture
def folders(tmp_path):
    return Folders(tmp_path / "runs", tmp_path / "records")


def make_job(window):
    values = {"data": "mnist", "objective": "reconstruct", "pretrain_steps": 3, "supervised_window": window}
    return Job("r-LSTM", str(window), unflatten(values | {"train_steps": 4}))


def estimate(task):
    schedule = task.config.schedule
    return RunEstimate(
        SECONDS["pretrain"] * bool(schedule.pretrain_steps) + SECONDS["train"] * bool(schedule.train_steps), 0
    )


def test_a_first_phase_that_two_runs_share_counts_once(folders):
    tasks = plan([make_job(1), make_job(2)], folders)
    assert find_seconds(tasks, folders, estimate) == SECONDS["pretrain"] + 2 * SECONDS["train"]


def test_a_first_phase_that_is_done_counts_no_more(folders):
    tasks = plan([make_job(1), make_job(2)], folders)
    (first,) = [task for task in tasks if not task.is_job]
    (folders.runs / first.name).mkdir(parents=True)
    (folders.runs / first.name / "model.safetensors").touch()
    assert find_seconds(tasks, folders, estimate) == 2 * SECONDS["train"]
