"""The benchmark of data through the command line at a size that takes seconds, and its pieces one by one."""

import csv
import io
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from auxrnn.bench import data_sizes, data_suite, made_data
from auxrnn.bench.child import Watched, anonymous_bytes, watch_child
from auxrnn.bench.data_kinds import KINDS
from auxrnn.bench.data_results import DataResults, KindResults, PhaseCost, Start, make_figures, to_json
from auxrnn.bench.data_sizes import FULL, QUICK, DataSizes
from auxrnn.bench.data_suite import make_data_plan, to_start
from auxrnn.bench.data_tables import make_data_table
from auxrnn.bench.made_data import draw_lengths, make_images, make_texts
from auxrnn.data.batches import draw_batches
from auxrnn.errors import RunError
from auxrnn.plain_config import unflatten
from auxrnn.structs import Draws
from command import call, files_below

TINY = DataSizes(
    num_texts=60,
    mean_characters=40,
    num_text_classes=3,
    num_images=24,
    image_size=8,
    num_image_classes=4,
    batch_size=4,
    hidden_size=8,
    second_starts=1,
    num_batches=2,
)
MEBIBYTE = 2**20
HOLD_MEMORY = """
import mmap, sys, time
held = b"1" * (60 * 2**20)
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
    total = sum(mapped[place] for place in range(0, len(mapped), 4096))
    time.sleep(0.2)
del held
print('{"total": %d}' % total)
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A benchmark that has run to its end, and what it said."""
    folder = tmp_path_factory.mktemp("data") / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_sizes, "QUICK", TINY)
        result = call("bench", "--data", "--quick", "--json", "--out", folder)
    return folder, result


def make_results():
    """Measurements made up by hand: texts are within all limits, images within none."""
    good, better = Start(4.5, 2.0, 3.0, 500_000_000), Start(3.0, 2.5, 2.75, 700_000_000)
    bad = Start(6.0, 2.0, 5.5, 2_000_000_000)
    cheap, dear = PhaseCost("pretrain", 0.01, 0.005, 1.0, 0.05), PhaseCost("joint", 0.15, 0.05, 2.0, 0.25)
    texts = KindResults(good, [good, better], [cheap], source_bytes=2 * 10**8, cached_bytes=4 * 10**8)
    images = KindResults(bad, [bad], [cheap, dear], source_bytes=10**9, cached_bytes=7 * 10**9)
    return DataResults(FULL, {"texts": texts, "images": images})


@pytest.mark.slow
def test_the_command_prints_one_object_with_all_figures_and_keeps_nothing_else(finished):
    folder, result = finished
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found == json.loads((folder / "data.json").read_text())
    assert files_below(folder) == ["data.json"]
    assert list(found)[: len(make_figures(make_results()))] == list(make_figures(make_results()))
    assert found["sizes"]["num_images"] == 24
    assert found["environment"]["lstm"]


@pytest.mark.slow
def test_what_is_found_at_a_tiny_size_makes_sense(finished):
    found = json.loads(finished[1].out)
    for kind in ("texts", "images"):
        values = found["kinds"][kind]
        for start in (values["first"], *values["second_starts"]):
            assert 0 < start["import_seconds"] < start["seconds"]
            assert 50 * MEBIBYTE < start["peak_bytes"] < 1000 * MEBIBYTE
        assert [cost["phase"] for cost in values["phases"]] == ["pretrain", "joint"]
        assert all(0 < cost["batch_seconds"] < cost["step_seconds"] for cost in values["phases"])
    # Pixels as bytes, and what is known of each image beside them.
    assert 24 * 8 * 8 * 3 < found["kinds"]["images"]["cached_bytes"] < 24 * 8 * 8 * 3 + 4096
    assert found["images_padded_percent"] == 0 < found["texts_padded_percent"] < 100


@pytest.mark.slow
def test_the_space_is_said_before_anything_is_made(finished):
    folder, result = finished
    lines = result.err.splitlines()
    assert lines[0] == f"making data up in {folder}: up to 135.4 MB, removed at the end"
    assert lines[1].startswith("making texts up; about")


def test_too_little_disk_is_one_sentence_and_nothing_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(data_suite.shutil, "disk_usage", lambda _folder: SimpleNamespace(free=3 * 10**9))
    result = call("bench", "--data", "--out", tmp_path)
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"auxrnn: the data that is made up needs 9.6 GB in {tmp_path}, where 3.0 GB are free;"
        " free some space, choose another --out, or --quick for a tenth\n"
    )
    assert files_below(tmp_path) == []


def test_data_that_was_made_up_is_removed_also_when_measuring_fails(tmp_path, monkeypatch):
    def fail(*_words, **_more):
        assert files_below(tmp_path) != []
        raise RunError("no luck; try again")

    monkeypatch.setattr(data_suite, "watch_child", fail)
    with pytest.raises(RunError, match="no luck"):
        data_suite.run_data(tmp_path, sizes=TINY, console=Console(file=io.StringIO()))
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(("words", "chosen"), [([], FULL), (["--quick"], QUICK)])
def test_without_json_the_command_prints_a_table_and_a_limit_that_is_not_held_is_no_failure(
    words, chosen, monkeypatch, tmp_path
):
    asked = []
    record = data_suite.DataRecord(make_results(), {}, 100.0)
    monkeypatch.setattr(data_suite, "run_data", lambda folder, *, sizes, console: asked.append(sizes) or record)
    result = call("bench", "--data", *words, "--out", tmp_path)
    assert (result.code, asked) == (0, [chosen])
    assert result.out.startswith("560,000 texts of 300 characters, 150,000 images of 128x128")
    assert result.out.endswith(f"2 minutes; {tmp_path} holds data.json with all figures\n")


def test_the_table_shows_what_was_measured_its_limit_and_whether_it_is_held():
    file = io.StringIO()
    Console(file=file, width=80).print(make_data_table(make_results()))
    lines = [" ".join(line.split()) for line in file.getvalue().splitlines()]
    assert "texts: first start 4.50 s" in lines
    assert "texts: first start, memory 0.50 GB < 1 GB yes" in lines
    assert "texts: second start 3.00 s < 5 s yes" in lines
    assert "texts: a batch, of a training step 1.50 % < 3 % yes" in lines
    assert "images: second start 6.00 s < 5 s no" in lines
    assert "images: second start, memory 2.00 GB < 1 GB no" in lines
    assert "images: a batch 200.00 ms" in lines
    assert "images: a training step (joint) 2.00 s" in lines
    assert "images: a batch, of a training step 10.00 % < 3 % no" in lines
    assert "images: padding 25.00 % < 10 % no" in lines


def test_the_fastest_second_start_counts_and_the_most_memory_of_any():
    found = to_json(make_results())
    assert found["texts_second_start_seconds"] == 3.0
    assert found["texts_second_start_gigabytes"] == 0.7
    assert found["limits"]["images_batch_percent"] == 3.0
    assert found["kinds"]["images"]["phases"][1]["batch_share"] == pytest.approx(0.1)


def test_seconds_count_from_the_start_of_the_process_and_memory_to_its_first_batch():
    answer = {"begun": 12.0, "ready": 13.5, "processor_seconds": 3.0}
    looks = [(11.0, 5), (13.0, 7), (13.25, 6), (14.0, 9)]
    assert to_start(Watched(answer, 10.0, looks)) == Start(3.5, 2.0, 3.0, peak_bytes=7)


def test_the_peak_of_a_process_is_its_own_memory_without_mapped_files(tmp_path):
    (tmp_path / "hold_memory.py").write_text(HOLD_MEMORY)
    (tmp_path / "large").write_bytes(b"\1" * (100 * MEBIBYTE))
    environment = {"PYTHONPATH": str(tmp_path)}
    found = watch_child("hold_memory", [tmp_path / "large"], environment=environment, doing="memory was held")
    assert found.answer == {"total": 100 * 256}
    assert 60 * MEBIBYTE < found.peak_bytes(until=math.inf) < 100 * MEBIBYTE
    assert found.peak_bytes(until=found.started) < 60 * MEBIBYTE
    with pytest.raises(RunError, match=r"^a process failed \(FileNotFoundError.*\) while memory was held"):
        watch_child("hold_memory", [tmp_path / "none"], environment=environment, doing="memory was held")


def test_a_process_that_has_ended_holds_nothing():
    assert anonymous_bytes(2**22 + 1) == 0


def test_lengths_are_spread_as_those_of_dbpedia_and_pad_little():
    length_N = draw_lengths(50_000, mean=300, rng=Draws(0, "bench", 0).rng("texts"))
    assert length_N.mean() == pytest.approx(300, rel=0.01)
    shortest, middle, longest = np.quantile(length_N, [0.05, 0.5, 0.95])
    assert (shortest, middle, longest) == pytest.approx((80, 299, 510), rel=0.03)
    read_N = np.minimum(length_N, 1014)
    batches = draw_batches(read_N, batch_size=128, draws=Draws(0, "train", 0))
    padded = sum(len(batch) * int(read_N[batch].max()) for batch in batches)
    assert 0.9 * padded < read_N.sum() < padded


def test_made_up_texts_are_a_table_like_dbpedia_s(tmp_path):
    sizes = DataSizes(num_texts=2_000, num_text_classes=14)
    make_texts(tmp_path / "texts", sizes)
    assert files_below(tmp_path / "texts") == ["test.csv", "train.csv"]
    with (tmp_path / "texts" / "train.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    assert {int(label) for label, _, _ in rows} == set(range(1, 15))
    texts = [f"{title} {text}" for _, title, text in rows]
    assert len(set(texts)) == len(rows) == 2_000
    assert np.mean([len(text) for text in texts]) == pytest.approx(300, rel=0.05)
    assert sum(not character.isascii() for text in texts for character in text) / 600_000 == pytest.approx(
        0.006, rel=0.2
    )


def test_made_up_images_are_files_that_all_differ(tmp_path):
    sizes = DataSizes(num_images=700, image_size=16, num_image_classes=5)
    make_images(tmp_path / "images", sizes)
    paths = sorted((tmp_path / "images").glob("*/*.jpg"))
    assert len({path.read_bytes() for path in paths}) == len(paths) == 700
    assert len({path.parent for path in paths}) == 5
    shown = set()
    for path in paths:
        with Image.open(path) as image:
            assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (16, 16))
            shown.add(image.tobytes())
    assert len(shown) == made_data.NUM_PICTURES


@pytest.mark.slow
def test_the_space_that_is_said_is_enough_and_not_far_too_much(finished):
    kinds = json.loads(finished[1].out)["kinds"]
    for kind in KINDS:
        # Code points of texts have four bytes before they have two.
        cached = kinds[kind.name]["cached_bytes"] * (2 if kind.name == "texts" else 1)
        assert kinds[kind.name]["source_bytes"] + cached < kind.space(TINY) < 2 * MEBIBYTE
    assert 0 < KINDS[0].space(FULL) - FULL.num_texts * 300 * 5 < 0.2 * 10**9
    assert 1 * 10**9 < KINDS[1].space(FULL) - FULL.num_images * 128 * 128 * 3 < 3 * 10**9


def test_the_training_is_the_paper_s(tmp_path):
    texts, images = (unflatten(kind.configure(tmp_path / kind.name, FULL)) for kind in KINDS)
    for config in (texts, images):
        assert (config.loss.objective, config.model.hidden_size, config.schedule.batch_size) == (
            "reconstruct",
            128,
            128,
        )
    assert (texts.loss.supervised_window, texts.segments.segment_length, texts.data.max_length) == (100, 300, 1014)
    assert (images.loss.supervised_window, images.segments.segment_length, images.data.image_size) == (300, 600, 128)


def test_a_tenth_is_planned_for_less_time_and_classes_need_two_examples():
    assert sum(make_data_plan(QUICK).values()) < sum(make_data_plan(FULL).values()) < 600
    assert (FULL.num_texts, FULL.num_images) == (10 * QUICK.num_texts, 10 * QUICK.num_images)
    with pytest.raises(ValueError, match="too few examples; give each class at least two"):
        DataSizes(num_texts=20)
