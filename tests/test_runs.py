"""Making the folder of a run, and starting from another run's networks: what is taken and what is new."""

import pytest
import torch

from auxrnn import cli, runs
from auxrnn.build import build_network
from auxrnn.config import unflatten
from auxrnn.data import datasets

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
    card = runs.load_run(source).card._replace(class_names=class_names)
    network = build_network(unflatten({"data": "digits", "seed": 9} | SIZES | changes), card.spec)
    fresh = {name: value.clone() for name, value in network.state_dict().items()}
    runs._take_weights(network, card, source)
    taken = runs.load_run(source, weights="final").network.state_dict()
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


def test_a_folder_is_a_run_only_when_all_that_it_goes_on_from_is_there(tmp_path, monkeypatch):
    seen = []

    def adopt(folder, source):
        seen.append((sorted(path.name for path in folder.iterdir()), runs.is_locked(folder)))

    monkeypatch.setattr(runs, "_adopt", adopt)
    runs.create(*prepare_tiny(), tmp_path / "run", pretrained=tmp_path)
    assert seen == [(["environment.json", "model.json"], True)]
    assert (tmp_path / "run" / "config.json").exists()
    assert not runs.is_locked(tmp_path / "run")


def test_what_cannot_be_filled_leaves_nothing_behind(tmp_path, monkeypatch):
    def adopt(folder, source):
        (folder / "checkpoints").mkdir()
        raise OSError("the disk is full")

    monkeypatch.setattr(runs, "_adopt", adopt)
    with pytest.raises(OSError, match="full"):
        runs.create(*prepare_tiny(), tmp_path / "run", pretrained=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_half_made_while_it_holds_something_but_no_config_and_nobody_works_in_it(tmp_path):
    assert not runs.is_half_made(tmp_path / "none")
    assert not runs.is_half_made(tmp_path)
    (tmp_path / "environment.json").touch()
    assert runs.is_half_made(tmp_path)
    with runs.lock(tmp_path):
        assert not runs.is_half_made(tmp_path)
    (tmp_path / "config.json").touch()
    assert not runs.is_half_made(tmp_path)
