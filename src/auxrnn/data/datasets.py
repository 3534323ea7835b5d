"""The datasets a user can name, each a few lines on a reader.

Dimension letters: `N` examples, `T` steps, `D` features of a step.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from auxrnn.config import nearest
from auxrnn.data.cifar import read_cifar10
from auxrnn.data.idx import read_idx
from auxrnn.data.images import ImageFormat, Sequences, to_sequences
from auxrnn.data.sources import cifar10_files, mnist_files
from auxrnn.data.strata import draw_stratified
from auxrnn.errors import UsageError
from auxrnn.structs import Draws

TEN_DIGITS = tuple("0123456789")
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NUM_TEST_DIGITS = 360


class Split(NamedTuple):
    """Examples and their classes; images not averaged stay bytes until they are in a batch."""

    x_NTD: Sequences
    label_N: Int64[np.ndarray, " N"]

    def select(self, row_N: Int64[np.ndarray, " M"]) -> "Split":
        """Give the examples of the named rows, in their order."""
        return Split(self.x_NTD[row_N], self.label_N[row_N])


class Dataset(NamedTuple):
    """A dataset whole, and how an image becomes one of its sequences."""

    name: str
    train: Split
    test: Split
    class_names: tuple[str, ...]
    image_format: ImageFormat


class Request(NamedTuple):
    """What a user may ask of a dataset."""

    data_dir: Path | None
    image_size: int | None
    permutation: str


def load(
    name: str, *, data_dir: Path | None = None, image_size: int | None = None, permutation: str = "auxrnn-1"
) -> Dataset:
    """Load a dataset by name, downloading what is missing; `permutation` counts for permuted datasets only."""
    if name not in DATASETS:
        raise UsageError(f"unknown dataset {name!r}{nearest(name, DATASETS)}")
    return DATASETS[name](Request(data_dir, image_size, permutation))


def dataset_names() -> tuple[str, ...]:
    """Give the names that `load` knows."""
    return tuple(DATASETS)


def _load_digits(request: Request) -> Dataset:
    """Scikit-learn's 1797 digits of 8x8, centered on 14x14 so that a long blank follows what must be remembered."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - it takes a second to import, and only digits need it

    image_format = _resize("digits", ImageFormat(8, 8, 1, canvas=14), request)
    digits = load_digits()
    images_NHWC = np.rint(digits.images[..., None] * (255 / 16)).astype(np.uint8)
    everything = Split(to_sequences(images_NHWC, image_format), digits.target.astype(np.int64))
    # The split is part of the dataset: the same whatever the seed of a run.
    rng = Draws(seed=0, phase="digits", step=0).rng("split")
    test_rows = draw_stratified(everything.label_N, num_examples=NUM_TEST_DIGITS, rng=rng)
    train_rows = np.setdiff1d(np.arange(len(everything.label_N)), test_rows)
    return Dataset("digits", everything.select(train_rows), everything.select(test_rows), TEN_DIGITS, image_format)


def _load_mnist(request: Request) -> Dataset:
    return _mnist("mnist", ImageFormat(28, 28, 1), request)


def _load_pmnist(request: Request) -> Dataset:
    return _mnist("pmnist", ImageFormat(28, 28, 1, permutation=request.permutation), request)


def _mnist(name: str, image_format: ImageFormat, request: Request) -> Dataset:
    image_format = _resize(name, image_format, request)
    files = mnist_files(request.data_dir)
    train = _read_mnist(files.train_images, files.train_labels, image_format)
    test = _read_mnist(files.test_images, files.test_labels, image_format)
    return Dataset(name, train, test, TEN_DIGITS, image_format)


def _read_mnist(images: Path, labels: Path, image_format: ImageFormat) -> Split:
    images_NHWC: UInt8[np.ndarray, "N H W C"] = read_idx(images)[..., None]
    return Split(to_sequences(images_NHWC, image_format), read_idx(labels).astype(np.int64))


def _load_cifar10(request: Request) -> Dataset:
    image_format = _resize("cifar10", ImageFormat(32, 32, 3), request)
    files = cifar10_files(request.data_dir)
    train, test = (_read_cifar10(paths, image_format) for paths in files)
    return Dataset("cifar10", train, test, CIFAR10_CLASSES, image_format)


def _read_cifar10(paths: tuple[Path, ...], image_format: ImageFormat) -> Split:
    images_NHWC, label_N = read_cifar10(paths)
    return Split(to_sequences(images_NHWC, image_format), label_N)


def _resize(name: str, image_format: ImageFormat, request: Request) -> ImageFormat:
    """Add the size a user asks for, which is checked before anything is downloaded."""
    largest = min(image_format.size)
    if request.image_size is not None and not 1 <= request.image_size <= largest:
        raise UsageError(f"image_size is {request.image_size}; for {name} it must be from 1 to {largest}")
    return image_format._replace(image_size=request.image_size)


DATASETS: dict[str, Callable[[Request], Dataset]] = {
    "digits": _load_digits,
    "mnist": _load_mnist,
    "pmnist": _load_pmnist,
    "cifar10": _load_cifar10,
}
"""Every dataset by name; a new one is one line here."""
