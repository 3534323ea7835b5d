"""A Dask cluster of real processes: a smoke experiment, killed workers and schedulers, and what a user does wrong."""

import contextlib
import re
import socket
import subprocess
import sys

import psutil
import pytest

from auxrnn.config import unflatten
from auxrnn.errors import RunError, UsageError
from auxrnn.executors import cluster, remote
from auxrnn.executors.executor import open_executor
from auxrnn.executors.tasks import Task
from auxrnn.experiments.catalog import find_jobs
from auxrnn.experiments.scales import find_scale
from command import call
from dask_processes import LONGEST_WAIT, Cluster, find_free_port, kill, trainings_of, wait_until

pytestmark = pytest.mark.timeout(1800)  # many processes, each of which takes seconds to start where others are at work
TINY = {"data": "digits", "objective": "none", "image_size": 4, "batch_size": 8, "threads": 1}


def make_task(name, **values):
    return Task(name, unflatten(TINY | {"train_steps": 20, "checkpoint_every": 100, "log_every": 10} | values))


def start_reproduction(folder, *names, made, cluster=None):
    """Start `auxrnn reproduce` on a cluster in a process of its own."""
    words = ["reproduce", *names, "--scale", "smoke", "--cluster", cluster or made.address]
    words += ["--runs", folder / "runs", "--results", folder / "results"]
    command = [sys.executable, "-m", "auxrnn", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    made.callback(kill, process)
    return process


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
        running = start_reproduction(tmp_path / "there", "figure5", made=made, cluster=made.scheduler_file)
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
    here = reproduce_here(tmp_path / "here", "table1", "figure5")
    with Cluster(tmp_path / "first") as made:
        running = start_reproduction(tmp_path / "there", "table1", "figure5", made=made)
        wait_until(lambda: len(read_records(tmp_path / "there")) >= 3)
        kill(made.scheduler)
        _, said = running.communicate(timeout=LONGEST_WAIT)
    assert running.returncode == 1
    last = said.splitlines()[-1]
    assert last.startswith(f"auxrnn: the scheduler at {made.address} is gone; what came back is kept")
    before = read_records(tmp_path / "there")
    with Cluster(tmp_path / "second") as made:
        running = start_reproduction(tmp_path / "there", "table1", "figure5", made=made)
        kill(wait_until(lambda: next(filter(trainings_of, made.workers), None)))
        _, said = running.communicate(timeout=2 * LONGEST_WAIT)
    assert running.returncode == 0, said
    assert f"{len(before)} of them done already" in said
    after = read_records(tmp_path / "there")
    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)
    assert read_tables(tmp_path / "there") == here


@pytest.mark.slow
def test_where_the_disk_is_shared_a_run_resumes_from_the_checkpoint_of_a_killed_worker(tmp_path):
    folder = tmp_path / "runs"
    with Cluster(tmp_path / "cluster", shares_disk=True) as made:
        with open_executor(folder, workers=1, cluster=made.address) as executor:
            future = executor.submit(make_task("run", train_steps=1000))
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
        assert executor.submit(make_task("run", train_steps=1000)).result(timeout=LONGEST_WAIT).failure is None
    assert (folder / "run" / "model.safetensors").read_bytes() == (whole / "run" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A cluster of one worker with two threads, that shares no disk and declares memory for one task."""
    options = ["--nthreads", "2", "--resources", "memory=1000"]
    with Cluster(tmp_path_factory.mktemp("small"), workers=1, options=options) as made:
        yield made


@pytest.mark.slow
def test_what_is_stopped_keeps_its_checkpoint_on_the_worker_and_goes_on_there(small, tmp_path):
    with open_executor(tmp_path, workers=1, cluster=small.address) as executor:
        future = executor.submit(make_task("run", train_steps=1_000_000))
        events = wait_until(lambda: executor.read_events("run"))
        assert events[-1]["total_step"] >= 0
        assert future.running()
        executor.stop("run")
        assert future.result(timeout=LONGEST_WAIT).failure == "stopped"
    (run_folder,) = small.runs_of(0).glob("*/run")
    wait_until(lambda: not trainings_of(small.workers[0]))
    assert list(run_folder.glob("checkpoints/*.safetensors"))
    assert not list(tmp_path.iterdir())
    with open_executor(tmp_path, workers=1, cluster=small.address) as executor:
        executor.submit(make_task("run", train_steps=1_000_000))
        (training,) = wait_until(lambda: trainings_of(small.workers[0]))
        assert "resume" in training.cmdline()
    wait_until(lambda: not trainings_of(small.workers[0]))


@pytest.mark.slow
def test_tasks_that_need_all_of_the_memory_that_is_declared_never_run_together(small, tmp_path):
    with open_executor(tmp_path, workers=1, cluster=small.address) as executor:
        # The second one needs more than any worker has, and goes to the largest alone.
        needs = {"first": 600, "second": 5000}
        futures = [executor.submit(make_task(name), needs=lambda n=n: n) for name, n in needs.items()]
        together = set()
        while not all(future.done() for future in futures):
            together.add(len(trainings_of(small.workers[0])))
        assert [future.result().failure for future in futures] == [None, None]
    assert max(together) == 1


def test_own_files_travel_and_what_is_too_large_must_be_there(small, tmp_path):
    rows = "\n".join(f"{'ab' * 9 if label else 'cd' * 9},{label}" for label in [0, 1] * 10)
    (tmp_path / "texts.csv").write_text(f"text,label\n{rows}\n")
    settings = {"data": str(tmp_path / "texts.csv"), "image_size": None, "train_steps": 2}
    with open_executor(tmp_path / "runs", workers=1, cluster=small.address) as executor:
        assert executor.submit(make_task("sent", **settings)).result(timeout=LONGEST_WAIT).failure is None
        # What came back names the file by its place on this machine.
        assert call("evaluate", tmp_path / "runs" / "sent", "--split", "train").code == 0
        task = make_task("missing", **settings | {"data": str(tmp_path / "gone" / "texts.csv")})
        failure = executor.submit(task).result(timeout=LONGEST_WAIT).failure
    assert failure.startswith("on worker tcp://127.0.0.1:")
    assert f"{tmp_path / 'gone' / 'texts.csv'} is not there" in failure
    assert "AUXRNN_DATA_DIR" in failure


def test_other_versions_are_named_before_anything_is_sent(small, tmp_path):
    executor = cluster.ClusterExecutor(tmp_path, small.address)
    executor.origin = executor.origin._replace(versions=remote.find_versions() | {"torch": "1.0"})
    with pytest.raises(RunError, match=r"^tcp://.* has torch 2\.\S+ instead of 1\.0; install the same"), executor:
        pass
    assert executor.client.status == "closed"


def test_a_worker_with_another_version_that_joins_later_is_named(small, tmp_path):
    with open_executor(tmp_path, workers=1, cluster=small.address) as executor:
        executor.origin = executor.origin._replace(versions=remote.find_versions() | {"auxrnn": "9.9"})
        failure = executor.submit(make_task("run")).result(timeout=LONGEST_WAIT).failure
    assert re.fullmatch(
        r"on worker tcp://\S+: there is auxrnn \S+ instead of 9.9; install the same everywhere", failure
    )


def test_a_worker_is_no_scheduler(small, tmp_path):
    with open_executor(tmp_path, workers=1, cluster=small.address) as executor:
        (worker,) = executor.client.scheduler_info()["workers"]
    with pytest.raises(UsageError, match="is a Worker of Dask; give the address of its scheduler"):
        open_executor(tmp_path, workers=1, cluster=worker)


@pytest.mark.parametrize(
    ("address", "kind", "sentence"),
    [
        ("tcp://127.0.0.1:{free}", RunError, "no Dask scheduler answers at tcp://127.0.0.1:.* within 1 seconds; start"),
        ("tcp://127.0.0.1:{silent}", RunError, "no Dask scheduler answers"),
        ("tcp://127.0.0.1", UsageError, "--cluster is tcp://127.0.0.1: missing port"),
        ("pigeon://127.0.0.1:8786", UsageError, "--cluster is pigeon://.*unknown address scheme"),
        ("scheduler.json", UsageError, "--cluster is scheduler.json, which is neither an address nor a scheduler file"),
        ("{other}", UsageError, "neither an address nor a scheduler file; give the address of a Dask scheduler, tcp"),
    ],
)
def test_where_no_scheduler_answers_one_sentence_says_so_soon(address, kind, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_CONNECT", 1)
    (tmp_path / "other.json").write_text("[]")
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:
        ports = {"free": find_free_port(), "silent": silent.getsockname()[1], "other": tmp_path / "other.json"}
        with pytest.raises(kind, match=sentence) as caught:
            open_executor(tmp_path, workers=1, cluster=address.format(**ports))
    assert "\n" not in str(caught.value)


def test_a_missing_extra_and_two_kinds_of_workers_are_one_sentence(tmp_path, monkeypatch):
    words = ["reproduce", "figure5", "--scale", "smoke", "--runs", tmp_path, "--results", tmp_path, "--cluster", "a"]
    result = call(*words, "--workers", "2")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "--workers is for this machine" in result.err
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "auxrnn.executors.cluster")
    monkeypatch.delitem(sys.modules, "auxrnn.executors.remote")
    result = call(*words)
    assert result.code == 2
    assert result.err.splitlines()[-1] == "auxrnn: --cluster needs Dask; pip install 'auxrnn[cluster]'"
