"""Which datasets are at hand, and getting those that are not."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.data import tasks
from auxrnn.data.fetching.local_files import is_there
from auxrnn.data.fetching.published import CIFAR10, CIFAR10_FOLDER, CIFAR10_MEMBERS, DBPEDIA, DOGS, FASHION_MNIST, MNIST
from auxrnn.data.fetching.remote_files import Observe, RemoteFile
from auxrnn.data.fetching.sources import (
    cifar10_files,
    dbpedia_files,
    dogs_folder,
    fashion_mnist_files,
    find_tables,
    mnist_files,
    search_folders,
)
from auxrnn.data.pictures.dogs import is_dogs_folder
from auxrnn.errors import UsageError, nearest

Folders = Sequence[Path]


class Holding(NamedTuple):
    """How to look for a dataset's files, and how to get them."""

    folder: str
    """What its folder is called."""
    is_in: Callable[[Folders], bool]
    fetch: Callable[[Path | None, Observe | None], Path]
    """Give the folder that its files are in."""


def is_at_hand(name: str, data_dir: Path | None = None) -> bool:
    """Say whether a dataset's files are there, packed or unpacked, by their names and sizes alone."""
    holding = _find(name)
    try:
        return holding.is_in(search_folders(holding.folder, data_dir))
    except OSError:
        return False


def fetch(name: str, data_dir: Path | None = None, *, observe: Observe | None = None) -> Path:
    """Make sure that all files of a dataset are there, downloading what is missing; give the folder they are in.

    Without `observe`, bars on stderr show the downloads.
    """
    return _find(name).fetch(data_dir, observe)


def _find(name: str) -> Holding:
    if name not in HOLDINGS:
        raise UsageError(f"unknown dataset {name!r}{nearest(name, HOLDINGS)}")
    return HOLDINGS[name]


def _has_mnist(folders: Folders) -> bool:
    return all(any(is_there(form, folder) for form in file.forms for folder in folders) for file in MNIST)


def _has_fashion_mnist(folders: Folders) -> bool:
    """Look for unpacked files in the dataset's own folder alone: elsewhere they could be another's."""
    own = [folder for folder in folders if folder.name == folders[0].name]
    return all(
        any(is_there(file.remote.content, folder) for folder in folders)
        or any(is_there(form, folder) for form in file.unpacked for folder in own)
        for file in FASHION_MNIST
    )


def _has_archives(folders: Folders, *archives: RemoteFile) -> bool:
    return all(any(is_there(archive.content, folder) for folder in folders) for archive in archives)


def _has_cifar10(folders: Folders) -> bool:
    places = [place for folder in folders for place in (folder / CIFAR10_FOLDER, folder)]
    is_unpacked = any(all(is_there(member, place) for member in CIFAR10_MEMBERS) for place in places)
    return is_unpacked or _has_archives(folders, CIFAR10)


def _has_stanford_dogs(folders: Folders) -> bool:
    return any(is_dogs_folder(folder) for folder in folders) or _has_archives(folders, DOGS.images, DOGS.lists)


def _has_dbpedia(folders: Folders) -> bool:
    return find_tables(folders) is not None or _has_archives(folders, DBPEDIA)


def _bundled_folder(_data_dir: Path | None, _observe: Observe | None) -> Path:
    # Importing scikit-learn takes a second; where it lies can be found without.
    package = importlib.util.find_spec("sklearn")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "datasets" / "data"


def _program_folder(_data_dir: Path | None, _observe: Observe | None) -> Path:
    return Path(tasks.__file__).parent


def _mnist_folder(data_dir: Path | None, observe: Observe | None) -> Path:
    return mnist_files(data_dir, observe=observe).train_images.parent


def _fashion_mnist_folder(data_dir: Path | None, observe: Observe | None) -> Path:
    return fashion_mnist_files(data_dir, observe=observe).train_images.parent


def _cifar10_folder(data_dir: Path | None, observe: Observe | None) -> Path:
    return cifar10_files(data_dir, observe=observe).train[0].parent


def _dogs_folder(data_dir: Path | None, observe: Observe | None) -> Path:
    return dogs_folder(data_dir, observe=observe)


def _dbpedia_folder(data_dir: Path | None, observe: Observe | None) -> Path:
    return dbpedia_files(data_dir, observe=observe).train.parent


HOLDINGS: Mapping[str, Holding] = {
    "digits": Holding("digits", lambda _: True, _bundled_folder),
    "mnist": Holding("mnist", _has_mnist, _mnist_folder),
    "pmnist": Holding("mnist", _has_mnist, _mnist_folder),
    "fashion_mnist": Holding("fashion_mnist", _has_fashion_mnist, _fashion_mnist_folder),
    "cifar10": Holding("cifar10", _has_cifar10, _cifar10_folder),
    "stanford_dogs": Holding("stanford_dogs", _has_stanford_dogs, _dogs_folder),
    "dbpedia": Holding("dbpedia", _has_dbpedia, _dbpedia_folder),
    **{name: Holding(name, lambda _: True, _program_folder) for name in tasks.TASKS},
}
