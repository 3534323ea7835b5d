"""Working through jobs: in what order, how many at a time, what a failure costs, and what is never done twice."""

import contextlib
import io
import json
import math
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future

import pytest
from rich.console import Console

from auxrnn import runs
from auxrnn.config import unflatten
from auxrnn.executors.local import LocalExecutor
from auxrnn.experiments import runner
from auxrnn.experiments.jobs import Folders, Job, plan
from auxrnn.experiments.runner import Display, Runner
from auxrnn.files import is_locked
from auxrnn.report.records import KEPT_OF_ENVIRONMENT, read_events, read_record

GIGABYTE = 1_000_000_000
NUM_OF_TABLE2 = 34
"""Runs of table2 at smoke: 18 + 4 + 3 + 9, one seed each."""


class Crowd(Executor):
    """An executor that runs nothing: a task ends at the second update of the display, and leaves what a run leaves."""

    def __init__(self, *, failing=()):
        self.failing = failing
        self.running, self.together, self.words = {}, [], {}

    def submit(self, work, task, folder):
        assert task.name not in self.words, "started twice"
        self.words[task.name] = []
        self.running[task.name] = [Future(), lambda: work(task, folder), 2]
        self.together.append(set(self.running))
        return self.running[task.name][0]

    def tick(self):
        for name, entry in list(self.running.items()):
            entry[2] -= 1
            if entry[2] == 0:
                del self.running[name]
                entry[0].set_result(entry[1]())

    def command(self, words, *, log, out, should_stop):
        name = log.name.removesuffix(".log")
        self.words[name] = words
        return self.end(name, log, out)

    def end(self, name, log, out):
        if name in self.failing:
            log.write_text("something\nauxrnn: the disk is full\n")
            return 1
        if out is not None:
            out.write_text('{"seconds_per_update": {"joint": 2.0}}')
        else:
            leave_run(log.with_suffix(""))
        return 0


class Silence:
    """Shows nothing; `at_update` happens whenever the display would be updated."""

    bars = contextlib.nullcontext()

    def __init__(self, at_update=lambda: None):
        self.num_updates, self.endings, self.at_update = 0, [], at_update

    def update(self, active):
        self.num_updates += 1
        self.at_update()

    def end(self, task, reason=None):
        self.endings.append((task.name, reason))


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch):
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.001)


@pytest.fixture
def folders(tmp_path):
    return Folders(tmp_path / "runs", tmp_path / "records")


def leave_run(folder):
    """Write the files of a finished run, as far as its record needs them."""
    evaluation = {"event": "evaluation", "total_step": 2, "seconds": 3.0, "test_accuracy": 50.0}
    contents = {
        "config.json": {"seed": 0},
        "environment.json": dict.fromkeys(KEPT_OF_ENVIRONMENT),
        "model.json": {"class_names": ["a", "b"], "num_steps": 5},
        "metrics.jsonl": evaluation,
        "model.safetensors": {},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content) + "\n")


def make_job(kind="train", **values):
    return Job("row", "column", unflatten({"data": "digits", "objective": "none"} | values), kind)


def make_helped(**values):
    return make_job(objective="reconstruct", pretrain_steps=2, train_steps=2, **values)


def work(jobs, folders, crowd, *, size=1, needs=lambda _task: 0, free=math.inf, watch=None):
    """Let some workers do jobs; return what failed."""
    watch = watch or Silence(getattr(crowd, "tick", lambda: None))
    with open_crowd(crowd, folders, size=size, free=free) as executor:
        return Runner(folders, executor, watch, needs=needs).run(plan(jobs, folders))


def open_crowd(crowd, folders, *, size=1, free=math.inf):
    return LocalExecutor(folders.runs, workers=size, free=free, command=crowd.command, executor=crowd)


def records_in(folders):
    return {path.stem for path in folders.records.glob("*.json")}


def names_of(jobs):
    return {job.name for job in jobs}


def test_a_shared_first_phase_is_planned_once_and_right_before_the_first_job_that_needs_it(folders):
    plain, first, second, other = make_job(), make_helped(), make_helped(supervised_window=7), make_helped(seed=1)
    tasks = plan([plain, first, second, other, first], folders)
    shared, own = tasks[1].name, tasks[4].name
    assert [task.name for task in tasks] == [plain.name, shared, first.name, second.name, own, other.name]
    assert [task.after for task in tasks] == [None, None, shared, shared, None, own]
    assert [task.is_job for task in tasks] == [True, False, True, True, False, True]
    assert [tasks[place].config.schedule.train_steps for place in (1, 4)] == [0, 0]


def test_what_has_a_record_is_not_planned_nor_is_a_first_phase_that_nobody_needs_any_longer(folders):
    first, second, plain = make_helped(), make_helped(supervised_window=7), make_job()
    folders.records.mkdir()
    folders.record(first.name).touch()
    assert [task.name for task in plan([first, second, plain], folders)][1:] == [second.name, plain.name]
    folders.record(second.name).touch()
    assert [task.name for task in plan([first, second, plain], folders)] == [plain.name]


def test_a_measurement_of_a_run_with_pretraining_needs_no_first_phase(folders):
    job = make_helped()._replace(kind="cost")
    assert [(task.name, task.after) for task in plan([job], folders)] == [(job.name, None)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_as_many_run_at_a_time_as_there_are_workers_and_never_more(folders, size):
    jobs, crowd = [make_job(seed=seed) for seed in range(5)], Crowd()
    assert work(jobs, folders, crowd, size=size) == {}
    assert max(len(names) for names in crowd.together) == size
    assert list(crowd.words) == [job.name for job in jobs]
    assert records_in(folders) == names_of(jobs)


def test_nothing_runs_beside_a_measurement_of_time(folders):
    jobs = [
        make_job(),
        make_job("cost"),
        make_job(seed=1),
        make_job("cost", lr=0.1),
        make_job("data"),
        make_job(seed=2),
    ]
    crowd = Crowd()
    assert work(jobs, folders, crowd, size=3) == {}
    assert records_in(folders) == names_of(jobs)
    assert max(len(names) for names in crowd.together) > 1
    assert all(len(names) == 1 for names in crowd.together if any(name.startswith("cost-") for name in names))


def test_what_does_not_fit_into_memory_together_runs_one_after_the_other(folders):
    jobs, crowd = [make_job(seed=seed) for seed in range(5)], Crowd()
    free = 2 * GIGABYTE + 1
    assert work(jobs, folders, crowd, size=4, needs=lambda _task: GIGABYTE, free=free) == {}
    assert max(len(names) for names in crowd.together) == 2
    assert records_in(folders) == names_of(jobs)


def test_what_does_not_fit_alone_is_started_alone_and_refuses_by_itself(folders):
    jobs, crowd = [make_job(seed=seed) for seed in range(3)], Crowd()
    assert work(jobs, folders, crowd, size=2, needs=lambda _task: GIGABYTE, free=GIGABYTE // 2) == {}
    assert max(len(names) for names in crowd.together) == 1


def test_a_first_phase_that_fails_fails_the_jobs_that_need_it_and_no_others(folders):
    first, second, other, plain = jobs = [make_helped(), make_helped(joint=False), make_helped(seed=1), make_job()]
    pretraining = plan(jobs, folders)[0].name
    crowd = Crowd(failing={pretraining})
    failures = work(jobs, folders, crowd, size=2)
    assert failures.keys() == {pretraining, first.name, second.name}
    assert failures[pretraining] == "the disk is full"
    assert records_in(folders) == {other.name, plain.name}


def test_jobs_begin_when_their_first_phase_is_finished_and_take_it_over(folders):
    jobs, crowd = [make_helped(), make_helped(supervised_window=7)], Crowd()
    assert work(jobs, folders, crowd, size=3) == {}
    pretraining = next(iter(crowd.words))
    assert crowd.together == [{pretraining}, {jobs[0].name}, names_of(jobs)]
    for job in jobs:
        assert crowd.words[job.name][-2:] == ["--pretrained", str(folders.runs / pretraining)]
    assert "--pretrained" not in crowd.words[pretraining]


def test_what_failed_is_tried_again_and_what_is_done_is_not(folders):
    jobs = [make_job(seed=seed) for seed in range(3)]
    work(jobs, folders, Crowd(failing={jobs[1].name}))
    kept = {path: path.stat().st_mtime_ns for path in folders.records.iterdir()}
    assert len(kept) == 2
    crowd = Crowd()
    assert work(jobs, folders, crowd) == {}
    assert list(crowd.words) == [jobs[1].name]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_a_record_that_somebody_else_made_meanwhile_is_left_as_it_is(folders):
    job, crowd = make_job(), Crowd()
    tasks = plan([job], folders)
    folders.records.mkdir()
    folders.record(job.name).write_text("theirs")
    assert Runner(folders, open_crowd(crowd, folders), Silence(crowd.tick)).run(tasks) == {}
    assert (crowd.words, folders.record(job.name).read_text()) == ({}, "theirs")


def test_a_run_that_is_finished_but_was_not_recorded_is_recorded_without_training(folders):
    job, crowd = make_job(), Crowd()
    leave_run(folders.runs / job.name)
    assert work([job], folders, crowd) == {}
    assert crowd.words == {}
    assert read_record(folders.record(job.name)).scores["test_accuracy"] == 50.0


def test_a_run_that_was_interrupted_goes_on(folders):
    job, crowd = make_job(), Crowd()
    leave_run(folders.runs / job.name)
    (folders.runs / job.name / "model.safetensors").unlink()
    assert work([job], folders, crowd) == {}
    assert crowd.words == {job.name: ["resume", str(folders.runs / job.name)]}


def test_a_folder_that_a_process_was_killed_in_while_it_made_it_is_made_anew(folders):
    job, crowd = make_job(), Crowd()
    folder = folders.runs / job.name
    folder.mkdir(parents=True)
    (folder / "environment.json").write_text("{}")
    (folder / "checkpoints").mkdir()
    assert work([job], folders, crowd) == {}
    assert crowd.words[job.name][0] == "train"
    assert not (folder / "checkpoints").exists()
    assert records_in(folders) == {job.name}


def test_a_run_that_another_process_trains_is_awaited_with_patience(folders, monkeypatch):
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.05)
    job, crowd, watch = make_job(), Crowd(), Silence()
    folder = folders.runs / job.name
    folder.mkdir(parents=True)
    with runs.lock(folder):
        ending = threading.Timer(0.5, leave_run, [folder])
        ending.start()
        assert work([job], folders, crowd, watch=watch) == {}
        ending.join()
    assert crowd.words == {}
    assert records_in(folders) == {job.name}
    assert watch.num_updates < 50


def test_a_run_that_another_process_began_at_the_same_moment_is_no_failure(folders):
    job, crowd, locks = make_job(), Crowd(), contextlib.ExitStack()
    watch = Silence(crowd.tick)
    folder = folders.runs / job.name

    def begin_too(name, log, out):
        folder.mkdir(parents=True)
        locks.enter_context(runs.lock(folder))
        threading.Timer(0.2, leave_run, [folder]).start()
        log.write_text("another process is training")
        return 1

    crowd.end = begin_too
    with locks:
        assert work([job], folders, crowd, watch=watch) == {}
    assert watch.endings == [(job.name, None)]
    assert records_in(folders) == {job.name}


def test_every_task_ends_once(folders):
    jobs, crowd = [make_helped(), make_job()], Crowd()
    watch = Silence(crowd.tick)
    crowd.failing = {jobs[1].name}
    work(jobs, folders, crowd, size=2, watch=watch)
    assert len(watch.endings) == 3
    assert {name for name, failure in watch.endings if failure is not None} == crowd.failing


def test_an_interrupted_runner_stops_its_processes_which_keep_their_checkpoints(folders, monkeypatch):
    jobs = [make_job(seed=seed, train_steps=1_000_000, image_size=4, batch_size=8, threads=1) for seed in range(2)]

    def interrupt():
        if all(read_events(folders.runs / job.name) for job in jobs):
            raise KeyboardInterrupt

    with LocalExecutor(folders.runs, workers=2) as executor, pytest.raises(KeyboardInterrupt):
        Runner(folders, executor, Silence(interrupt)).run(plan(jobs, folders))
    for job in jobs:
        folder = folders.runs / job.name
        assert not is_locked(folder)
        assert list((folder / "checkpoints").glob("*.safetensors"))
        assert not folders.is_done(job.name)


def test_the_display_says_how_each_run_ended_and_how_long_the_rest_takes(folders, monkeypatch):
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(runner.time, "monotonic", lambda: next(clock))
    first, one, other = plan([make_helped(), make_helped(supervised_window=7)], folders)
    console = Console(file=io.StringIO(), width=200)
    seconds = {first.name: 0.0, one.name: 5.0, other.name: 10.0}
    display = Display([first, one, other], LocalExecutor(folders.runs, workers=1), console, seconds=seconds)
    display.end(first)
    display.end(one, "the disk is full")
    before, after = console.file.getvalue().splitlines()
    assert "left" not in before
    assert after == f"2/3 {one.name}  failed: the disk is full  (20 seconds left)"


@pytest.mark.slow
def test_what_a_killed_reproduction_has_recorded_is_kept_and_the_rest_is_done_by_the_next(tmp_path):
    command = [sys.executable, "-m", "auxrnn", "reproduce", "table2", "--scale", "smoke"]
    command += ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    records = tmp_path / "results" / "smoke" / "records"
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while len(list(records.glob("[!.]*.json"))) < 3:
            assert killed.poll() is None, "it ended before it could be killed"
            time.sleep(0.02)
    finally:
        killed.kill()
        killed.wait()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in records.glob("[!.]*.json")}
    assert 3 <= len(before) < NUM_OF_TABLE2
    subprocess.run(command, check=True, capture_output=True)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    after = [read_record(path) for path in records.glob("[!.]*.json")]
    assert len(after) == NUM_OF_TABLE2
    assert all(0 <= record.scores["test_accuracy"] <= 100 for record in after)
