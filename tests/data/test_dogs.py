"""Stanford Dogs in its own layout: the lists decide, and a wrong list is refused in one sentence."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from auxrnn.data.examples import Problems
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers.dogs import dogs_source, is_dogs_folder, read_list
from auxrnn.data.readers.image_folder import ImageOptions
from auxrnn.errors import RunError, UsageError

SHARED_DOGS = Path(__file__).parents[3] / "shared" / "data" / "stanford_dogs_10"
TRAIN = {"n3-Shih-Tzu/1.jpg": 7, "n3-Shih-Tzu/2.jpg": 7, "n1-Great_Dane/1.jpg": 61}
TEST = {"n3-Shih-Tzu/3.jpg": 7, "n1-Great_Dane/2.jpg": 61}


def as_list(lines):
    """Give a list as the dataset has it: cells of strings, one below the other."""
    files = np.empty((len(lines), 1), dtype=object)
    files[:, 0] = list(lines)
    return {"file_list": files, "labels": np.array(list(lines.values()), dtype=np.uint8)[:, None]}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "dogs"
    for name in TRAIN | TEST:
        path = folder / "Images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(len(name)).integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(path)
    (folder / "lists").mkdir()
    savemat(folder / "lists/train_list.mat", as_list(TRAIN))
    savemat(folder / "lists/test_list.mat", as_list(TEST))
    return folder


def read(folder, problems=None, **options):
    return dogs_source("dogs", folder, ImageOptions(**{"image_size": 4} | options)).read(problems or Problems(), None)


def test_the_lists_decide_the_parts_and_their_labels_the_order_of_the_breeds(folder):
    understood = read(folder)
    assert [(e.place.removeprefix(f"{folder}/Images/"), e.label, e.part) for e in understood.examples] == [
        ("n1-Great_Dane/1.jpg", "n1-Great_Dane", "train"),
        ("n3-Shih-Tzu/1.jpg", "n3-Shih-Tzu", "train"),
        ("n3-Shih-Tzu/2.jpg", "n3-Shih-Tzu", "train"),
        ("n1-Great_Dane/2.jpg", "n1-Great_Dane", "test"),
        ("n3-Shih-Tzu/3.jpg", "n3-Shih-Tzu", "test"),
    ]
    assert list(understood.class_names.items()) == [("n3-Shih-Tzu", "Shih-Tzu"), ("n1-Great_Dane", "Great_Dane")]
    assert understood.format == ImageFormat(4, 4, 3, is_resized=True)
    assert understood.num_examples == 5


def test_only_training_images_are_cropped_and_that_is_called_an_approximation(folder):
    understood = read(folder, enlarge_to=8)
    examples = list(understood.examples)
    assert Counter(example.part for example in examples) == {"train": 8, "test": 2}
    assert "approximated" in understood.description
    assert "approximated" not in read(folder).description


def test_the_source_names_the_lists_and_all_images(folder):
    source = dogs_source("dogs", folder, ImageOptions(40))
    names = {path.relative_to(folder).as_posix() for path in source.files}
    assert names == {"lists/train_list.mat", "lists/test_list.mat"} | {f"Images/{name}" for name in TRAIN | TEST}
    assert source.options["reader"] == "dogs"
    assert source.options["image_size"] == 40


def test_a_folder_of_dogs_needs_images_and_both_lists(folder):
    assert is_dogs_folder(folder)
    (folder / "lists/test_list.mat").unlink()
    assert not is_dogs_folder(folder)
    assert not is_dogs_folder(folder / "Images")


def test_an_image_with_transparency_under_a_wrong_name_is_read(folder):
    path = folder / "Images/n3-Shih-Tzu/1.jpg"
    Image.new("RGBA", (5, 5), (10, 20, 30, 0)).save(path, format="PNG")
    value = next(e.value_T for e in read(folder).examples if e.place == str(path))
    assert (value == [10, 20, 30]).all()


def test_an_image_in_neither_list_is_left_out_and_counted(folder):
    (folder / "Images/n3-Shih-Tzu/9.jpg").write_bytes((folder / "Images/n3-Shih-Tzu/1.jpg").read_bytes())
    problems = Problems()
    assert read(folder, problems).num_examples == 5
    assert problems.skipped == [f"{folder}/Images/n3-Shih-Tzu/9.jpg is in neither list"]


@pytest.mark.parametrize(
    ("lines", "part"),
    [
        (TRAIN | {"n3-Shih-Tzu/8.jpg": 7}, "names 'n3-Shih-Tzu/8.jpg', which is missing"),
        (TRAIN | {"n3-Shih-Tzu/3.jpg": 7}, "'n3-Shih-Tzu/3.jpg', which is missing or listed twice"),
        (TRAIN | {"../../secret.jpg": 7}, "cannot be read as a list of images (it is damaged or of another kind)"),
        (TRAIN | {"/etc/x.jpg": 7}, "cannot be read as a list of images"),
        (TRAIN | {"1.jpg": 7}, "cannot be read as a list of images"),
    ],
)
def test_a_wrong_list_is_refused_by_name(folder, assert_one_sentence, lines, part):
    savemat(folder / "lists/train_list.mat", as_list(lines))
    with pytest.raises(RunError) as error:
        read(folder)
    assert_one_sentence(error, folder / "lists", part)
    problems = Problems(is_patient=True)
    list(read(folder, problems).examples)
    assert problems.num_refused >= 1


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"file_list": np.array([["a/1.jpg"]], dtype=object)},
        as_list(TRAIN) | {"labels": np.array([[np.nan], [2], [3]])},
        as_list(TRAIN) | {"labels": np.array([[1], [2]])},
        as_list(TRAIN) | {"file_list": np.array([[1.0], [2.0], [3.0]])},
        as_list(TRAIN) | {"file_list": {"a": 1}},
    ],
    ids=["nothing", "no labels", "unknown", "too few", "numbers", "a struct"],
)
def test_a_list_of_another_kind_is_refused_by_name(folder, assert_one_sentence, content):
    savemat(folder / "lists/train_list.mat", content)
    with pytest.raises(RunError) as error:
        read(folder)
    assert_one_sentence(error, folder / "lists/train_list.mat", "get the lists of the dataset again")


def test_whole_numbers_may_be_kept_as_floats(folder):
    savemat(folder / "lists/train_list.mat", as_list(TRAIN) | {"labels": np.array([[7.0], [7.0], [61.0]])})
    assert read(folder).num_examples == 5


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_list_is_read_or_refused(folder, data):
    path = folder / "lists/fuzzed.mat"
    for is_packed in (False, True):
        savemat(path, as_list(TRAIN), do_compression=is_packed)
        content = bytearray(path.read_bytes())
        for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
            content[place] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
        problems = Problems(is_patient=True)
        listed = read_list(path, problems)
        assert problems.num_refused == (0 if listed else 1)
        assert all(len(names) >= 2 for names in listed)


@pytest.mark.skipif(not SHARED_DOGS.is_dir(), reason=f"the real Stanford Dogs are not at {SHARED_DOGS}")
def test_the_real_subset_is_read_as_it_is():
    problems = Problems()
    understood = dogs_source("stanford_dogs", SHARED_DOGS, ImageOptions(40)).read(problems, None)
    examples = list(understood.examples)
    assert Counter(example.part for example in examples) == {"train": 1000, "test": 638}
    assert Counter(e.label for e in examples if e.part == "train") == dict.fromkeys(understood.class_names, 100)
    assert list(understood.class_names.values())[:4] == ["Chihuahua", "bloodhound", "otterhound", "Yorkshire_terrier"]
    assert problems.num_skipped == 0
    assert {example.value_T.shape for example in examples} == {(1600, 3)}
    mean = np.mean([example.value_T.mean() for example in examples])
    assert 90 < mean < 140


def test_images_of_many_sizes_need_a_size(folder, assert_one_sentence):
    Image.new("RGB", (5, 5)).save(folder / "Images/n3-Shih-Tzu/1.jpg")
    with pytest.raises(UsageError) as error:
        read(folder, image_size=None)
    assert_one_sentence(error, "give --image-size")
