"""The checksum of data stays what it was: run folders know their data by it, and refuse to go on with another."""

import pytest

from auxrnn.config import DataConfig
from auxrnn.data.datasets import find_key
from auxrnn.data.sources import find_sources
from own_data import write_arrays, write_csv, write_images, write_ts
from own_numbers import make_channels_first, make_folder, make_symbols, make_ucr, make_wide
from sounds import save_wav


def write_sounds(folder):
    for name in ("x/a.wav", "y/b.wav"):
        save_wav(folder / name)
    (folder / "t.csv").write_text("file,label\nx/a.wav,x\ny/b.wav,y\n")
    return folder


def key_of(name, **options):
    return find_key(find_sources(DataConfig(data=str(name), **options)), "contents")


@pytest.mark.parametrize(
    ("name", "options", "key"),
    [
        ("digits", {}, "5bc10f709ada41dd8b48a0e43a8b7b05"),
        ("digits", {"image_size": 7}, "a355bd1320785bd9690f75042d477b17"),
        ("adding", {}, "e82c83f1e212afb5e628ead8d25d3eb1"),
        ("recall", {"length": 500}, "658d04ed0edd11d38641968f6b437adb"),
        ("needle", {"length": 30}, "d041f7aa56237dc2670c7a0021e10462"),
    ],
)
def test_named_datasets_keep_their_checksum(name, options, key):
    assert key_of(name, **options) == key


@pytest.mark.parametrize(
    ("name", "options", "key"),
    [
        ("mnist", {}, "4ec175b7a3c937af9895b7b9401295aa"),
        ("mnist", {"image_size": 14}, "17a643de1bc2671264e24339b69c13a1"),
        ("pmnist", {}, "144af5ee8c02c0b75361ae235fae017a"),
        ("pmnist", {"permutation": "other"}, "f46278fb4fcf8660df3f14a1102c337c"),
    ],
)
def test_mnist_keeps_its_checksum(shared_mnist, name, options, key):
    assert key_of(name, data_dir=shared_mnist, **options) == key


@pytest.mark.parametrize(
    ("tokens", "key"),
    [("characters", "3d42e396222f1218e70e813edb1f6a01"), ("bytes", "ddb968ff5a4a9751d8268a90dfad9244")],
)
def test_dbpedia_keeps_its_checksum(shared_dbpedia, tokens, key):
    assert key_of("dbpedia", data_dir=shared_dbpedia, tokens=tokens) == key


@pytest.mark.parametrize(
    ("write", "options", "key"),
    [
        (lambda folder: write_csv(folder / "texts.csv"), {}, "6719057659f1ad741f454643a8ab3e7b"),
        (
            lambda folder: write_csv(folder / "texts.csv"),
            {"text_column": "text", "tokens": "bytes"},
            "8095d32f34014e3099268efbb5909214",
        ),
        (lambda folder: write_images(folder / "photos"), {}, "632bcaed52ba61aa17e0070481ec038f"),
        (
            lambda folder: write_images(folder / "photos"),
            {"image_size": 4, "enlarge_to": 50},
            "897fb0ca26e545fead879e9c0d012b6f",
        ),
        (lambda folder: write_arrays(folder / "data.npz"), {}, "06fc0c576feffe032baf02bd0aa0bde3"),
        (write_ts, {}, "91a9f93a8feb5d85a0fdccc34e8f7d40"),
        (lambda folder: make_wide(folder)[0][0], {}, "024d4ab208f512bcc68d1eec1adbd36d"),
        (lambda folder: make_ucr(folder)[0][0], {}, "86c30921700e45e01dbc169c73ca9f3d"),
        (lambda folder: make_folder(folder, ".npy")[0][0], {}, "5e08dd97d533678683e468f17a70f808"),
        (lambda folder: make_symbols(folder)[0][0], {"tokens": "integers"}, "bb0f42ab883cc067e2ce49565e914ebf"),
        (
            lambda folder: make_channels_first(folder)[0][0],
            {"channels_first": True},
            "442f8b09e420d411f4f68050c07783d4",
        ),
        (write_sounds, {}, "4d8664480a3fe7bdd6a82523f9707e96"),
        (
            write_sounds,
            {"sample_rate": 4000, "label_pattern": "{label}"},
            "07dc4c271602c9c64d34e38d18f67994",
        ),
        (lambda folder: write_sounds(folder) / "t.csv", {}, "5963b92f227781d735065c78a6dbabba"),
    ],
    ids=[
        "table", "table with options", "images", "images with options", "arrays", "series", "table of numbers",
        "tables of numbers by part", "folder of files", "symbols", "channels first", "audio", "audio with options",
        "table of audio",
    ],
)  # fmt: skip
def test_own_files_keep_their_checksum(tmp_path, write, options, key):
    assert key_of(write(tmp_path), **options) == key
