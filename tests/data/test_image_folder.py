"""Folders of images: every layout, the order, crops, what is skipped, what is refused, and in one sentence each."""

import itertools
import os
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from auxrnn.data.examples import Problems
from auxrnn.data.folders import PICTURE_SUFFIXES, has_files
from auxrnn.data.formats import TextFormat
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers import image_folder
from auxrnn.data.readers.image_folder import ImageOptions, image_folder_source
from auxrnn.data.readers.pictures import resize
from auxrnn.errors import RunError, UsageError


def pixels_of(name, *, height=6, width=4, channels=3):
    """Make the pixels that belong to a name."""
    shape = (height, width) if channels == 1 else (height, width, channels)
    return np.random.default_rng(list(name.encode())).integers(0, 256, shape, dtype=np.uint8)


def save(folder, *names, **shape):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels_of(name, **shape)).save(path)
    return folder


def read(folder, *, problems=None, like=None, **options):
    problems = problems or Problems()
    return image_folder_source(str(folder), folder, ImageOptions(**options)).read(problems, like)


def found_in(folder, **options):
    return [(e.place.removeprefix(f"{folder}/"), e.label, e.part) for e in read(folder, **options).examples]


def test_the_first_level_is_the_class_however_deep_its_pictures_lie(tmp_path):
    save(tmp_path, "cats/b.png", "cats/a.PNG", "cats/far/off/c.png", "dogs/a.bmp")
    understood = read(tmp_path)
    assert found_in(tmp_path) == [
        ("cats/a.PNG", "cats", None),
        ("cats/b.png", "cats", None),
        ("cats/far/off/c.png", "cats", None),
        ("dogs/a.bmp", "dogs", None),
    ]
    for example in understood.examples:
        name = example.place.removeprefix(f"{tmp_path}/")
        assert example.value_T.dtype == np.uint8
        assert np.array_equal(example.value_T, pixels_of(name).reshape(24, 3))
    assert understood.format == ImageFormat(6, 4, 3)
    assert (understood.num_examples, understood.num_bytes) == (4, 4 * 6 * 4 * 3)
    assert understood.description == "folder of images, 4 images, 2 classes, 6x4 pixels, color"


@pytest.mark.parametrize("validation", ["val", "valid", "validation"])
def test_folders_above_the_classes_are_the_parts_training_first(tmp_path, validation):
    save(tmp_path, "test/b/1.png", "train/b/1.png", "train/a/1.png", f"{validation}/a/1.png", "unlabeled/x/1.png")
    save(tmp_path, "train/unlabeled/1.png", "train/a/test/2.png")
    assert found_in(tmp_path) == [
        ("train/a/1.png", "a", "train"),
        ("train/a/test/2.png", "a", "train"),
        ("train/b/1.png", "b", "train"),
        (f"{validation}/a/1.png", "a", "validation"),
        ("test/b/1.png", "b", "test"),
        ("train/unlabeled/1.png", None, "unlabeled"),
        ("unlabeled/x/1.png", None, "unlabeled"),
    ]


def test_a_class_called_unlabeled_has_no_label_and_one_called_train_may_be_a_class(tmp_path):
    save(tmp_path, "bus/1.png", "train/1.png", "unlabeled/1.png")
    assert found_in(tmp_path) == [
        ("bus/1.png", "bus", None),
        ("train/1.png", "train", None),
        ("unlabeled/1.png", None, "unlabeled"),
    ]


def test_hidden_names_and_other_files_are_passed_over_in_silence(tmp_path):
    save(tmp_path, "a/1.png", "b/1.png", "a/.hidden.png", ".git/1.png", "__MACOSX/a/1.png")
    for name in ("a/Thumbs.db", "a/labels.txt", "README.md", ".DS_Store"):
        (tmp_path / name).write_text("no picture")
    problems = Problems()
    assert [e.place for e in read(tmp_path, problems=problems).examples] == [
        str(tmp_path / "a/1.png"),
        str(tmp_path / "b/1.png"),
    ]
    assert problems.num_skipped == 0


def test_links_are_followed_and_loops_end(tmp_path):
    save(tmp_path / "away", "1.png")
    save(tmp_path / "data", "a/2.png", "b/3.png")
    (tmp_path / "data/a/1.png").symlink_to(tmp_path / "away/1.png")
    (tmp_path / "data/c").symlink_to(tmp_path / "away")
    for name, target in {"a/up": "..", "a/self": ".", "b/over": "../a", "a/over": "../b"}.items():
        (tmp_path / "data" / name).symlink_to(target)
    found = found_in(tmp_path / "data")
    assert {("a/1.png", "a", None), ("a/2.png", "a", None), ("b/3.png", "b", None), ("c/1.png", "c", None)} <= set(
        found
    )
    assert len(found) < 20


def test_without_labels_every_picture_counts_wherever_it_lies(tmp_path):
    save(tmp_path, "1.png", "a/2.png", "train/b/3.png")
    assert found_in(tmp_path, has_labels=False, enlarge_to=100) == [
        ("1.png", None, None),
        ("a/2.png", None, None),
        ("train/b/3.png", None, None),
    ]


def test_a_folder_of_images_is_told_from_others(tmp_path):
    save(tmp_path, "flat/1.png", "deep/a/b/1.jpg", ".hidden/a/1.png")
    (tmp_path / "texts/a").mkdir(parents=True)
    (tmp_path / "texts/a/1.txt").write_text("x")
    found = {
        name: has_files(tmp_path / name, PICTURE_SUFFIXES, in_folders=True)
        for name in ("flat", "deep", "texts", "absent")
    }
    assert found == {"flat": False, "deep": True, "texts": False, "absent": False}
    found = {name: has_files(tmp_path / name, PICTURE_SUFFIXES) for name in ("flat", "deep", "texts")}
    assert found == {"flat": True, "deep": True, "texts": False}


def test_the_source_names_all_files_and_all_that_changes_the_examples(tmp_path):
    save(tmp_path, "a/1.png", "b/1.png")
    (tmp_path / "a/lost.png").symlink_to("nowhere")
    source = image_folder_source("mine", tmp_path, ImageOptions(5, 10))
    assert source.name == "mine"
    assert list(source.files) == [tmp_path / "a/1.png", tmp_path / "b/1.png"]
    assert dict(source.options) == {
        "reader": "image_folder",
        "below": "",
        "image_size": 5,
        "enlarge_to": 10,
        "has_labels": True,
    }


def test_a_cache_is_named_by_the_folders_below_and_not_by_where_they_lie(tmp_path):
    for place in ("here", "there", "there/train"):
        save(tmp_path / place, "a/1.png", "b/1.png")
    (tmp_path / "there" / "a").rename(tmp_path / "gone")
    (tmp_path / "there" / "b").rename(tmp_path / "gone as well")
    here, there = (image_folder_source("mine", tmp_path / place, ImageOptions()) for place in ("here", "there"))
    assert (here.options["below"], there.options["below"]) == ("", "train")


def test_pictures_are_gray_if_all_are_and_have_the_asked_size(tmp_path):
    save(tmp_path, "a/1.png", "b/1.png", channels=1)
    assert read(tmp_path).format == ImageFormat(6, 4, 1)
    save(tmp_path, "b/2.png", height=9, width=30)
    understood = read(tmp_path, image_size=3)
    assert understood.format == ImageFormat(3, 3, 3, is_resized=True)
    gray, _, color = (example.value_T for example in understood.examples)
    assert (gray == gray[:, :1]).all()
    expected = resize(Image.fromarray(pixels_of("b/2.png", height=9, width=30)), (3, 3))
    assert np.array_equal(color, expected.reshape(9, 3))
    assert understood.description == "folder of images, 3 images, 2 classes, resized to 3x3 pixels, color"


def test_pictures_of_different_sizes_need_a_size(tmp_path, assert_one_sentence):
    save(tmp_path, "a/1.png", "a/2.png", "b/1.png")
    for width in range(5, 8):
        save(tmp_path, f"b/{width}.png", width=width)
    with pytest.raises(UsageError) as error:
        read(tmp_path)
    assert_one_sentence(error, tmp_path, "images have 4 different sizes, such as 4x6 and 5x6; give --image-size")


@pytest.mark.parametrize("image_size", [0, -1, 10_001])
def test_an_impossible_size_is_wrong_usage(tmp_path, assert_one_sentence, image_size):
    with pytest.raises(UsageError) as error:
        image_folder_source("x", save(tmp_path, "a/1.png"), ImageOptions(image_size))
    assert_one_sentence(error, image_size)


def test_broken_pictures_are_left_out_and_named(tmp_path):
    save(tmp_path, "a/1.png", "a/cut.png", "b/1.png")
    whole = (tmp_path / "a/cut.png").read_bytes()
    (tmp_path / "a/cut.png").write_bytes(whole[:-30])
    (tmp_path / "a/empty.png").write_bytes(b"")
    (tmp_path / "a/text.png").write_text("not a picture")
    (tmp_path / "a/lost.png").symlink_to("nowhere")
    (tmp_path / "a/self.png").symlink_to("self.png")
    os.mkfifo(tmp_path / "a/pipe.png")
    problems = Problems()
    examples = list(read(tmp_path, problems=problems).examples)
    assert [Path(example.place).name for example in examples] == ["1.png", "1.png"]
    names = ("lost", "pipe", "self", "empty", "text", "cut")
    assert [skipped.split(" ")[0] for skipped in problems.skipped] == [str(tmp_path / f"a/{n}.png") for n in names]
    assert all(" cannot be read as an image (it is " in skipped for skipped in problems.skipped)
    assert problems.num_skipped == 6


def test_pictures_beside_the_class_folders_are_left_out_and_named(tmp_path):
    save(tmp_path, "train/a/1.png", "train/b/1.png", "train/stray.png", "stray.png", "more/a/1.png")
    problems = Problems()
    assert len(list(read(tmp_path, problems=problems).examples)) == 2
    names = ("more/a/1.png", "stray.png", "train/stray.png")
    assert problems.skipped == [f"{tmp_path / name} lies in no class folder" for name in names]


def make_empty(folder):
    (folder / "empty/inner").mkdir(parents=True)
    return "empty has no images that can be read; add some or remove the folder"


def make_broken(folder):
    (folder / "bad").mkdir()
    (folder / "bad/1.png").write_bytes(b"")
    return "bad has no images that can be read; add some or remove the folder"


def make_cut(folder):
    save(folder, "bad/1.png")
    whole = (folder / "bad/1.png").read_bytes()
    (folder / "bad/1.png").write_bytes(whole[:-30])
    return "bad has no images that can be read; add some or remove the folder"


@pytest.mark.parametrize("make", [make_empty, make_broken, make_cut])
def test_a_class_folder_that_gives_nothing_is_refused(tmp_path, assert_one_sentence, make):
    save(tmp_path, "a/1.png", "b/1.png")
    part = make(tmp_path)
    with pytest.raises(RunError) as error:
        list(read(tmp_path).examples)
    assert_one_sentence(error, f"{tmp_path}/{part}")


def test_a_patient_reader_notes_all_that_is_wrong(tmp_path):
    save(tmp_path, "a/1.png", "b/1.png")
    parts = [make(tmp_path) for make in (make_empty, make_cut)]
    problems = Problems(is_patient=True)
    list(read(tmp_path, problems=problems).examples)
    assert problems.num_refused == 2
    assert sorted(problems.refused) == sorted(f"{tmp_path}/{part}" for part in parts)


@pytest.mark.parametrize("names", [["1.png"], ["unlabeled/1.png"], ["train/1.png", "test/1.png"]])
def test_a_folder_without_classes_is_told_the_layout(tmp_path, assert_one_sentence, names):
    save(tmp_path, *names)
    with pytest.raises(RunError) as error:
        read(tmp_path)
    assert_one_sentence(error, tmp_path, "has no class folders", "one sub-folder of images for each class")
    problems = Problems(is_patient=True)
    assert list(read(tmp_path, problems=problems).examples) == []
    assert problems.num_refused == 1


def test_a_folder_without_any_pictures_is_refused(tmp_path, assert_one_sentence):
    with pytest.raises(RunError) as error:
        list(read(tmp_path, has_labels=False).examples)
    assert_one_sentence(error, tmp_path, "has no images that can be read")


def test_a_closed_folder_is_refused(tmp_path, assert_one_sentence, monkeypatch):
    save(tmp_path, "a/1.png", "b/1.png")
    scan = os.scandir

    def scan_unless_closed(path):
        # Root may read every folder, so closing it would prove nothing there.
        if Path(path).name == "b":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scan_unless_closed)
    with pytest.raises(RunError) as error:
        read(tmp_path)
    assert_one_sentence(error, tmp_path / "b", "Permission denied")


def test_with_a_format_pictures_are_resized_if_it_resizes(tmp_path):
    save(tmp_path, "a/1.png", "b/2.png", channels=1)
    like = ImageFormat(2, 3, 3, is_resized=True)
    understood = read(tmp_path, like=like, image_size=9, enlarge_to=100)
    assert understood.format == like
    examples = list(understood.examples)
    assert [example.value_T.shape for example in examples] == [(6, 3)] * 2
    gray = Image.fromarray(pixels_of("a/1.png", channels=1)).convert("RGB")
    assert np.array_equal(examples[0].value_T, resize(gray, (2, 3)).reshape(6, 3))


def test_with_a_format_that_keeps_sizes_others_are_refused(tmp_path, assert_one_sentence):
    save(tmp_path, "a/1.png", "b/2.png")
    like = ImageFormat(6, 4, 1, permutation="p")
    assert [example.value_T.shape for example in read(tmp_path, like=like).examples] == [(24, 1)] * 2
    save(tmp_path, "b/3.png", height=7)
    with pytest.raises(RunError) as error:
        read(tmp_path, like=like)
    assert_one_sentence(error, tmp_path / "b/3.png", "7x4 pixels (height x width) where 6x4 are needed", "resize it")


def test_images_do_not_fit_a_format_of_texts(tmp_path, assert_one_sentence):
    with pytest.raises(UsageError) as error:
        read(save(tmp_path, "a/1.png"), like=TextFormat())
    assert_one_sentence(error, tmp_path, "images")


def test_crops_follow_their_picture_and_are_shared_evenly(tmp_path):
    names = [f"train/{label}/{number}.png" for label in "ab" for number in range(3)]
    save(tmp_path, *names, "test/a/1.png", "val/b/1.png", "unlabeled/1.png", height=40, width=30)
    understood = read(tmp_path, image_size=8, enlarge_to=20)
    examples = list(understood.examples)
    assert understood.num_examples == len(examples) == 23
    assert understood.num_bytes == 23 * 8 * 8 * 3
    assert understood.description.endswith("with 14 random crops of the training images")
    crops = Counter(example.origin for example in examples if example.origin)
    assert set(crops) == {str(tmp_path / name) for name in names}
    assert set(crops.values()) == {2, 3}
    assert sum(crops[str(tmp_path / f"train/a/{number}.png")] for number in range(3)) == 7
    for before, example in itertools.pairwise(examples):
        if example.origin is not None:
            assert example.origin in (before.origin, before.place)
            assert (example.label, example.part) == (before.label, "train")
            assert not np.array_equal(example.value_T, before.value_T)
    assert [e.place for e in examples[:3]] == [f"{tmp_path}/train/a/0.png{end}" for end in ("", ", crop 1", ", crop 2")]


def test_a_crop_depends_on_nothing_but_its_picture_and_number(tmp_path):
    save(tmp_path / "one", "a/1.png", "b/2.png", height=40, width=30)
    save(tmp_path / "two", "a/0.png", "a/1.png", "b/2.png", "b/3.png", height=40, width=30)
    first = {e.place.removeprefix(f"{tmp_path}/one/"): e.value_T for e in read(tmp_path / "one", enlarge_to=6).examples}
    second = {
        e.place.removeprefix(f"{tmp_path}/two/"): e.value_T for e in read(tmp_path / "two", enlarge_to=19).examples
    }
    assert set(first) < set(second)
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_an_enlargement_to_less_than_there_is_is_wrong_usage(tmp_path, assert_one_sentence):
    save(tmp_path, "a/1.png", "b/1.png")
    assert len(list(read(tmp_path, enlarge_to=2).examples)) == 2
    with pytest.raises(UsageError) as error:
        read(tmp_path, enlarge_to=1)
    assert_one_sentence(error, "--enlarge-to is 1", "give at least 2")


def test_order_and_pixels_do_not_depend_on_how_many_are_decoded_at_a_time(tmp_path, monkeypatch):
    save(tmp_path, *(f"{label}/{number}.png" for label in "ab" for number in range(20)))
    at_once = list(read(tmp_path).examples)
    monkeypatch.setattr(image_folder, "HANDFUL_BYTES", 1000)
    one_by_one = list(read(tmp_path).examples)
    assert [e.place for e in at_once] == [e.place for e in one_by_one]
    assert all(np.array_equal(a.value_T, b.value_T) for a, b in zip(at_once, one_by_one, strict=True))


def test_only_a_handful_of_pictures_is_decoded_ahead(tmp_path, monkeypatch):
    save(tmp_path, *(f"{label}/{number}.png" for label in "ab" for number in range(20)))
    decoded = []
    whole = image_folder.decode
    monkeypatch.setattr(
        image_folder, "decode", lambda path, *, channels: decoded.append(path) or whole(path, channels=channels)
    )
    monkeypatch.setattr(image_folder, "HANDFUL_BYTES", 5 * 6 * 4 * (8 + 3))
    examples = iter(read(tmp_path).examples)
    assert decoded == []
    next(examples)
    assert len(decoded) == 5


def test_threads_end_when_reading_is_given_up(tmp_path):
    save(tmp_path, "a/1.png", "b/1.png")
    before = set(threading.enumerate())
    examples = read(tmp_path).examples
    next(iter(examples))
    assert set(threading.enumerate()) > before
    examples.close()
    assert set(threading.enumerate()) == before


def test_a_picture_changed_while_it_is_read_is_left_out(tmp_path):
    save(tmp_path, "a/1.png", "a/2.png", "b/1.png")
    problems = Problems()
    understood = read(tmp_path, problems=problems)
    save(tmp_path, "a/2.png", height=9)
    assert len(list(understood.examples)) == 2
    assert problems.skipped == [f"{tmp_path / 'a/2.png'} has 9x4 pixels (height x width) where 6x4 are needed"]
