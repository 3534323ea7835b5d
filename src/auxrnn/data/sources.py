"""Where each dataset's files come from: found in the user's folder or downloaded, always checked by their MD5."""

import logging
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pooch

from auxrnn.errors import RunError

DATA_DIR_VARIABLE = "AUXRNN_DATA_DIR"
CHUNK_BYTES = 2**16


class RemoteFile(NamedTuple):
    """A file to download, and the MD5 of everything it unpacks to, by name."""

    url: str
    md5: str
    unpacked: Mapping[str, str]

    @property
    def name(self) -> str:
        """The file's name, in the address and on disk."""
        return self.url.rpartition("/")[2]


class MnistFiles(NamedTuple):
    """MNIST's four idx files, packed or not."""

    train_images: Path
    train_labels: Path
    test_images: Path
    test_labels: Path


class Cifar10Files(NamedTuple):
    """CIFAR-10's binary files."""

    train: tuple[Path, ...]
    test: tuple[Path, ...]


MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST = (
    RemoteFile(
        f"{MNIST_URL}/train-images-idx3-ubyte.gz",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        {"train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb"},
    ),
    RemoteFile(
        f"{MNIST_URL}/train-labels-idx1-ubyte.gz",
        "d53e105ee54ea40749a09fcbcd1e9432",
        {"train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624"},
    ),
    RemoteFile(
        f"{MNIST_URL}/t10k-images-idx3-ubyte.gz",
        "9fb629c4189551a2d022fa330f9573f3",
        {"t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea"},
    ),
    RemoteFile(
        f"{MNIST_URL}/t10k-labels-idx1-ubyte.gz",
        "ec29112dd5afa0611ce80d1b7f02629c",
        {"t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637"},
    ),
)
CIFAR10_FOLDER = "cifar-10-batches-bin"
CIFAR10 = RemoteFile(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c32a1d4ab5d03f1284b67883e8d87530",
    {
        "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
        "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
        "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
        "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
        "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
        "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
    },
)


def mnist_files(data_dir: Path | None = None) -> MnistFiles:
    """Find MNIST, packed or unpacked, in `data_dir/mnist` or `data_dir`, or download what is missing."""
    folders = search_folders("mnist", data_dir)
    return MnistFiles(*(find_or_download(remote, folders) for remote in MNIST))


def cifar10_files(data_dir: Path | None = None) -> Cifar10Files:
    """Find CIFAR-10, unpacked or as its archive, in `data_dir/cifar10` or `data_dir`, or download it."""
    *train, test = find_or_unpack(CIFAR10, CIFAR10_FOLDER, search_folders("cifar10", data_dir))
    return Cifar10Files(tuple(train), (test,))


def search_folders(dataset: str, data_dir: Path | None = None) -> tuple[Path, Path]:
    """Give the folders that may hold a dataset's files; the first is where downloads go.

    Without a `data_dir`, the environment variable AUXRNN_DATA_DIR names it, else it is the user's cache.
    """
    chosen = data_dir or os.environ.get(DATA_DIR_VARIABLE) or pooch.os_cache("auxrnn")
    root = Path(chosen).expanduser()
    return root / dataset, root


def find_or_download(remote: RemoteFile, folders: Sequence[Path]) -> Path:
    """Give the path of a file, packed or unpacked, from the first folder that has it, else download it packed."""
    for folder in folders:
        for name, md5 in {remote.name: remote.md5, **remote.unpacked}.items():
            if _is_intact_file(folder / name, md5):
                return folder / name
    return _download(remote, folders[0])


def find_or_unpack(remote: RemoteFile, subfolder: str, folders: Sequence[Path]) -> tuple[Path, ...]:
    """Give the paths of all files in an archive, from a folder (or its `subfolder`) that has them, else unpack it."""
    for folder in (place for root in folders for place in (root / subfolder, root)):
        if found := _find_all(remote.unpacked, folder):
            return found
    archive = find_or_download(remote._replace(unpacked={}), folders)
    target = archive.parent / subfolder
    _unpack(archive, remote.unpacked, target)
    if found := _find_all(remote.unpacked, target):
        return found
    raise RunError(f"{target} is in the way of what {archive.name} unpacks to; delete or rename that folder")


def _find_all(md5s: Mapping[str, str], folder: Path) -> tuple[Path, ...]:
    """Give the intact files of a folder, or nothing where it has none of them; some without the others is an error."""
    missing = [name for name, md5 in md5s.items() if not _is_intact_file(folder / name, md5)]
    if missing and len(missing) < len(md5s):
        raise RunError(f"{folder} holds no {missing[0]} beside its other files; delete the folder or complete it")
    return () if missing else tuple(folder / name for name in md5s)


def _is_intact_file(path: Path, md5: str) -> bool:
    """Say whether the file is there; raise `RunError` where it is there and not what it should be."""
    try:
        if not path.is_file():
            return False
        found = pooch.file_hash(str(path), alg="md5")
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    if found != md5:
        reason = f"its MD5 is {found}, not {md5}"
        raise RunError(f"{path} is damaged or another version ({reason}); delete it to have it downloaded again")
    return True


def _download(remote: RemoteFile, folder: Path) -> Path:
    pooch.get_logger().setLevel(logging.WARNING)
    # A server that labels the packed file itself as packed for transport would have it unpacked on the way.
    headers = {"Accept-Encoding": "identity"}
    downloader = pooch.HTTPDownloader(progressbar=True, chunk_size=CHUNK_BYTES, headers=headers)
    known_hash = f"md5:{remote.md5}"
    try:
        path = pooch.retrieve(remote.url, known_hash, fname=remote.name, path=folder, downloader=downloader)
    except (OSError, ValueError) as error:
        reason = "its checksum is wrong" if isinstance(error, ValueError) else _reason(error)
        raise RunError(
            f"{remote.name} could not be downloaded from {remote.url} to {folder} ({reason}); "
            "check the connection and the folder, or let --data-dir name a folder that already holds it"
        ) from error
    return Path(path)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _unpack(archive: Path, names: Mapping[str, str], target: Path) -> None:
    """Unpack the named files of an archive into a new folder, which appears only when it is complete."""
    aside = None
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        _copy_members(archive, names, aside)
        # A folder made by mkdtemp is for its owner alone; data may be shared.
        aside.chmod(0o755)
        aside.rename(target)
    except (OSError, tarfile.TarError, EOFError) as error:
        # Another process may have been faster; then its files are checked like any others.
        if not target.exists():
            reason = _reason(error) if isinstance(error, OSError) else "it is damaged"
            hint = f"unpack it yourself and let --data-dir name the folder that holds {target.name}"
            raise RunError(f"{archive} could not be unpacked into {target.parent} ({reason}); {hint}") from error
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


def _copy_members(archive: Path, names: Mapping[str, str], folder: Path) -> None:
    with tarfile.open(archive) as members:
        for member in members:
            content = members.extractfile(member)
            name = Path(member.name).name
            if content is not None and name in names:
                with content, (folder / name).open("wb") as copy:
                    shutil.copyfileobj(content, copy)
