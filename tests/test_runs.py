"""Making the folder of a run, and starting from another run's networks: what is taken and what is new."""

import multiprocessing
import os
from pathlib import Path

import pytest
import torch

from auxrnn import cli, files, pretraining, runs, saved
from auxrnn.build import build_network
from auxrnn.config import unflatten
from auxrnn.data import datasets
from auxrnn.errors import RunError
from auxrnn.files import is_locked
from command import call

SIZES = {"hidden_size": 4, "embedding_size": 4, "head_size": 8, "segment_length": 10, "supervised_window": 5}
FLAGS = [f"--{name.replace('_', '-')}={value}" for name, value in SIZES.items()]


def train_tiny(folder):
    words = [
        "train",
        "digits",
        *FLAGS,
        "--pretrain-steps=1",
        "--train-steps=1",
        "--train-examples=40",
        "--batch-size=20",
    ]
    assert cli.run([*words, "--threads=1", "--out", str(folder)]) == 0


def start_from(source, class_names, **changes):
    card = saved.load_run(source).card._replace(class_names=class_names)
    network = build_network(unflatten({"data": "digits", "seed": 9} | SIZES | changes), card.spec)
    fresh = {name: value.clone() for name, value in network.state_dict().items()}
    pretraining.take_weights(network, card, source)
    taken = saved.load_run(source, weights="final").network.state_dict()
    now = network.state_dict()
    return {name.split(".")[0] for name in now if name in taken and torch.equal(now[name], taken[name])}, {
        name.split(".")[0] for name in now if torch.equal(now[name], fresh[name]) and fresh[name].dim() > 1
    }


def test_the_same_classes_take_everything_and_other_classes_get_a_new_head(tmp_path):
    train_tiny(tmp_path / "run")
    same, fresh = start_from(tmp_path / "run", tuple("0123456789"))
    assert same == {"encoder", "classifier", "objective"}
    assert not fresh
    same, fresh = start_from(tmp_path / "run", ("even", "odd"))
    assert same == {"encoder", "objective"}
    assert fresh == {"classifier"}
    same, fresh = start_from(tmp_path / "run", tuple("0123456789"), objective="predict")
    assert same == {"encoder", "classifier"}
    assert fresh == {"objective"}


def prepare_tiny():
    config = runs.settle(unflatten({"data": "digits"} | SIZES))
    return config, runs.prepare(config, datasets.load(config.data))


def create_tiny(folder, **options):
    with runs.claim(folder) as claimed:
        runs.create(*prepare_tiny(), claimed, **options)


def test_a_folder_is_a_run_only_when_all_that_it_goes_on_from_is_there(tmp_path, monkeypatch):
    seen = []

    def adopt(folder, source):
        seen.append((sorted(path.name for path in folder.iterdir()), is_locked(folder)))

    monkeypatch.setattr(runs, "adopt", adopt)
    create_tiny(tmp_path / "run", pretrained=tmp_path)
    assert seen == [([], True)]
    assert (tmp_path / "run" / "config.json").exists()
    assert not is_locked(tmp_path / "run")


def test_what_cannot_be_filled_leaves_nothing_behind(tmp_path, monkeypatch):
    def adopt(folder, source):
        (folder / "checkpoints").mkdir()
        raise OSError("the disk is full")

    monkeypatch.setattr(runs, "adopt", adopt)
    with pytest.raises(OSError, match="full"):
        create_tiny(tmp_path / "run", pretrained=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_unless_it_is_a_run_or_somebody_works_in_it(tmp_path):
    runs.remove_half_made(tmp_path / "none")
    folder = tmp_path / "half"
    folder.mkdir()
    (folder / "environment.json").touch()
    with runs.lock(folder):
        runs.remove_half_made(folder)
        assert folder.exists()
    runs.remove_half_made(folder)
    assert not folder.exists()
    folder.mkdir()
    (folder / "config.json").touch()
    runs.remove_half_made(folder)
    assert folder.exists()


def test_of_several_folders_the_first_that_nobody_has_made_is_claimed(tmp_path):
    names = [tmp_path / str(number) for number in range(4)]
    names[0].mkdir()
    with runs.claim(iter(names)) as first, runs.claim(iter(names)) as second:
        assert (first, second) == (names[1], names[2])
    assert not first.exists()
    assert not second.exists()


def test_a_claimed_folder_is_refused_to_others_until_the_end(tmp_path):
    with runs.claim(tmp_path / "run"):
        with pytest.raises(RunError, match="another process is training"), runs.claim(tmp_path / "run"):
            pass
        assert (tmp_path / "run").exists()


def test_a_lock_on_a_folder_that_was_removed_meanwhile_is_none(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir()
    flock = files.fcntl.flock

    def replace_first(handle, operation):
        folder.rmdir()
        folder.mkdir()
        flock(handle, operation)

    monkeypatch.setattr(files.fcntl, "flock", replace_first)
    with pytest.raises(RunError, match="another process"), runs.lock(folder):
        pass


def train_at_the_same_moment(barrier, words):
    barrier.wait()
    os._exit(call(*words).code)


@pytest.mark.parametrize("has_out", [True, False], ids=["one folder", "default names"])
def test_trainings_started_together_never_share_a_folder(tmp_path, monkeypatch, has_out):
    monkeypatch.chdir(tmp_path)
    words = ["train", "digits", *FLAGS, "--pretrain-steps=0", "--train-steps=2", "--train-examples=40"]
    words += ["--batch-size=20", "--threads=1"]
    expected = {}
    for seed in range(3):
        assert call(*words, f"--seed={seed}", "--out", f"alone-{seed}").code == 0
        expected[seed] = Path(f"alone-{seed}", "model.safetensors").read_bytes()
    # Forked, so that all have imported everything and really start together.
    context, out = multiprocessing.get_context("fork"), ["--out", "run"] if has_out else []
    barrier = context.Barrier(3)
    started = [
        context.Process(target=train_at_the_same_moment, args=(barrier, [*words, f"--seed={seed}", *out]))
        for seed in range(3)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    folders = [Path("run")] if has_out else sorted(Path("runs").iterdir())
    assert len(folders) == sum(process.exitcode == 0 for process in started) == (1 if has_out else 3)
    for folder in folders:
        seed = saved.read_config(folder).seed
        assert started[seed].exitcode == 0
        assert (folder / "model.safetensors").read_bytes() == expected[seed]
