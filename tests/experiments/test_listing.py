"""The time of what is left: first phases are shared, and not counted where they are done."""

import io

import pytest
from rich.console import Console

from auxrnn.experiments import display
from auxrnn.experiments.display import find_ratio
from auxrnn.experiments.estimates import RunEstimate
from auxrnn.experiments.jobs import Folders, Job, plan
from auxrnn.experiments.listing import SECONDS_TO_MEASURE, find_known_seconds, find_seconds
from auxrnn.plain_config import unflatten

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


def test_of_tasks_that_were_measured_the_time_is_known(folders):
    measurement = make_job(1)._replace(kind="cost")
    tasks = plan([make_job(1), make_job(2), measurement], folders)
    first, one, other, cost = tasks
    estimates = {task.name: estimate(task) for task in (first, one)}
    expected = {first.name: SECONDS["pretrain"], one.name: SECONDS["train"], cost.name: SECONDS_TO_MEASURE}
    assert find_known_seconds(tasks, estimates) == expected
    assert other.name not in expected


def test_a_run_whose_first_phase_nobody_has_measured_is_not_known(folders):
    tasks = plan([make_job(1)], folders)
    estimates = {task.name: estimate(task) for task in tasks if task.is_job}
    assert find_known_seconds(tasks, estimates) == {}


def test_what_is_left_is_weighed_by_its_time():
    assert find_ratio(["long"], ["short"], {"long": 30.0, "short": 10.0}) == 3.0
    assert find_ratio(["long", "unknown"], ["short"], {"long": 30.0, "short": 10.0}) == 5.0
    assert find_ratio(["b", "c"], ["a"], {}) == 2.0


def test_what_was_found_done_says_nothing_about_the_time_left(folders, monkeypatch):
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(display.time, "monotonic", lambda: next(clock))
    first, one, other = plan([make_job(1), make_job(2)], folders)
    console = Console(file=io.StringIO(), width=200)
    shown = display.Display([first, one, other], folders, console, weigh=lambda: dict.fromkeys([one.name], 5.0))
    shown.ended(first, None)
    shown.started(one)
    shown.ended(one, None)
    before, after = console.file.getvalue().splitlines()
    assert "left" not in before
    assert after.endswith("(10 seconds left)")
