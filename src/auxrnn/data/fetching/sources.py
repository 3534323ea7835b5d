"""Where each dataset's files come from: found in the user's folder, else downloaded there."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pooch

from auxrnn.data.fetching.dogs_archives import find_or_unpack_dogs
from auxrnn.data.fetching.local_files import DatasetFile, find_or_download, find_or_unpack, gather, unpack_part
from auxrnn.data.fetching.published import (
    CIFAR10,
    CIFAR10_FOLDER,
    CIFAR10_MEMBERS,
    DBPEDIA,
    DBPEDIA_FOLDER,
    DBPEDIA_MEMBERS,
    DOGS,
    FASHION_MNIST,
    MNIST,
)
from auxrnn.data.fetching.remote_files import Content, Observe, RemoteFile
from auxrnn.errors import RunError

DATA_DIR_VARIABLE = "AUXRNN_DATA_DIR"
TABLES = ("train.csv", "test.csv")
FASHION_MNIST_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


class MnistFiles(NamedTuple):
    """The four idx files of MNIST, or of a dataset in its format, packed or not."""

    train_images: Path
    train_labels: Path
    test_images: Path
    test_labels: Path


class Cifar10Files(NamedTuple):
    """CIFAR-10's binary files."""

    train: tuple[Path, ...]
    test: tuple[Path, ...]


class DbpediaFiles(NamedTuple):
    """DBpedia's tables, and the file with a class name a line; None where a user's copy has none."""

    train: Path
    test: Path
    class_names: Path | None


def mnist_files(data_dir: Path | None = None, *, observe: Observe | None = None) -> MnistFiles:
    """Find MNIST, packed or unpacked, in `data_dir/mnist` or `data_dir`, or download what is missing."""
    folders = search_folders("mnist", data_dir)
    return MnistFiles(*(find_or_download(file, folders, observe=observe) for file in MNIST))


def fashion_mnist_files(data_dir: Path | None = None, *, observe: Observe | None = None) -> MnistFiles:
    """Find Fashion-MNIST, packed, in `data_dir/fashion_mnist` or `data_dir`, or download what is missing.

    Unpacked, its files are found in a folder called `fashion_mnist` alone, by their sizes: elsewhere they could as well
    be another dataset's in this format, since the checksums of the unpacked files are not published.
    """
    folders = search_folders("fashion_mnist", data_dir)
    return MnistFiles(*(find_or_download(file, folders, observe=observe) for file in FASHION_MNIST))


def cifar10_files(data_dir: Path | None = None, *, observe: Observe | None = None) -> Cifar10Files:
    """Find CIFAR-10, unpacked or as its archive, in `data_dir/cifar10` or `data_dir`, or download it."""
    folders = search_folders("cifar10", data_dir)
    *train, test = find_or_unpack(CIFAR10, CIFAR10_MEMBERS, CIFAR10_FOLDER, folders, observe=observe)
    return Cifar10Files(tuple(train), (test,))


def dbpedia_files(data_dir: Path | None = None, *, observe: Observe | None = None) -> DbpediaFiles:
    """Find DBpedia's tables, in `data_dir/dbpedia`, `data_dir` or a folder `dbpedia_csv` in these, or download them.

    What a user has there is taken as it is, so a part of the dataset will do; what is downloaded is checked.
    """
    folders = search_folders("dbpedia", data_dir)
    return find_or_unpack_tables(DBPEDIA, DBPEDIA_MEMBERS, folders, observe=observe)


def dogs_folder(data_dir: Path | None = None, *, observe: Observe | None = None) -> Path:
    """Find the folder that holds Stanford Dogs' `Images` and `lists`: `data_dir/stanford_dogs`, or `data_dir`.

    What a user has there is taken as it is, so some of the breeds will do. Otherwise the archives are downloaded to
    the first of these and unpacked beside themselves, and counted.
    """
    return find_or_unpack_dogs(DOGS, search_folders("stanford_dogs", data_dir), observe=observe)


def search_folders(dataset: str, data_dir: Path | None = None) -> tuple[Path, Path]:
    """Give the folders that may hold a dataset's files; the first is where downloads go.

    Without a `data_dir`, the environment variable AUXRNN_DATA_DIR names it, else it is the user's cache.
    """
    chosen = data_dir or os.environ.get(DATA_DIR_VARIABLE) or pooch.os_cache("auxrnn")
    root = Path(chosen).expanduser()
    return root / dataset, root


def find_or_unpack_tables(
    archive: RemoteFile, members: Sequence[Content], folders: Sequence[Path], *, observe: Observe | None = None
) -> DbpediaFiles:
    """Give the tables from a folder that has both, or a folder `dbpedia_csv` in it, else unpack the archive."""
    if found := find_tables(folders):
        return found
    for place in _table_places(folders):
        for name, other in (TABLES, TABLES[::-1]):
            if (place / name).is_file():
                raise RunError(f"{place} holds {name} but no {other}; put it there, or delete or rename {name}")
    path = find_or_download(DatasetFile(archive), folders, observe=observe)
    target = path.parent / DBPEDIA_FOLDER
    unpack_part(path, target, choose=lambda unpacked: gather(members, unpacked, path))
    if found := find_tables([target]):
        return found
    raise RunError(f"{target} is in the way of what {path.name} unpacks to; delete or rename that folder")


def find_tables(folders: Sequence[Path]) -> DbpediaFiles | None:
    """Give the tables from the first folder that has both, or a folder `dbpedia_csv` in it."""
    for place in _table_places(folders):
        train, test = (place / name for name in TABLES)
        if train.is_file() and test.is_file():
            names = place / "classes.txt"
            return DbpediaFiles(train, test, names if names.is_file() else None)
    return None


def _table_places(folders: Sequence[Path]) -> list[Path]:
    return [place for folder in folders for place in (folder, folder / DBPEDIA_FOLDER)]
