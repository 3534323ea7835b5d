"""A Dask cluster of real processes: a smoke experiment, killed workers and schedulers, and what a user does wrong."""

import re
import subprocess
import sys

import psutil
import pytest

from auxrnn.config import unflatten
from auxrnn.executors.executor import open_executor
from auxrnn.executors.tasks import Task
from auxrnn.experiments.catalog import find_jobs
from auxrnn.experiments.scales import find_scale
from command import call
from dask_processes import LONGEST_WAIT, Cluster, kill, trainings_of, wait_until

TINY = {"data": "digits", "objective": "none", "image_size": 4, "batch_size": 8, "threads": 1}


def make_task(name, **values):
    return Task(name, unflatten(TINY | {"train_steps": 400, "checkpoint_every": 50, "log_every": 10} | values))


def start_reproduction(folder, *names, address):
    """Start `auxrnn reproduce` on a cluster in a process of its own."""
    words = ["reproduce", *names, "--scale", "smoke", "--cluster", address]
    words += ["--runs", folder / "runs", "--results", folder / "results"]
    command = [sys.executable, "-m", "auxrnn", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def read_tables(folder):
    """The tables without the time that the runs took, which is never twice the same."""
    tables = {path.name: path.read_text() for path in (folder / "results" / "smoke").glob("*.md")}
    return {name: re.sub(r"\S+ \w+ of training in all", "", text) for name, text in tables.items()}


def read_records(folder):
    paths = (folder / "results" / "smoke" / "records").glob("[!.]*.json")
    return {path.stem: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def reproduce_here(folder, *names):
    words = ["--scale", "smoke", "--runs", folder / "runs", "--results", folder / "results"]
    assert call("reproduce", *names, *words).code == 0
    return read_tables(folder)


def test_an_experiment_on_a_cluster_survives_a_killed_worker_and_its_tables_are_those_of_this_machine(tmp_path):
    here = reproduce_here(tmp_path / "here", "figure5")
    with Cluster(tmp_path / "cluster") as made:
        running = start_reproduction(tmp_path / "there", "figure5", address=str(made.scheduler_file))
        victim = wait_until(lambda: next(filter(trainings_of, made.workers), None))
        (training,) = trainings_of(victim)
        kill(victim)
        _, said = running.communicate(timeout=2 * LONGEST_WAIT)
        assert running.returncode == 0, said
        # It did not go on without its worker.
        wait_until(lambda: not training.is_running() or training.status() == psutil.STATUS_ZOMBIE)
    assert read_tables(tmp_path / "there") == here
    assert f"{made.address}: " in said
    assert "dashboard: http" in said
    assert len(re.findall(r"^\d/5 ", said, flags=re.M)) == 5
    names = {job.name for job in find_jobs(["figure5"], find_scale("smoke", tmp_path / "here" / "runs" / "made"))}
    assert read_records(tmp_path / "there").keys() == names
    for name in names:
        # The runs came back as well, and can be used here.
        assert call("evaluate", tmp_path / "there" / "runs" / "smoke" / name).code == 0


@pytest.mark.slow
def test_what_came_back_before_the_scheduler_was_killed_is_neither_lost_nor_repeated(tmp_path):
    here = reproduce_here(tmp_path / "here", "table1", "table6")
    with Cluster(tmp_path / "first") as made:
        running = start_reproduction(tmp_path / "there", "table1", "table6", address=made.address)
        wait_until(lambda: len(read_records(tmp_path / "there")) >= 6)
        kill(made.scheduler)
        _, said = running.communicate(timeout=LONGEST_WAIT)
    assert running.returncode == 1
    last = said.splitlines()[-1]
    assert last.startswith(f"auxrnn: the scheduler at {made.address} is gone; what came back is kept")
    before = read_records(tmp_path / "there")
    with Cluster(tmp_path / "second") as made:
        running = start_reproduction(tmp_path / "there", "table1", "table6", address=made.address)
        victim = wait_until(lambda: next(filter(trainings_of, made.workers), None))
        kill(victim)
        _, said = running.communicate(timeout=4 * LONGEST_WAIT)
    assert running.returncode == 0, said
    assert f"{len(before)} of them done already" in said
    after = read_records(tmp_path / "there")
    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)
    assert read_tables(tmp_path / "there") == here


def test_where_the_disk_is_shared_a_run_resumes_from_the_checkpoint_of_a_killed_worker(tmp_path):
    folder = tmp_path / "runs"
    with Cluster(tmp_path / "cluster", shares_disk=True) as made:
        with open_executor(folder, workers=1, cluster=made.address) as executor:
            future = executor.submit(make_task("run", train_steps=2000))
            wait_until(lambda: len(list(folder.glob("run/checkpoints/*.safetensors"))) >= 2)
            assert future.running()
            victim = next(filter(trainings_of, made.workers))
            kill(victim)
            (other,) = {*made.workers} - {victim}
            assert "resume" in wait_until(lambda: trainings_of(other))[0].cmdline()
            assert future.result(timeout=LONGEST_WAIT).failure is None
        assert list(folder.glob(".cluster-*")) == []
    whole = tmp_path / "whole"
    with open_executor(whole, workers=1) as executor:
        assert executor.submit(make_task("run", train_steps=2000)).result(timeout=LONGEST_WAIT).failure is None
    assert (folder / "run" / "model.safetensors").read_bytes() == (whole / "run" / "model.safetensors").read_bytes()
