"""Starting from another run's networks: what is taken and what is new."""

import torch

from auxrnn import cli, runs
from auxrnn.networks import build_network
from auxrnn.plain_config import unflatten

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
    taken = runs.load_run(source).network.state_dict()
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
