"""Decoded data is kept once, whole or not at all, and mapped from then on."""

import json
import logging
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auxrnn.config import DataConfig
from auxrnn.data import datasets
from auxrnn.data.datasets import Table, load_sources
from auxrnn.data.examples import Example, Source, Understood
from auxrnn.data.folders import PICTURE_SUFFIXES, find_files
from auxrnn.data.formats import SeriesFormat, TextFormat
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers.image_folder import ImageOptions, image_folder_source
from auxrnn.data.readers.table import TableOptions, table_source
from auxrnn.data.sequences import Encoding, Flat, Split
from auxrnn.data.sources import find_source
from auxrnn.errors import RunError, UsageError
from auxrnn.files import checksum_files, describe_bytes, find_appearance
from benchmarks.synthetic_data import DataSizes, make_images, make_texts
from own_data import write_csv, write_images

# Processes of our own that begin with what is imported here: a fresh one would take seconds to import torch. Newer
# Pythons warn where a process with threads does that; these children need none of them.
FORK = multiprocessing.get_context("fork")
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
LOAD_TWICE = """
# Loads the data of each path in two processes, one after the other, and prints how much memory of its own each took.
import json, os, sys, time
from pathlib import Path
import psutil
from auxrnn.data.datasets import load_sources
from auxrnn.data.sources import find_source
from auxrnn.config import DataConfig

def load(path):
    columns = {"text_column": "2+3", "label_column": "1"} if "texts" in path else {}
    load_sources([find_source(Path(path), DataConfig(data=path, **columns))])

def measure(path):
    child = os.fork()
    if not child:
        load(path)
        os._exit(0)
    peak = before = anonymous_bytes(os.getpid())
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        peak = max(peak, anonymous_bytes(child))
        time.sleep(0.002)
    assert ended[1] == 0
    return peak - before

def anonymous_bytes(pid):
    memory = psutil.Process(pid).memory_info()
    return memory.rss - memory.shared

print(json.dumps([[measure(path) for _ in range(2)] for path in sys.argv[1:]]))
"""
CODE_POINTS = st.integers(1, 0x10FFFF).filter(lambda code: not 0xD800 <= code <= 0xDFFF)


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    """A cache of the test's own, not made yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("AUXRNN_CACHE_DIR", str(folder))
    return folder


def entries(root):
    """The whole entries of a cache."""
    return [path for path in root.iterdir() if path.is_dir() and (path / "facts.json").exists()]


def leftovers(root):
    """What lies in a cache beside whole entries and what is remembered of checksums."""
    known = {"checksums", *(path.name for path in entries(root))}
    return sorted(path.name for path in root.iterdir() if path.name not in known)


def texts_of(loaded):
    flat = loaded.flat
    stretches = zip(flat.begin_N1[:-1], flat.begin_N1[1:], strict=True)
    return ["".join(map(chr, flat.value_K[begin:end])) for begin, end in stretches]


def table_of(path, **options):
    return [table_source(str(path), path, TableOptions("text", "label", **options))]


def folder_of(path, image_size=None):
    return [image_folder_source(str(path), path, ImageOptions(image_size))]


def made_source(file, read_examples, *, num_bytes=1000, form=TextFormat()):  # noqa: B008 - a plain value
    """A source of one file whose examples a test makes up."""

    def read(problems, like):
        return Understood("made up", form, read_examples(), None, num_bytes)

    return [Source("made up", [file], {"reader": "made up"}, read)]


def examples_of(texts):
    for number, text in enumerate(texts):
        value_T = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        yield Example(value_T, "ab"[number % 2], f"text {number}")


def in_processes(*targets):
    """Run functions in processes of their own, all at once, to their end."""
    processes = [FORK.Process(target=target) for target in targets]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(processes)


@settings(max_examples=40)
@given(texts=st.lists(st.text(CODE_POINTS.map(chr), min_size=1, max_size=9), min_size=2, max_size=20))
def test_texts_come_back_as_they_were_in_as_few_bytes_as_they_need(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "file").write_text(repr(texts))
    loaded = load_sources(made_source(folder / "file", lambda: examples_of(texts)))
    assert texts_of(loaded) == texts
    assert loaded.table.label_N.tolist() == [number % 2 for number in range(len(texts))]
    largest = max(ord(character) for text in texts for character in text)
    assert loaded.flat.value_K.dtype == np.min_scalar_type(largest)


def test_many_texts_are_narrowed_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "BLOCK_VALUES", 64)
    texts = [chr(0x100 + number) * (number % 7 + 1) for number in range(200)]
    (tmp_path / "file").write_text("")
    loaded = load_sources(made_source(tmp_path / "file", lambda: examples_of(texts)))
    assert texts_of(loaded) == texts
    assert loaded.flat.value_K.dtype == np.uint16


@pytest.mark.parametrize("kind", ["table", "images"])
def test_a_second_start_reads_no_source_again(kind, tmp_path):
    path = write_csv(tmp_path / "texts.csv") if kind == "table" else write_images(tmp_path / "photos")
    open_sources = table_of if kind == "table" else folder_of
    first = load_sources(open_sources(path))
    second = load_sources([source._replace(read=None) for source in open_sources(path)])
    assert second.checksum == first.checksum
    assert second.facts == first.facts
    assert np.array_equal(second.flat.value_K, first.flat.value_K)
    assert all(np.array_equal(*pair) for pair in zip(second.table, first.table, strict=True))


def test_the_values_of_an_entry_are_mapped_and_cannot_be_changed(tmp_path):
    loaded = load_sources(table_of(write_csv(tmp_path / "texts.csv")))
    again = load_sources(table_of(tmp_path / "texts.csv"))
    for flat in (loaded.flat, again.flat):
        assert isinstance(flat.value_K.base, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            flat.value_K[0] = 1


def test_what_files_hold_decides_and_not_when_they_were_written(tmp_path, root):
    path = write_csv(tmp_path / "texts.csv")
    first = load_sources(table_of(path))
    os.utime(path, ns=(0, 0))
    assert load_sources(table_of(path)).checksum == first.checksum
    assert len(entries(root)) == 1
    path.write_text(path.read_text().replace("cat", "cow"))
    changed = load_sources(table_of(path))
    assert (changed.facts.class_names, changed.checksum != first.checksum) == (("cow", "dog"), True)
    assert len(entries(root)) == 2


def test_other_settings_are_another_entry(tmp_path, root):
    path = write_csv(tmp_path / "texts.csv")
    assert load_sources(table_of(path)).checksum != load_sources(table_of(path, is_lowercase=True)).checksum
    sources = table_of(path)
    moved = [sources[0]._replace(part="train")]
    assert datasets.find_key(sources, "") != datasets.find_key(moved, "")


def test_only_the_image_size_that_is_asked_for_is_kept(tmp_path, root):
    folder = write_images(tmp_path / "photos", num_rows=12, size=(40, 30), mode="RGB")
    loaded = load_sources(folder_of(folder, 8))
    assert loaded.flat.value_K.shape == (12 * 8 * 8, 3)
    (entry,) = entries(root)
    assert (entry / "values.bin").stat().st_size == 12 * 8 * 8 * 3
    assert sum(path.stat().st_size for path in entry.iterdir()) < 12 * 8 * 8 * 3 + 4096
    load_sources(folder_of(folder, 5))
    assert sorted((path / "values.bin").stat().st_size for path in entries(root)) == [12 * 5 * 5 * 3, 12 * 8 * 8 * 3]


def test_the_space_is_said_before_the_first_example_is_read(tmp_path, root, caplog):
    said = []

    def read_examples():
        said.extend(caplog.messages)
        yield from examples_of(["a", "b"])

    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.INFO):
        load_sources(made_source(tmp_path / "file", read_examples, num_bytes=7_372_800_000))
    assert said == [f"reading made up; the decoded data takes up to 7.4 GB in {root}"]
    caplog.clear()
    load_sources(made_source(tmp_path / "file", read_examples, num_bytes=7_372_800_000))
    assert caplog.messages == []


def test_the_space_of_all_sources_is_counted(tmp_path, root, caplog):
    write_csv(tmp_path / "texts.csv")
    more = tmp_path / "more.txt"
    more.write_text("abc\n" * 1000)
    sources = table_of(tmp_path / "texts.csv")
    sources.append(find_source(more, DataConfig(data=str(more)), has_labels=False)._replace(part="unlabeled"))
    with caplog.at_level(logging.INFO):
        loaded = load_sources(sources)
    assert (loaded.table.part_N == 3).sum() == 1000
    num_bytes = 4 * (4000 + (tmp_path / "texts.csv").stat().st_size)
    assert caplog.messages[0].endswith(f"takes up to {describe_bytes(num_bytes)} in {root}")


def test_too_little_space_is_one_sentence_before_anything_is_read(tmp_path, root, monkeypatch, assert_one_sentence):
    def read_examples():
        raise AssertionError("nothing may be read")
        yield

    monkeypatch.setattr(datasets.shutil, "disk_usage", lambda _folder: SimpleNamespace(free=7_000_000_000))
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError) as error:
        load_sources(made_source(tmp_path / "file", read_examples, num_bytes=7_372_800_000))
    assert_one_sentence(
        error, "made up needs 7.4 GB and a reserve of 134.2 MB in", "where 7.0 GB are free", "AUXRNN_CACHE_DIR"
    )
    assert entries(root) == []
    assert leftovers(root) == []


@pytest.mark.slow
def test_memory_for_reading_and_opening_does_not_grow_with_the_data(tmp_path):
    sizes = [
        DataSizes(num_texts=2_500, mean_characters=500, num_images=240, image_size=64),
        DataSizes(num_texts=12_500, mean_characters=500, num_images=1_240, image_size=64),
    ]
    folders = [(tmp_path / f"texts-{number}", tmp_path / f"images-{number}") for number in range(2)]
    for chosen, (texts, images) in zip(sizes, folders, strict=True):
        make_texts(texts, chosen)
        make_images(images, chosen)
    paths = [path for pair in folders for path in pair]
    done = subprocess.run([sys.executable, "-c", LOAD_TWICE, *paths], capture_output=True, text=True, check=True)
    texts, images, more_texts, more_images = json.loads(done.stdout)
    # The texts that the second has more take 20 MB as they are read and 10 MB as they are kept, the images 12 MB.
    for number in range(2):
        assert more_texts[number] - texts[number] < 6_000_000
        assert more_images[number] - images[number] < 6_000_000


def test_processes_that_start_at_once_read_once_and_all_get_the_same_whole_entry(tmp_path, root):
    (tmp_path / "file").write_text("")
    texts = [f"text {number}" * 50 for number in range(300)]
    together = FORK.Barrier(4)

    def read_examples():
        (tmp_path / f"read by {os.getpid()}").write_text("")
        yield from examples_of(texts)

    def start():
        together.wait(30)
        assert texts_of(load_sources(made_source(tmp_path / "file", read_examples))) == texts

    in_processes(*[start] * 4)
    assert len(list(tmp_path.glob("read by *"))) == 1
    assert len(entries(root)) == 1
    assert leftovers(root) == []


def kill_while_it_reads(file, *, waiting=0):
    """Start a process that reads and gets stuck with half of it on the disk, perhaps others that wait for it; kill it.

    Gives what the other processes are, and half of what all of them would read.
    """
    is_stuck, half = FORK.Event(), ["stuck " * 100] * 3_000

    def read_and_stick():
        yield from examples_of(half)
        is_stuck.set()
        FORK.Event().wait(60)

    stuck = FORK.Process(target=lambda: load_sources(made_source(file, read_and_stick)))
    stuck.start()
    assert is_stuck.wait(30)

    def read_well():
        assert texts_of(load_sources(made_source(file, lambda: examples_of(["good", "better"])))) == ["good", "better"]

    others = [FORK.Process(target=read_well) for _ in range(waiting)]
    for process in others:
        process.start()
    stuck.kill()
    stuck.join(30)
    return others


def test_a_process_that_is_killed_while_it_reads_leaves_nothing_that_a_later_one_trips_over(tmp_path, root):
    (tmp_path / "file").write_text("")
    kill_while_it_reads(tmp_path / "file")
    assert entries(root) == []
    assert any((path / "values.bin").stat().st_size > 1_000_000 for path in root.glob(".*"))
    loaded = load_sources(made_source(tmp_path / "file", lambda: examples_of(["good", "better"])))
    assert texts_of(loaded) == ["good", "better"]
    assert leftovers(root) == []


def test_who_waits_for_a_process_that_is_killed_goes_on_in_its_place(tmp_path, root):
    (tmp_path / "file").write_text("")
    waiting = kill_while_it_reads(tmp_path / "file", waiting=2)
    for process in waiting:
        process.join(60)
    assert [process.exitcode for process in waiting] == [0, 0]
    assert len(entries(root)) == 1
    assert leftovers(root) == []


@pytest.mark.parametrize("mistake", [RunError("wrong; mend it"), KeyboardInterrupt(), OSError(28, "No space left")])
def test_nothing_is_left_of_an_entry_that_could_not_be_made(mistake, tmp_path, root):
    def read_examples():
        yield from examples_of(["a", "b"])
        raise mistake

    (tmp_path / "file").write_text("")
    with pytest.raises((RunError, KeyboardInterrupt)) as error:
        load_sources(made_source(tmp_path / "file", read_examples))
    if isinstance(mistake, OSError):
        cure = "free some space there or let AUXRNN_CACHE_DIR name another folder"
        assert str(error.value) == f"cannot write {root} (No space left); {cure}"
    assert leftovers(root) == []
    assert texts_of(load_sources(made_source(tmp_path / "file", lambda: examples_of(["a", "b"])))) == ["a", "b"]


def test_files_that_change_while_they_are_read_are_not_kept(tmp_path, root, assert_one_sentence):
    file = tmp_path / "file"
    file.write_text("before")

    def read_examples():
        yield from examples_of(["a", "b"])
        file.write_text("afterwards")

    with pytest.raises(RunError) as error:
        load_sources(made_source(file, read_examples))
    assert_one_sentence(error, "made up changed while it was read; run again")
    assert entries(root) == []


def test_files_that_change_between_their_checksum_and_their_reading_are_not_kept(tmp_path, root, monkeypatch):
    file = tmp_path / "file"
    file.write_text("before")

    def find_and_change(files, **more):
        found = checksum_files(files, **more)
        file.write_text("afterwards")
        return found

    monkeypatch.setattr(datasets, "checksum_files", find_and_change)
    with pytest.raises(RunError, match="changed while it was read"):
        load_sources(made_source(file, lambda: examples_of(["a", "b"])))
    assert entries(root) == []


@pytest.mark.parametrize(
    "name", ["sums.json", "facts.json", "values.bin", *(f"{field}.npy" for field in Table._fields)]
)
@pytest.mark.parametrize("damage", ["gone", "empty", "half", "one bit"])
def test_a_damaged_entry_is_named_and_made_anew(name, damage, tmp_path, root, caplog):
    first = load_sources(table_of(write_csv(tmp_path / "texts.csv")))
    (entry,) = entries(root)
    whole = {path.name: path.read_bytes() for path in entry.iterdir()}
    damage_file(entry / name, damage)
    again = load_sources(table_of(tmp_path / "texts.csv"))
    assert f"{entry} is damaged" in caplog.text
    assert len(caplog.records) == 1
    assert {path.name: path.read_bytes() for path in entry.iterdir()} == whole
    assert leftovers(root) == []
    assert texts_of(again) == texts_of(first)
    assert again.checksum == first.checksum


def damage_file(path, damage):
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "one bit":
        content[-1] ^= 1
    if damage != "gone":
        path.write_bytes({"empty": b"", "half": content[: len(content) // 2], "one bit": content}[damage])


def test_a_remembered_checksum_that_is_damaged_is_computed_again(tmp_path, root):
    first = load_sources(table_of(write_csv(tmp_path / "texts.csv")))
    for path in (root / "checksums").iterdir():
        damage_file(path, "one bit")
    assert load_sources(table_of(tmp_path / "texts.csv")).checksum == first.checksum
    assert len(entries(root)) == 1


def test_a_file_that_was_changed_with_equal_size_and_time_is_read_again(tmp_path):
    path = write_csv(tmp_path / "texts.csv")
    first, status = load_sources(table_of(path)), path.stat()
    path.write_text(path.read_text().swapcase())
    path.write_text("text,label" + path.read_text()[len("text,label") :])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert load_sources(table_of(path)).checksum != first.checksum


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, root):
    path = write_csv(tmp_path / "texts.csv")
    first = load_sources(table_of(path))
    # It was killed while it wrote the checksum, and after the entry was there.
    known = root / "checksums" / find_appearance([path])
    known.rename(known.with_name(f".{known.name}.01234567.aside"))
    (root / f"{first.checksum}.lock").touch()
    (known.with_suffix(".lock")).touch()
    load_sources(table_of(path))
    assert leftovers(root) == []
    assert all(len(path.name) == len(known.name) for path in (root / "checksums").iterdir())
    # Or after it wrote the checksum.
    (known.with_suffix(".lock")).touch()
    load_sources(table_of(path))
    assert not known.with_suffix(".lock").exists()


def test_a_cache_that_cannot_be_made_is_one_sentence(tmp_path, root, assert_one_sentence):
    root.write_text("a file where a folder should be")
    with pytest.raises(RunError) as error:
        load_sources(table_of(write_csv(tmp_path / "texts.csv")))
    assert_one_sentence(error, root)


def test_a_file_that_is_gone_is_one_sentence(tmp_path, assert_one_sentence):
    sources = table_of(write_csv(tmp_path / "texts.csv"))
    (tmp_path / "texts.csv").unlink()
    with pytest.raises(RunError) as error:
        load_sources(sources)
    assert_one_sentence(error, tmp_path / "texts.csv", "check that it is there")


def test_a_test_split_is_not_given_twice(tmp_path):
    write_images(tmp_path / "photos", parts=("train", "test"))
    sources = [*folder_of(tmp_path / "photos"), folder_of(tmp_path / "photos")[0]._replace(part="test")]
    with pytest.raises(UsageError, match="has a test split of its own; remove --test-data"):
        load_sources(sources)


def test_a_checksum_depends_on_contents_and_names_below_the_folder_alone(tmp_path):
    def write(folder, **contents):
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        return [folder / name for name in contents]

    first = checksum_files(write(tmp_path / "first", a="1", b="2"))
    assert checksum_files(write(tmp_path / "second", a="1", b="2")) == first
    assert checksum_files(write(tmp_path / "third", a="2", b="1")) != first
    assert checksum_files(write(tmp_path / "fourth", a="1", c="2")) != first


def test_files_look_the_same_from_everywhere(tmp_path, monkeypatch):
    write_images(tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    both = (Path("photos"), tmp_path / "photos")
    relative, absolute = (find_files(folder, PICTURE_SUFFIXES).paths() for folder in both)
    assert relative == [path.relative_to(tmp_path) for path in absolute]
    assert find_appearance(relative) == find_appearance(absolute) != find_appearance(absolute[:-1])


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    max_length=st.none() | st.integers(1, 9),
    data=st.data(),
)
def test_going_through_a_split_gives_all_that_is_read_of_it(lengths, max_length, data):
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=40))
    begins = np.cumsum([0, *lengths])
    flat = Flat(np.arange(begins[-1]), begins)
    row_N = np.array(rows, dtype=np.int64)
    split = Split(flat, row_N, np.zeros_like(row_N), Encoding(lambda value: value, max_length))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("auxrnn.data.sequences.BLOCK_STEPS", 4)
        blocks = list(split.values())
    wanted = [flat.value_K[begins[row] : begins[row + 1]][:max_length].tolist() for row in rows]
    assert [value for block in blocks for value in block.tolist()] == [value for row in wanted for value in row]
    assert all(4 <= len(block) <= 7 for block in blocks[:-1])


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_vectors_come_back_with_their_features(dtype, tmp_path):
    rng = np.random.default_rng(0)
    values = [rng.integers(0, 200, (length, 3)).astype(dtype) for length in (4, 4, 2)]
    form = ImageFormat(2, 2, 3) if dtype == np.uint8 else SeriesFormat(3)
    (tmp_path / "file").write_text("")

    def read_examples():
        for number, value_TD in enumerate(values):
            yield Example(value_TD, "aba"[number], f"example {number}")

    for _ in range(2):
        loaded = load_sources(made_source(tmp_path / "file", read_examples, form=form))
        assert loaded.facts.format == form
        assert np.array_equal(loaded.flat.value_K, np.concatenate(values))
        assert loaded.flat.begin_N1.tolist() == [0, 4, 8, 10]
