"""Datasets by name: what they hold, and what is refused before anything is fetched."""

import hashlib
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from auxrnn.config import DataConfig
from auxrnn.data import datasets
from auxrnn.data.catalog import DATASETS
from auxrnn.data.datasets import PARTS
from auxrnn.data.images import permutation_order
from auxrnn.errors import UsageError


class Part(NamedTuple):
    """The kept values of a part of a dataset of equal lengths, and its labels."""

    x_NTD: np.ndarray
    label_N: np.ndarray


def part_of(dataset, name):
    rows = np.flatnonzero(dataset.table.part_N == PARTS.index(name))
    num_steps = int(dataset.flat.begin_N1[1])
    x_NTD = dataset.flat.value_K.reshape(-1, num_steps, dataset.flat.value_K.shape[1])
    return Part(x_NTD[rows], dataset.table.label_N[rows])


class Loaded(NamedTuple):
    """A dataset of equal lengths, part by part."""

    train: Part
    test: Part
    image_format: object


def load(name, **asked):
    dataset = datasets.load(DataConfig(data=name, **asked))
    return Loaded(part_of(dataset, "train"), part_of(dataset, "test"), dataset.facts.format)


@pytest.fixture(scope="module")
def digits():
    return load("digits")


@pytest.fixture(scope="module")
def mnist(shared_mnist):
    return load("mnist", data_dir=shared_mnist)


def test_digits_stand_on_a_blank_canvas(digits):
    images_NHW = digits.train.x_NTD.reshape(-1, 14, 14)
    assert digits.train.x_NTD.dtype == np.uint8
    assert not images_NHW[:, 11:].any()
    assert not images_NHW[:, :3].any()
    assert not images_NHW[:, :, 11:].any()
    assert images_NHW[:, 3:11, 3:11].max() == 255
    assert set(np.unique(images_NHW)) == {round(value * 255 / 16) for value in range(17)}


def test_digits_are_split_the_same_way_for_everybody(digits):
    assert (digits.train.x_NTD.shape, digits.test.x_NTD.shape) == ((1437, 196, 1), (360, 196, 1))
    assert np.bincount(digits.test.label_N).tolist() == [36, 37, 35, 37, 36, 36, 36, 36, 35, 36]
    digest = hashlib.sha256(digits.test.x_NTD.tobytes() + digits.test.label_N.astype("<i8").tobytes()).hexdigest()
    assert digest == "fc6978e4edd5fdf398743e3ddababf0b7999a1771656359cd006685b629b6862"


def test_digits_of_both_splits_together_are_all_there_are(digits):
    from sklearn.datasets import load_digits

    together = np.concatenate([digits.train.x_NTD, digits.test.x_NTD]).reshape(-1, 14, 14)[:, 3:11, 3:11]
    everything = np.rint(load_digits().images * (255 / 16)).astype(np.uint8)
    assert sorted(image.tobytes() for image in together) == sorted(image.tobytes() for image in everything)


def test_mnist_holds_the_published_images(mnist):
    assert (mnist.train.x_NTD.shape, mnist.test.x_NTD.shape) == ((60000, 784, 1), (10000, 784, 1))
    assert (mnist.train.x_NTD.dtype, mnist.train.label_N.dtype) == (np.uint8, np.int64)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(mnist.train.label_N).tolist() == counts
    assert np.bincount(mnist.test.label_N).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert mnist.train.x_NTD.sum(dtype=np.int64) == 1567298545
    assert mnist.test.x_NTD.sum(dtype=np.int64) == 264923200
    assert mnist.train.label_N[:5].tolist() == [5, 0, 4, 1, 9]
    assert mnist.train.x_NTD[0].sum(dtype=np.int64) == 27525


def test_pmnist_is_mnist_in_the_named_order(mnist, shared_mnist):
    pmnist = load("pmnist", data_dir=shared_mnist, permutation="other")
    assert pmnist.image_format.permutation == "other"
    order_T = permutation_order("other", 784)
    assert np.array_equal(pmnist.test.x_NTD, mnist.test.x_NTD[:, order_T])
    assert mnist.image_format.permutation is None


def test_mnist_at_half_size_is_the_mean_of_four_pixels(mnist, shared_mnist):
    small = load("mnist", data_dir=shared_mnist, image_size=14)
    sums = mnist.test.x_NTD.reshape(-1, 14, 2, 14, 2).sum(axis=(2, 4), dtype=np.int64)
    assert np.array_equal(small.test.x_NTD.reshape(-1, 14, 14), (sums / (4 * 255)).astype(np.float32))
    assert small.image_format.num_steps == 196


def test_an_averaged_dataset_keeps_its_labels(digits):
    small = load("digits", image_size=7)
    assert small.train.x_NTD.shape == (1437, 49, 1)
    assert np.array_equal(small.train.label_N, digits.train.label_N)


def test_listing_the_datasets_imports_neither_numpy_nor_torch():
    code = "import sys, auxrnn.data.catalog; print(sorted({'numpy', 'torch', 'jaxtyping'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_name_has_a_line_in_the_table():
    names = ("digits", "mnist", "pmnist", "fashion_mnist", "cifar10", "stanford_dogs", "dbpedia")
    assert tuple(DATASETS) == (*names, "adding", "recall", "needle")


@pytest.mark.parametrize(
    ("name", "part"), [("minst", "did you mean 'mnist'?"), ("zzz", "choose from: adding, cifar10, dbpedia, digits")]
)
def test_an_unknown_name_is_answered_with_the_nearest(assert_one_sentence, name, part):
    with pytest.raises(UsageError) as error:
        load(name)
    assert_one_sentence(error, repr(name), part)


@pytest.mark.parametrize(
    ("name", "image_size", "largest"), [("digits", 15, 14), ("mnist", 29, 28), ("cifar10", 33, 32), ("pmnist", 29, 28)]
)
def test_a_size_the_images_do_not_have_is_refused_before_any_download(
    tmp_path, assert_one_sentence, name, image_size, largest
):
    with pytest.raises(UsageError) as error:
        load(name, data_dir=tmp_path, image_size=image_size)
    assert_one_sentence(error, f"image_size is {image_size}", f"from 1 to {largest}")
