"""Working through jobs: in what order, how many at a time, what a failure costs, and what is never done twice."""

import contextlib
import json
import subprocess
import sys
import threading
import time

import pytest

from auxrnn import runs
from auxrnn.experiments import processes, workers
from auxrnn.experiments.jobs import Folders, Job, plan
from auxrnn.experiments.workers import PROCESS_BYTES, Crew, describe_failures
from auxrnn.plain_config import unflatten
from auxrnn.report.run_records import KEPT_OF_ENVIRONMENT, read_record

GIGABYTE = 1_000_000_000
NUM_OF_TABLE2 = 34
"""Runs of table2 at smoke: 18 + 4 + 3 + 9, one seed each."""


class FakeProcess:
    """Ends when it was asked so many times how it is, and leaves behind what a finished run leaves."""

    def __init__(self, crowd, name, *, words, log, out):
        self.crowd, self.name, self.words, self.log, self.out = crowd, name, words, log, out
        self.asks_left = 2
        self.returncode = None

    def poll(self):
        self.asks_left -= 1
        if self.asks_left <= 0 and self.returncode is None:
            self.returncode = self.crowd.end(self)
        return self.returncode

    def terminate(self):
        self.crowd.terminated.append(self.name)

    def wait(self):
        self.crowd.running.discard(self.name)
        return 130


class Crowd:
    """A way to start commands that remembers who ran beside whom."""

    def __init__(self, *, failing=()):
        self.failing = failing
        self.running, self.together, self.words, self.terminated = set(), [], {}, []

    def __call__(self, words, *, log, out=None):
        name = log.name.removesuffix(".log")
        assert name not in self.words, "started twice"
        self.words[name] = list(words)
        self.running.add(name)
        self.together.append(set(self.running))
        return FakeProcess(self, name, words=words, log=log, out=out)

    def end(self, process):
        self.running.discard(process.name)
        if process.name in self.failing:
            process.log.write_text("something\nauxrnn: the disk is full\n")
            return 1
        if process.out is not None:
            process.out.write_text('{"seconds_per_update": {"joint": 2.0}}')
        else:
            leave_run(process.log.with_suffix(""))
        return 0


class Silence:
    """Shows nothing, and counts how often it was looked; `at_look` happens at the first."""

    def __init__(self, at_look=lambda: None):
        self.num_looks, self.num_left, self.endings, self.at_look = 0, 0, [], at_look

    def started(self, task):
        pass

    def looked(self, active):
        self.num_looks += 1
        self.at_look()

    def ended(self, task, failure):
        self.endings.append((task.name, failure))

    def left(self, task):
        self.num_left += 1


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch):
    monkeypatch.setattr(workers, "POLL_SECONDS", 0.001)


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


def work(jobs, folders, crowd, *, size=1, needs=lambda _task: 0, free=None, watch=None):
    """Let a crew of some size do jobs; give what failed."""
    crew = Crew(folders, workers=size, needs=needs, free=free, watch=watch or Silence(), start=crowd)
    return crew.work(plan(jobs, folders))


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
    assert work(jobs, folders, crowd, size=size) == []
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
    assert work(jobs, folders, crowd, size=3) == []
    assert records_in(folders) == names_of(jobs)
    assert max(len(names) for names in crowd.together) > 1
    assert all(len(names) == 1 for names in crowd.together if any(name.startswith("cost-") for name in names))


def test_what_does_not_fit_into_memory_together_runs_one_after_the_other(folders):
    jobs, crowd = [make_job(seed=seed) for seed in range(5)], Crowd()
    free = 2 * (PROCESS_BYTES + GIGABYTE)
    assert work(jobs, folders, crowd, size=4, needs=lambda _task: GIGABYTE, free=free) == []
    assert max(len(names) for names in crowd.together) == 2
    assert records_in(folders) == names_of(jobs)


def test_what_does_not_fit_alone_is_infeasible_and_the_others_are_done(folders):
    large, *small = jobs = [make_job(seed=seed) for seed in range(3)]
    crowd = Crowd()
    failures = work(
        jobs,
        folders,
        crowd,
        needs=lambda task: GIGABYTE * (task.name == large.name),
        free=PROCESS_BYTES + GIGABYTE // 2,
    )
    assert [failure.name for failure in failures] == [large.name]
    assert failures[0].reason.startswith("infeasible: it needs ")
    assert crowd.words.keys() == records_in(folders) == names_of(small)


def test_a_first_phase_that_fails_fails_the_jobs_that_need_it_and_no_others(folders):
    first, second, other, plain = jobs = [make_helped(), make_helped(joint=False), make_helped(seed=1), make_job()]
    pretraining = plan(jobs, folders)[0].name
    crowd = Crowd(failing={pretraining})
    failures = work(jobs, folders, crowd, size=2)
    assert {failure.name for failure in failures} == {pretraining, first.name, second.name}
    assert failures[0] == (pretraining, "the disk is full")
    assert records_in(folders) == {other.name, plain.name}
    assert "the disk is full" in str(describe_failures(failures))
    assert "and 2 more" in str(describe_failures(failures))


def test_jobs_begin_when_their_first_phase_is_finished_and_take_it_over(folders):
    jobs, crowd = [make_helped(), make_helped(supervised_window=7)], Crowd()
    assert work(jobs, folders, crowd, size=3) == []
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
    assert work(jobs, folders, crowd) == []
    assert list(crowd.words) == [jobs[1].name]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_a_record_that_somebody_else_made_meanwhile_is_left_as_it_is(folders):
    job, crowd = make_job(), Crowd()
    tasks = plan([job], folders)
    folders.records.mkdir()
    folders.record(job.name).write_text("theirs")
    assert Crew(folders, workers=1, needs=len, free=None, watch=Silence(), start=crowd).work(tasks) == []
    assert (crowd.words, folders.record(job.name).read_text()) == ({}, "theirs")


def test_a_run_that_is_finished_but_was_not_recorded_is_recorded_without_training(folders):
    job, crowd = make_job(), Crowd()
    leave_run(folders.runs / job.name)
    assert work([job], folders, crowd) == []
    assert crowd.words == {}
    assert read_record(folders.record(job.name)).scores["test_accuracy"] == 50.0


def test_a_run_that_was_interrupted_goes_on(folders):
    job, crowd = make_job(), Crowd()
    leave_run(folders.runs / job.name)
    (folders.runs / job.name / "model.safetensors").unlink()
    assert work([job], folders, crowd) == []
    assert crowd.words == {job.name: ["resume", str(folders.runs / job.name)]}


def test_a_folder_that_a_process_was_killed_in_while_it_made_it_is_made_anew(folders):
    job, crowd = make_job(), Crowd()
    folder = folders.runs / job.name
    folder.mkdir(parents=True)
    (folder / "environment.json").write_text("{}")
    (folder / "checkpoints").mkdir()
    assert work([job], folders, crowd) == []
    assert crowd.words[job.name][0] == "train"
    assert not (folder / "checkpoints").exists()
    assert records_in(folders) == {job.name}


def test_a_run_that_another_process_trains_is_awaited_with_patience(folders, monkeypatch):
    monkeypatch.setattr(workers, "POLL_SECONDS", 0.05)
    job, crowd, watch = make_job(), Crowd(), Silence()
    folder = folders.runs / job.name
    folder.mkdir(parents=True)
    with runs.lock(folder):
        ending = threading.Timer(0.5, leave_run, [folder])
        ending.start()
        assert work([job], folders, crowd, watch=watch) == []
        ending.join()
    assert crowd.words == {}
    assert records_in(folders) == {job.name}
    assert watch.num_looks < 50


def test_a_run_that_another_process_began_at_the_same_moment_is_no_failure(folders):
    job, watch, locks = make_job(), Silence(), contextlib.ExitStack()
    folder = folders.runs / job.name
    crowd = Crowd(failing={job.name})

    def begin_too(words, *, log, out=None):
        folder.mkdir(parents=True)
        locks.enter_context(runs.lock(folder))
        threading.Timer(0.2, leave_run, [folder]).start()
        return crowd(words, log=log, out=out)

    with locks:
        assert work([job], folders, begin_too, watch=watch) == []
    assert (watch.num_left, watch.endings) == (1, [(job.name, None)])
    assert records_in(folders) == {job.name}


def test_no_process_is_left_behind_when_the_work_is_stopped(folders):
    def stop():
        raise KeyboardInterrupt

    jobs, crowd = [make_job(seed=seed) for seed in range(3)], Crowd()
    with pytest.raises(KeyboardInterrupt):
        work(jobs, folders, crowd, size=2, watch=Silence(at_look=stop))
    assert crowd.terminated == [job.name for job in jobs[:2]]
    assert crowd.running == set()


def test_everybody_hears_of_every_task_once(folders):
    jobs, watch = [make_helped(), make_job()], Silence()
    failing = {jobs[1].name}
    work(jobs, folders, Crowd(failing=failing), size=2, watch=watch)
    assert len(watch.endings) == 3
    assert {name for name, failure in watch.endings if failure is not None} == failing


def test_a_command_in_a_process_of_its_own_leaves_its_last_words(tmp_path):
    process = processes.start(["train"], log=tmp_path / "runs" / "job.log")
    assert process.wait() == 2
    assert processes.last_words(tmp_path / "runs" / "job.log").startswith("DATA is missing")


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
