"""Checkpoints come back as they were saved; a damaged one is named and the one before it is used."""

import logging

import pytest
import torch

from auxrnn import saved
from auxrnn.config import unflatten
from auxrnn.training.record import Checkpoint, load_newest, newest_path, save_checkpoint


def make_checkpoint(number):
    rng = torch.Generator().manual_seed(number)
    tensors = {
        "weight": torch.randn(3, 4, generator=rng),
        "double": torch.randn(2, dtype=torch.float64, generator=rng).t(),
        "strided": torch.randn(4, 3, generator=rng).T,
        "count": torch.tensor(number),
    }
    values = {"step": number, "best": 0.1 + number, "nothing": None, "nested": {"name": "joint", "list": [1, 2.5]}}
    return Checkpoint(tensors, values)


@pytest.fixture
def folder(tmp_path):
    """Give a folder that does not exist yet."""
    return tmp_path / "run" / "checkpoints"


@pytest.fixture
def two_saved(folder):
    for step in (10, 20):
        save_checkpoint(folder, make_checkpoint(step), step=step)
    return folder


def assert_same(checkpoint, expected):
    assert checkpoint is not None
    assert checkpoint.values == expected.values
    assert checkpoint.tensors.keys() == expected.tensors.keys()
    for name, tensor in expected.tensors.items():
        assert checkpoint.tensors[name].dtype == tensor.dtype
        assert torch.equal(checkpoint.tensors[name], tensor)


def test_a_checkpoint_comes_back_as_it_was_saved(two_saved, caplog):
    assert_same(load_newest(two_saved), make_checkpoint(20))
    assert not caplog.records


def test_only_the_newest_two_are_kept_and_nothing_else_is_left(folder):
    for step in (5, 100, 20, 1000):
        save_checkpoint(folder, make_checkpoint(step), step=step)
    names = sorted(path.name for path in folder.iterdir())
    stems = ["step-00000100", "step-00001000"]
    assert names == [f"{stem}.{ending}" for stem in stems for ending in ("json", "safetensors")]
    assert newest_path(folder) == folder / "step-00001000.safetensors"


def test_there_is_none_where_nothing_was_saved(folder):
    assert load_newest(folder) is None
    assert newest_path(folder) is None


def flip_byte(path, index):
    data = bytearray(path.read_bytes())
    data[index] ^= 1
    path.write_bytes(bytes(data))


DAMAGES = {
    "flipped tensors": lambda stem: flip_byte(stem.with_suffix(".safetensors"), -3),
    "flipped header": lambda stem: flip_byte(stem.with_suffix(".safetensors"), 0),
    "truncated tensors": lambda stem: stem.with_suffix(".safetensors").write_bytes(
        stem.with_suffix(".safetensors").read_bytes()[:-1]
    ),
    "empty tensors": lambda stem: stem.with_suffix(".safetensors").write_bytes(b""),
    "missing tensors": lambda stem: stem.with_suffix(".safetensors").unlink(),
    "swapped tensors": lambda stem: stem.with_suffix(".safetensors").write_bytes(
        stem.with_name("step-00000010.safetensors").read_bytes()
    ),
    "changed value": lambda stem: stem.with_suffix(".json").write_text(
        stem.with_suffix(".json").read_text().replace('"step": 20', '"step": 21')
    ),
    "truncated JSON": lambda stem: stem.with_suffix(".json").write_text(stem.with_suffix(".json").read_text()[:-9]),
    "empty JSON": lambda stem: stem.with_suffix(".json").write_text(""),
    "JSON of another kind": lambda stem: stem.with_suffix(".json").write_text("[1, 2]"),
    "JSON without checksums": lambda stem: stem.with_suffix(".json").write_text('{"values": {}}'),
    "JSON that is not text": lambda stem: stem.with_suffix(".json").write_bytes(b"\xff\xfe\x00"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(two_saved, damage, caplog):
    DAMAGES[damage](two_saved / "step-00000020")
    with caplog.at_level(logging.WARNING):
        assert_same(load_newest(two_saved), make_checkpoint(10))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(two_saved / "step-00000020") in record.getMessage()


def test_a_flip_of_any_byte_of_the_json_is_noticed_or_harmless(two_saved):
    path = two_saved / "step-00000020.json"
    whole = path.read_bytes()
    for index in range(len(whole)):
        flip_byte(path, index)
        found = load_newest(two_saved)
        assert found.values["step"] == 10 or found.values == make_checkpoint(20).values
        path.write_bytes(whole)
    assert_same(load_newest(two_saved), make_checkpoint(20))


def test_if_both_are_damaged_both_are_named_and_there_is_none(two_saved, caplog):
    for step in (10, 20):
        flip_byte(two_saved / f"step-000000{step}.safetensors", -1)
    assert load_newest(two_saved) is None
    for step, record in zip((20, 10), caplog.records, strict=True):
        assert f"step-000000{step} is damaged" in record.getMessage()


def test_tensors_whose_json_was_never_written_do_not_count(two_saved, caplog):
    (two_saved / "step-00000030.safetensors").write_bytes(b"half")
    assert_same(load_newest(two_saved), make_checkpoint(20))
    assert not caplog.records


def test_a_checkpoint_saved_again_replaces_a_damaged_one(two_saved):
    flip_byte(two_saved / "step-00000020.safetensors", -1)
    save_checkpoint(two_saved, make_checkpoint(20), step=20)
    assert_same(load_newest(two_saved), make_checkpoint(20))


@pytest.mark.parametrize(("objective", "phase"), [("reconstruct", "pretraining"), ("none", "training")])
def test_a_checkpoint_of_a_pretraining_whose_length_nobody_gave_is_called_one(objective, phase, tmp_path, caplog):
    values = {"position": {"phase_index": 0, "step": 3}}
    save_checkpoint(tmp_path / "checkpoints", Checkpoint({"network.w": torch.ones(1)}, values), step=3)
    with caplog.at_level("INFO"):
        stored = saved._read_checkpoint(tmp_path, unflatten({"data": "digits", "objective": objective}), None)
    assert stored.tensors == {"w": torch.ones(1)}
    assert f"update 3 of {phase}" in caplog.text
