"""A path is understood by its name and by what lies in it; what is not understood gets one sentence."""

import zipfile

import numpy as np
import pytest

from auxrnn.config import DataConfig
from auxrnn.data.examples import Problems
from auxrnn.data.sources import find_source
from auxrnn.errors import UsageError
from own_data import write_arrays, write_csv, write_images, write_ts


def find(path, **asked):
    return find_source(path, DataConfig(data=str(path), **asked))


def parts_of(source):
    return {example.part for example in source.read(Problems(), None).examples}


def test_a_folder_with_a_file_for_each_split_is_one_dataset(tmp_path):
    for name in ("train.csv", "valid.csv", "test.csv"):
        write_csv(tmp_path / name)
    write_csv(tmp_path / "notes.csv")
    source = find(tmp_path)
    assert parts_of(source) == {"train", "validation", "test"}
    assert source.files[0].name == "train.csv"


def test_training_series_bring_their_test_series_along(tmp_path):
    path = write_ts(tmp_path)
    assert parts_of(find(path)) == parts_of(find(tmp_path)) == {"train", "test"}
    assert parts_of(find(tmp_path / "Slopes_TEST.ts")) == {None}


def test_an_archive_is_unpacked_once_and_read_below_its_own_folder(tmp_path):
    write_csv(tmp_path / "train.csv")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.write(tmp_path / "train.csv", "my data/train.csv")
    first, second = find(tmp_path / "data.zip"), find(tmp_path / "data.zip")
    assert first.name == str(tmp_path / "data.zip")
    assert first.files == second.files


def test_options_are_part_of_what_a_cache_is_named_by(tmp_path):
    photos = write_images(tmp_path / "photos")
    assert find(photos).options != find(photos, image_size=4).options
    path = write_csv(tmp_path / "a.csv")
    assert find(path).options != find(path, tokens="bytes").options


@pytest.mark.parametrize("name", ["nothing", "notes.docx", "empty", "picture.png", "photos.rar"])
def test_what_is_not_understood_is_told_what_would_be(tmp_path, assert_one_sentence, name):
    write_images(tmp_path / "made")
    (tmp_path / "made" / "cat" / "0.png").rename(tmp_path / "picture.png")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.docx").write_text("text")
    (tmp_path / "photos.rar").write_bytes(b"Rar!")
    with pytest.raises(UsageError) as error:
        find(tmp_path / name)
    assert_one_sentence(error, name, "give")


def test_two_files_for_one_split_are_not_guessed_between(tmp_path, assert_one_sentence):
    write_csv(tmp_path / "train.csv")
    write_csv(tmp_path / "train.tsv")
    with pytest.raises(UsageError) as error:
        find(tmp_path)
    assert_one_sentence(error, "train.csv", "train.tsv", "both for the train split")


@pytest.mark.parametrize("asked", [{"text_column": "a"}, {"tokens": "bytes"}, {"image_size": 3}, {"permutation": "p"}])
def test_an_option_that_has_no_effect_for_arrays_is_refused(tmp_path, assert_one_sentence, asked):
    with pytest.raises(UsageError) as error:
        find(write_arrays(tmp_path / "data.npz"), **asked)
    assert_one_sentence(error, next(iter(asked)), "has no effect on arrays")


def test_a_folder_of_arrays_is_read_like_one_file(tmp_path):
    np.save(tmp_path / "x_train.npy", np.zeros((4, 3)))
    np.save(tmp_path / "y_train.npy", np.arange(4) % 2)
    assert parts_of(find(tmp_path)) == {"train"}
