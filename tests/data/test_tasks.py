"""Made-up tasks of memory: each text has the class that reading it by hand gives, and all have the same texts."""

import hashlib
import itertools
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from auxrnn.config import DataConfig
from auxrnn.data import datasets
from auxrnn.data.datasets import PARTS
from auxrnn.data.synthetic import NEEDLE
from auxrnn.data.tasks import TASKS, make_examples
from auxrnn.errors import UsageError

DIGESTS = {
    "adding": "9400824ab56872705b7fa2c7f441c165f590fa48066af6e42598550fb514ac2b",
    "recall": "3a4959f2e084380aebc82aa3d98d88f35e033ed31f0c88a37a1e92e1f4550667",
    "needle": "edd29ed19109154c12748e03e2c1bfead6541750916f155eea04f239e0b04a54",
}
FIND_DIGESTS = """
from test_tasks import find_digest
print(find_digest("recall"))
"""


def find_digest(name):
    dataset = load(name, 20)
    content = dataset.flat.value_K.tobytes() + dataset.table.label_N.astype("<i8").tobytes()
    return hashlib.sha256(content).hexdigest()


def read_adding(text):
    """Give the class, and the places it hangs on, of a text read character by character."""
    marked = [(place, "abcdefghij".index(letter)) for place, letter in enumerate(text) if not letter.isdigit()]
    (first, _), (second, _) = marked
    return str(sum(digit for _, digit in marked)), (first, second)


def read_recall(text):
    before, after = text.split("?")
    assert set(before + after) <= set("abcdefgh")
    return after[0], (len(before),)


def read_needle(text):
    ((place, key),) = [(place, letter) for place, letter in enumerate(text) if not letter.islower()]
    assert key in "ABCDEFGHIJ"
    return key, (place,)


READ = {"adding": read_adding, "recall": read_recall, "needle": read_needle}


def allowed_places(name, length):
    """Give, for each character that the class hangs on, every place where it may stand."""
    half = length // 2
    return {
        "adding": [range(half), range(half, length)],
        "recall": [range(half)],
        "needle": [range(length // 10)],
    }[name]


def texts_of(dataset, part):
    rows = np.flatnonzero(dataset.table.part_N == PARTS.index(part))
    begin_N1, value_K = dataset.flat.begin_N1, dataset.flat.value_K
    return [bytes(value_K[begin_N1[row] : begin_N1[row + 1]]).decode() for row in rows]


def load(name, length=40, **asked):
    return datasets.load(DataConfig(data=name, length=length, **asked))


def assert_about(counts, expected):
    """Each count is within five standard deviations of what chance gives; the texts never change, nor does this."""
    deviation = np.sqrt(np.asarray(expected, dtype=float))
    assert np.all(np.abs(np.asarray(counts) - expected) < 5 * deviation), (counts, expected)


@pytest.mark.parametrize("length", [11, 40])
@pytest.mark.parametrize("name", TASKS)
def test_every_text_has_the_class_that_reading_it_gives_and_hangs_on_every_place_allowed(name, length):
    dataset = load(name, length)
    texts = texts_of(dataset, "train") + texts_of(dataset, "test")
    assert {len(text) for text in texts} == {length}
    classes, places = zip(*map(READ[name], texts), strict=True)
    assert list(classes) == [dataset.facts.class_names[label] for label in dataset.table.label_N]
    for found, allowed in zip(zip(*places, strict=True), allowed_places(name, length), strict=True):
        counts = np.bincount(found, minlength=length)
        assert sorted(set(found)) == list(allowed)
        assert_about(counts[allowed.start : allowed.stop], len(texts) / len(allowed))


@pytest.mark.parametrize("name", TASKS)
def test_classes_come_as_often_as_the_task_makes_them(name):
    dataset = load(name)
    is_test_N = dataset.table.part_N == PARTS.index("test")
    share_C = np.ones(len(dataset.facts.class_names))
    if name == "adding":
        share_C = np.minimum(np.arange(1, 20), np.arange(19, 0, -1))
    for label_N, size in ((dataset.table.label_N[~is_test_N], 20_000), (dataset.table.label_N[is_test_N], 2_000)):
        assert len(label_N) == size
        assert_about(np.bincount(label_N, minlength=len(share_C)), size * share_C / share_C.sum())


@pytest.mark.parametrize(("name", "filler"), [("adding", 10), ("recall", 8), ("needle", 26)])
def test_all_else_is_noise_without_a_preference(name, filler):
    symbols = "".join(texts_of(load(name), "train"))
    counts = [symbols.count(symbol) for symbol in TASKS[name].alphabet[:filler]]
    assert_about(counts, sum(counts) / filler)


@pytest.mark.parametrize("name", TASKS)
def test_no_text_is_tested_on_that_was_trained_on_and_none_comes_twice(name):
    dataset = load(name)
    texts = texts_of(dataset, "train") + texts_of(dataset, "test")
    assert len(texts) == len(set(texts)) == 22_000


def test_the_data_is_the_same_in_every_process_and_on_every_machine(tmp_path):
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    changed = {"AUXRNN_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": "7", "PYTHONPATH": path}
    command = [sys.executable, "-c", FIND_DIGESTS]
    done = subprocess.run(command, env=os.environ | changed, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == DIGESTS["recall"]
    assert {name: find_digest(name) for name in DIGESTS} == DIGESTS


def test_another_length_is_other_data_and_none_is_200_steps():
    short, long = texts_of(load("recall", 20), "train"), texts_of(load("recall", 40), "train")
    assert not {text[:20] for text in long} & set(short)
    plain = datasets.load(DataConfig(data="recall"))
    assert plain.checksum == load("recall", 200).checksum != load("recall", 40).checksum
    assert {len(text) for text in texts_of(plain, "test")} == {200}


def test_texts_are_made_a_few_at_a_time():
    length, num_read = 10_000, 500
    tracemalloc.start()
    try:
        for _ in itertools.islice(make_examples(NEEDLE, length, np.uint8), num_read):
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < length * num_read / 2


def test_texts_are_kept_on_the_disk_a_byte_a_step(tmp_path, monkeypatch):
    monkeypatch.setenv("AUXRNN_CACHE_DIR", str(tmp_path))
    load("recall", 12)
    (kept,) = tmp_path.glob("*/values.bin")
    assert kept.stat().st_size == 22_000 * 12


def test_characters_of_a_users_texts_beside_a_task_stay_what_they_are(tmp_path):
    (tmp_path / "more.txt").write_text("ab\N{LATIN SMALL LETTER S WITH CARON}\n", encoding="utf-8")
    dataset = load("recall", 12, unlabeled=tmp_path / "more.txt")
    assert dataset.flat.value_K[-3:].tolist() == [ord("a"), ord("b"), 0x161]
    assert dataset.table.part_N[-1] == PARTS.index("unlabeled")
    assert "".join(map(chr, dataset.flat.value_K[:12])) == texts_of(load("recall", 12), "train")[0]


@pytest.mark.parametrize("name", TASKS)
def test_the_alphabet_is_the_tasks_own(name):
    dataset = load(name)
    alphabet = dataset.facts.format.alphabet
    assert set("".join(texts_of(dataset, "train"))) == set(alphabet)
    assert len(alphabet) == len(set(alphabet)) == {"adding": 20, "recall": 9}.get(name, 36)


@pytest.mark.parametrize("length", [-1, 0, 9, 1_000_001])
def test_a_length_out_of_range_is_refused(assert_one_sentence, length):
    with pytest.raises(UsageError) as error:
        load("adding", length)
    assert_one_sentence(error, f"length is {length}", "for adding", "from 10 to 1,000,000")


@pytest.mark.parametrize("name", ["digits", "mnist", "pmnist", "cifar10", "stanford_dogs", "dbpedia"])
def test_a_length_means_nothing_for_other_datasets(assert_one_sentence, tmp_path, name):
    with pytest.raises(UsageError) as error:
        load(name, 500, data_dir=tmp_path)
    assert_one_sentence(error, f"length has no effect on {name}; remove it")


def test_a_length_means_nothing_for_a_users_files(assert_one_sentence, tmp_path):
    (tmp_path / "own.csv").write_text("text,label\na,b\nc,d\n")
    with pytest.raises(UsageError) as error:
        load(str(tmp_path / "own.csv"), 500)
    assert_one_sentence(error, "length has no effect on a table of texts")


@pytest.mark.parametrize("asked", [{"image_size": 9}, {"tokens": "bytes"}, {"text_column": "a"}, {"enlarge_to": 9}])
def test_what_means_nothing_for_a_task_is_refused(assert_one_sentence, asked):
    with pytest.raises(UsageError) as error:
        load("needle", **asked)
    assert_one_sentence(error, *asked, "has no effect on needle")
