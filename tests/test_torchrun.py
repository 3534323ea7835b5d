"""`auxrnn train` in several processes: one run, whoever is killed and when, and one sentence for each failure."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import safetensors.torch
import torch

from auxrnn.training import processes
from command import call
from own_data import write_csv
from test_resume import FLAGS, assert_same_run, events_without_times
from together import run_command, start_command

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
SECONDS = 150
GONE = "another process of this training has ended or cannot be reached"


def count_lines(folder):
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_line(crew, folder, number):
    """Wait until the records of a run have so many lines."""
    while count_lines(folder) < number:
        assert all(child.is_alive() for child in crew.children), crew.said.read_text()
        time.sleep(0.001)


def assert_close_run(folder, expected):
    """Compare two runs but for rounding."""
    theirs, ours = (safetensors.torch.load_file(one / "model.safetensors") for one in (folder, expected))
    for name, value in ours.items():
        torch.testing.assert_close(theirs[name], value, rtol=1e-3, atol=1e-5)
    events, wanted = events_without_times(folder), events_without_times(expected)
    assert [(event["event"], event["total_step"]) for event in events] == [
        (event["event"], event["total_step"]) for event in wanted
    ]
    for event, other in zip(events, wanted, strict=True):
        losses = {name: value for name, value in other.items() if name.endswith("_loss")}
        assert {name: event[name] for name in losses} == pytest.approx(losses, rel=1e-4)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Train with two processes that nobody disturbs."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    said = run_command(2, folder.with_suffix(".txt"), "train", *FLAGS, "--out", folder)
    assert said.count("on 2 processes of 1 thread each") == 1
    assert said.count("\n") == 7, said
    return folder


def test_a_training_of_two_processes_is_that_of_one_but_for_rounding(whole, tmp_path):
    done = call("train", *FLAGS, "--out", tmp_path / "one")
    assert done.code == 0, done.err
    assert_close_run(whole, tmp_path / "one")
    assert json.loads((whole / "environment.json").read_text())["processes"] == 2


@pytest.mark.parametrize(("rank", "lines"), [(0, 12), (1, 8)])
def test_when_one_is_killed_the_other_says_so_and_ends_and_resuming_gives_the_same_bytes(whole, tmp_path, rank, lines):
    folder = tmp_path / "killed"
    crew = start_command(2, tmp_path / "said", "train", *FLAGS, "--out", folder)
    wait_for_line(crew, folder, lines)
    crew.children[rank].kill()
    killed = time.monotonic()
    codes = crew.wait()
    assert time.monotonic() - killed < 30
    assert (codes[rank], codes[1 - rank]) == (-signal.SIGKILL, 1)
    assert [GONE in sentence for sentence in crew.sentences()] == [True]
    assert "Traceback" not in crew.said.read_text()
    assert not (folder / "model.safetensors").exists()
    run_command(2, tmp_path / "again", "resume", folder)
    assert_same_run(folder, whole)


def test_a_run_resumed_with_another_number_of_processes_says_so_and_is_the_same_but_for_rounding(whole, tmp_path):
    folder = tmp_path / "run"
    crew = start_command(2, tmp_path / "said", "train", *FLAGS, "--out", folder)
    wait_for_line(crew, folder, 9)
    for child in crew.children:
        child.kill()
    crew.wait()
    done = call("resume", folder)
    assert "the number of processes was 2 and is 1: the weights will not be, byte for byte" in done.err
    assert "equal up to rounding" in done.err
    assert_close_run(folder, whole)


def test_a_process_that_says_nothing_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "TIMEOUT", processes.TIMEOUT / 200)
    crew = start_command(2, tmp_path / "said", "train", *FLAGS, "--train-steps", "9999", "--out", tmp_path / "run")
    wait_for_line(crew, tmp_path / "run", 3)
    os.kill(crew.children[1].pid, signal.SIGSTOP)
    crew.children[0].join(60)
    assert crew.children[0].exitcode == 1
    assert [GONE in sentence for sentence in crew.sentences()] == [True]
    crew.children[1].kill()


def test_a_stopped_training_keeps_a_checkpoint_that_resuming_continues(whole, tmp_path):
    folder = tmp_path / "run"
    crew = start_command(2, tmp_path / "said", "train", *FLAGS, "--out", folder)
    wait_for_line(crew, folder, 7)
    # The terminal and torchrun both tell each process.
    for _ in range(2):
        for child in crew.children:
            os.kill(child.pid, signal.SIGINT)
    assert crew.wait() == [130, 130]
    assert crew.said.read_text().count("stopping after this update\n") == 1
    assert crew.said.read_text().count("stopped; `auxrnn resume") == 1
    run_command(2, tmp_path / "again", "resume", folder)
    assert_same_run(folder, whole)


def test_a_restarted_command_continues_its_run_and_no_other(whole, tmp_path):
    folder = tmp_path / "run"
    words = ["train", *FLAGS, "--out", folder]
    crew = start_command(2, tmp_path / "first", *words, max_restarts=1)
    wait_for_line(crew, folder, 9)
    crew.children[1].kill()
    crew.wait()
    other = start_command(2, tmp_path / "other", *words, "--seed", "1", restarts=1)
    assert sorted(other.wait()) == [1, 2]
    assert ["already holds a run" in sentence for sentence in other.sentences()] == [True]
    run_command(2, tmp_path / "second", *words, restarts=1, max_restarts=1)
    assert_same_run(folder, whole)


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["train", "digits", "--lr", "x"], 2, "--lr is 'x'"),
        (["demo"], 2, "call `auxrnn demo` without it"),
        (["train", "digits", "--model", "vdcnn"], 2, "vdcnn"),
        (["train", "digits", "--device", "cuda:7", "--train-steps", "1"], 2, "GPUs"),
    ],
)
def test_a_mistake_is_one_sentence_however_many_processes_find_it(tmp_path, words, code, part):
    crew = start_command(3, tmp_path / "said", *words)
    assert crew.wait() == [code] * 3
    assert [part in sentence for sentence in crew.sentences()] == [True]


def test_what_only_the_first_process_finds_is_one_sentence_too(whole, tmp_path):
    crew = start_command(3, tmp_path / "said", "train", *FLAGS, "--out", whole)
    assert crew.wait() == [2, 1, 1]
    assert ["already holds a run" in sentence for sentence in crew.sentences()] == [True]


def test_a_loss_that_is_no_number_is_one_sentence_with_the_checkpoint(tmp_path):
    flags = ["--lr", "1e30", "--clip-norm", "0", "--recipe", "paper"]
    crew = start_command(2, tmp_path / "said", "train", *FLAGS, *flags, "--out", tmp_path / "run")
    assert crew.wait() == [1, 1]
    (sentence,) = crew.sentences()
    assert "is not a finite number at update" in sentence
    assert "the last good checkpoint is" in sentence


def test_restarts_need_a_folder_that_is_named(tmp_path):
    crew = start_command(1, tmp_path / "said", "train", *FLAGS, max_restarts=2)
    assert crew.wait() == [2]
    assert ["give --out FOLDER" in sentence for sentence in crew.sentences()] == [True]


def test_minutes_are_planned_by_all_processes_together(tmp_path):
    words = ["digits", "--minutes", "0.05", "--hidden-size", "8", "--embedding-size", "8", "--image-size", "7"]
    said = run_command(2, tmp_path / "said", "train", *words, "--out", tmp_path / "run")
    assert "planned to end within 0.05 minutes of the start" in said
    assert said.count("\n") < 10


def test_pretraining_is_shared_and_a_finished_run_trained_for_longer(whole, tmp_path):
    run_command(2, tmp_path / "1", "train", *FLAGS, "--train-steps", "0", "--out", tmp_path / "first")
    words = [*FLAGS, "--pretrained", tmp_path / "first", "--out", tmp_path / "run"]
    run_command(2, tmp_path / "2", "train", *words)
    assert_same_run(tmp_path / "run", whole)
    said = run_command(2, tmp_path / "3", "resume", tmp_path / "run", "--train-steps", "40")
    assert "follow the new length of 40 updates from here" in said
    # Restarted, it is longer already.
    run_command(2, tmp_path / "4", "resume", tmp_path / "run", "--train-steps", "40", restarts=1)
    assert events_without_times(tmp_path / "run")[-1]["step"] == 40


def start_torchrun(folder, *words, num_processes=2, max_restarts=1):
    """Start the real torchrun."""
    flags = ["--standalone", "--nproc-per-node", num_processes, "--max-restarts", max_restarts]
    command = [sys.executable, "-m", "torch.distributed.run", *flags, "-m", "auxrnn", *words]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with folder.with_suffix(".txt").open("w") as said:
        return subprocess.Popen([str(word) for word in command], stdout=said, stderr=said, env=environment)


def find_children(process):
    """Give the processes that torchrun has started, in the order of their ranks."""
    import psutil

    found = {}
    for child in psutil.Process(process.pid).children():
        try:
            variables = child.environ()
            if "RANK" in variables:
                found[int(variables["RANK"])] = child
        except psutil.Error:
            # It has just ended.
            continue
    return [found[rank] for rank in sorted(found)]


def test_torchrun_restarts_a_training_of_which_one_process_was_killed(whole, tmp_path):
    folder = tmp_path / "run"
    process = start_torchrun(folder, "train", *FLAGS, "--out", folder)
    try:
        while count_lines(folder) < 9 and process.poll() is None:
            time.sleep(0.001)
        find_children(process)[1].kill()
        assert process.wait(SECONDS) == 0, folder.with_suffix(".txt").read_text()
    finally:
        process.kill()
    assert GONE in folder.with_suffix(".txt").read_text()
    assert_same_run(folder, whole)


@pytest.mark.slow
def test_torchrun_ends_with_the_same_bytes_whoever_is_killed_and_when(whole, tmp_path):
    rng = random.Random(0)  # noqa: S311 - nothing secret
    num_kills = 0
    for trial in range(4):
        folder = tmp_path / f"run{trial}"
        process = start_torchrun(folder, "train", *FLAGS, "--out", folder, max_restarts=5)
        try:
            for _ in range(3):
                time.sleep(rng.uniform(2, 9))
                for child in find_children(process)[rng.randrange(2) :][:1]:
                    child.kill()
                    num_kills += 1
            assert process.wait(SECONDS) == 0, folder.with_suffix(".txt").read_text()
        finally:
            process.kill()
        assert_same_run(folder, whole)
    assert num_kills >= 6, "the kills came too late to prove anything"


def find_next(folder, words):
    """Give the command that begins a run, or continues it."""
    return ["resume", folder] if (folder / "config.json").exists() else [*words, "--out", folder]


@pytest.mark.slow
@pytest.mark.parametrize("num_processes", [2, 3])
def test_kills_at_random_moments_never_change_the_result(tmp_path, num_processes):
    words = ["train", write_csv(tmp_path / "reviews.csv", 90), *FLAGS[1:], "--train-examples", "60"]
    words += ["--label-fraction", "0.5", "--max-length", "25"]
    run_command(num_processes, tmp_path / "said", *words, "--out", tmp_path / "whole")
    rng, num_kills = random.Random(num_processes), 0  # noqa: S311 - nothing secret
    for trial in range(8):
        folder, said = tmp_path / f"run{trial}", tmp_path / f"said{trial}"
        for _ in range(6):
            said.unlink(missing_ok=True)
            crew = start_command(num_processes, said, *find_next(folder, words))
            before, end = count_lines(folder), time.monotonic() + 20
            # Half of the kills come after it has begun to write.
            is_late = rng.random() < 0.5
            while is_late and count_lines(folder) <= before and time.monotonic() < end:
                time.sleep(0.01)
            crew.children[0].join(rng.uniform(0, 3))
            victim = rng.choice(crew.children)
            num_kills += victim.is_alive()
            victim.kill()
            codes = crew.wait()
            if codes == [0] * num_processes or (folder / "model.safetensors").exists():
                break
            assert len(crew.sentences()) <= 1, said.read_text()
        run_command(num_processes, said, *find_next(folder, words))
        assert_same_run(folder, tmp_path / "whole")
    assert num_kills >= 8, "the kills came too late to prove anything"
