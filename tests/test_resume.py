"""A run that was killed and resumed ends with the same bytes as the run that never stopped."""

import contextlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from auxrnn import cli
from command import call
from own_data import write_csv

# Processes that begin with what is imported here: a fresh one would take seconds to import torch. Newer Pythons warn
# where a process with threads does that; these children need none of them.
FORK = multiprocessing.get_context("fork")
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

FLAGS = [
    "digits", "--objective", "reconstruct", "--hidden-size", "8", "--embedding-size", "8", "--head-size", "16",
    "--batch-size", "40", "--train-examples", "130", "--validation-fraction", "0.2", "--segment-length", "20",
    "--auxiliary-window", "10", "--supervised-window", "12", "--sampling-steps", "60", "--pretrain-steps", "25",
    "--train-steps", "30", "--evaluate-every", "7", "--checkpoint-every", "6", "--log-every", "4", "--threads", "1",
]  # fmt: skip


def run_quietly(*words):
    done = call(*words)
    assert done.code == 0, done.err


def kill_soon(folder, seconds, *words):
    """Start a command and kill it without warning so long after it has begun to write; False if it was done before."""
    metrics = folder / "metrics.jsonl"
    before = metrics.stat().st_mtime_ns if metrics.exists() else None
    command = [sys.executable, "-m", "auxrnn", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and (not metrics.exists() or metrics.stat().st_mtime_ns == before):
        time.sleep(0.001)
    try:
        process.wait(timeout=seconds)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True


def wait_for_line(path, number, *words):
    """Start a command and kill it as soon as its records have so many lines."""

    def run():
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):  # noqa: PTH123 - a device
            cli.run([str(word) for word in words])

    process = FORK.Process(target=run)
    process.start()
    while process.is_alive() and (not path.exists() or path.read_bytes().count(b"\n") < number):
        time.sleep(0.001)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL, "it ended before it was killed"


def events_without_times(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if "seconds" not in name} for line in lines]


def assert_same_run(folder, expected):
    for name in ("model.safetensors", "model-best.safetensors"):
        assert (folder / name).read_bytes() == (expected / name).read_bytes(), name
    assert events_without_times(folder) == events_without_times(expected)


@pytest.fixture(scope="session")
def never_stopped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    run_quietly("train", *FLAGS, "--out", folder)
    return folder


def test_the_same_command_gives_the_same_bytes(never_stopped, tmp_path):
    run_quietly("train", *FLAGS, "--out", tmp_path / "again")
    assert_same_run(tmp_path / "again", never_stopped)


def test_a_killed_run_on_texts_of_different_lengths_with_few_labels_ends_with_the_same_bytes(tmp_path):
    words = ["train", write_csv(tmp_path / "reviews.csv", 90), *FLAGS[1:], "--train-examples", "60"]
    words += ["--label-fraction", "0.5", "--max-length", "25"]
    run_quietly(*words, "--out", tmp_path / "whole")
    wait_for_line(tmp_path / "killed" / "metrics.jsonl", 9, *words, "--out", tmp_path / "killed")
    run_quietly("resume", tmp_path / "killed")
    assert_same_run(tmp_path / "killed", tmp_path / "whole")


# Lines 1 to 3 lie in pretraining with scheduled sampling under way, later ones around the phase boundary (an evaluation
# is written right before and right after it) and in joint training; each kill hits mid-epoch, between checkpoints.
@pytest.mark.parametrize(
    "lines", [[11, 13], pytest.param([1, 8], marks=pytest.mark.slow), pytest.param([12, 20], marks=pytest.mark.slow)]
)
def test_a_run_killed_twice_and_resumed_ends_with_the_same_bytes(never_stopped, tmp_path, lines):
    folder = tmp_path / "killed"
    wait_for_line(folder / "metrics.jsonl", lines[0], "train", *FLAGS, "--out", folder)
    assert not (folder / "model.safetensors").exists()
    wait_for_line(folder / "metrics.jsonl", lines[1], "resume", folder)
    run_quietly("resume", folder)
    assert_same_run(folder, never_stopped)


def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_it_used(never_stopped, tmp_path, caplog):
    folder = tmp_path / "damaged"
    wait_for_line(folder / "metrics.jsonl", 9, "train", *FLAGS, "--out", folder)
    newest = sorted((folder / "checkpoints").glob("*.safetensors"))[-1]
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1
    newest.write_bytes(content)
    run_quietly("resume", folder)
    assert f"{newest.stem} is damaged" in caplog.text
    assert_same_run(folder, never_stopped)


def test_a_half_line_of_records_is_gone_after_resuming(never_stopped, tmp_path):
    folder = tmp_path / "half"
    wait_for_line(folder / "metrics.jsonl", 6, "train", *FLAGS, "--out", folder)
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"event": "tra')
    run_quietly("resume", folder)
    assert_same_run(folder, never_stopped)


@pytest.mark.slow
def test_kills_at_random_moments_never_change_the_result(never_stopped, tmp_path):
    rng = random.Random(0)  # noqa: S311 - nothing secret
    num_kills = 0
    for trial in range(5):
        folder = tmp_path / f"trial{trial}"
        num_kills += kill_soon(folder, rng.uniform(0, 0.5), "train", *FLAGS, "--out", folder)
        for _ in range(4):
            if not (folder / "model.safetensors").exists():
                num_kills += kill_soon(folder, rng.uniform(0, 0.5), "resume", folder)
        if not (folder / "model.safetensors").exists():
            run_quietly("resume", folder)
        assert_same_run(folder, never_stopped)
    assert num_kills >= 8, "the kills came too late to prove anything"
