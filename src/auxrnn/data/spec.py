"""A dataset by name: what is known of it before it is opened, and its files, found on this machine or downloaded.

Each dataset has a file of its own with a `DatasetSpec`.
"""

import gzip
import hashlib
import logging
import os
import zlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from auxrnn.config import DataConfig
from auxrnn.data.examples import Source
from auxrnn.errors import RunError, UsageError
from auxrnn.files import expand, find_checksum, user_cache

DATA_DIR_VARIABLE = "AUXRNN_DATA_DIR"
logger = logging.getLogger(__name__)
READING_OPTIONS = (
    "image_size", "permutation", "enlarge_to", "length", "text_column", "label_column", "series_column", "time_column",
    "value_columns", "channels_first", "tokens", "sample_rate", "label_pattern",
)  # fmt: skip


class Content(NamedTuple):
    """A file that a user may have already; without a checksum, any file of that name is accepted."""

    name: str
    num_bytes: int | None = None
    checksum: str | None = None
    """Kind and digits: "md5:..." or "sha256:..."."""
    others: tuple[str, ...] = ()
    """Checksums (md5) of other datasets' files with this name and size."""


class PublishedFile(NamedTuple):
    """A file to download, and the form in which a user may have it already."""

    name: str
    num_bytes: int
    checksum: str
    mirrors: tuple[str, ...]
    """Addresses of the folders that hold it, tried in this order."""
    unpacked: tuple[Content, ...] = ()
    """The files it unpacks to."""
    folder: str | None = None
    """Folder that the archive is unpacked into; None for a file that is read as it is."""

    @property
    def urls(self) -> list[str]:
        """Every address of the file."""
        return [f"{mirror}/{self.name}" for mirror in self.mirrors]


class DatasetSpec(NamedTuple):
    """A dataset by name: what a user wants to know before getting it, its files, and how to open it."""

    name: str
    title: str
    lengths: str
    """Steps of its sequences, in words."""
    num_classes: int
    train_examples: int
    test_examples: int
    license: str
    """As usually quoted; "research" means for research only, "synthetic" that there is none."""
    citation: str
    open: Callable[["DatasetSpec", DataConfig], Source]
    """Return the dataset as a source, downloading what is missing."""
    files: tuple[PublishedFile, ...] = ()
    folder: str = ""
    """Folder of its files, if not called like the dataset."""
    class_names: tuple[str, ...] = ()
    """For images, whose files hold numbers."""

    @property
    def download_bytes(self) -> int:
        """Total size of its files."""
        return sum(file.num_bytes for file in self.files)

    def describe(self) -> dict[str, str | int]:
        """Return what a user wants to know, as plain values."""
        return {name: getattr(self, name) for name in self._fields[:8]} | {"download_bytes": self.download_bytes}


def check_options(config: DataConfig, allowed: Collection[str], *, what: str) -> None:
    """Refuse an option that has no effect on this kind of data, rather than ignore it."""
    defaults = DataConfig(data=config.data)
    for name in READING_OPTIONS:
        if name not in allowed and getattr(config, name) != getattr(defaults, name):
            raise UsageError(f"{name} has no effect on {what}; remove it")


def find_data_folder(data_dir: Path | None = None) -> Path:
    """Return the folder of all datasets: the given one, else $AUXRNN_DATA_DIR, else the user's cache."""
    return expand(data_dir or os.environ.get(DATA_DIR_VARIABLE) or user_cache())


def get_files(spec: DatasetSpec, data_dir: Path | None = None) -> list[Path]:
    """Return the verified files of a dataset, downloading and unpacking what is missing.

    They are looked for in `data_dir/NAME` and `data_dir`; downloads go to the first, or to where the other files are.
    """
    own, folders = search_folders(spec, data_dir)
    found: list[Path] = []
    for file in spec.files:
        paths = _find(file, folders, own=own) or _make(file, folders, own=own)
        folders = [paths[0].parent, *folders]
        found += paths
    return found


def is_at_hand(spec: DatasetSpec, data_dir: Path | None = None) -> bool:
    """Return whether all files of a dataset are here, packed or unpacked, judged by their names and sizes."""
    own, folders = search_folders(spec, data_dir)
    try:
        return all(
            _find(file, folders, own=own, verify=False) or _find_packed(file, folders, own=own, verify=False)
            for file in spec.files
        )
    except (OSError, RunError):
        return False


def search_folders(spec: DatasetSpec, data_dir: Path | None = None) -> tuple[str, list[Path]]:
    """Return the name of a dataset's own folder, and the folders that may hold its files; its own comes first."""
    root, own = find_data_folder(data_dir), spec.folder or spec.name
    return own, [root / own, root]


def _make(file: PublishedFile, folders: Sequence[Path], *, own: str) -> list[Path]:
    """Unpack a file that cannot be read yet, after a download if it is not there at all."""
    # What downloads need is slow to import, and most often nothing is downloaded.
    from auxrnn.data.archives import unpack  # noqa: PLC0415
    from auxrnn.data.downloads import download  # noqa: PLC0415

    packed = _find_packed(file, folders, own=own) or download(file, folders[0])
    if file.folder is None:
        return [packed]
    target = packed.parent / file.folder
    unpack(packed, target)
    if found := _find(file, [packed.parent], own=own):
        return found
    raise RunError(f"{target} is in the way of what {file.name} unpacks to; rename that folder or move it away")


def _find(file: PublishedFile, folders: Sequence[Path], *, own: str, verify: bool = True) -> list[Path]:
    """Return a file in a form that can be read, from the first folder that has it; archives must be unpacked."""
    for folder in folders:
        # Packed first: run folders know their data by the checksum of the files that were read.
        if file.folder is None and (packed := _find_packed(file, [folder], own=own, verify=verify)):
            return [packed]
        if unpacked := _find_unpacked(file, folder, own=own, verify=verify):
            return unpacked
    return []


def _find_packed(file: PublishedFile, folders: Sequence[Path], *, own: str, verify: bool = True) -> Path | None:
    paths = (folder / file.name for folder in folders)
    return next((path for path in paths if _matches(path, file, path.parent.name == own, verify)), None)


def _find_unpacked(file: PublishedFile, folder: Path, *, own: str, verify: bool) -> list[Path]:
    """Return everything that a file unpacks to; if only a part of it is there, that is an error."""
    places = [(folder / file.folder, True)] if file.folder is not None else []
    places += [(folder, folder.name == own)] if file.unpacked else []
    for place, is_own in places:
        missing = [each.name for each in file.unpacked if not _matches(place / each.name, each, is_own, verify)]
        if not missing and place.is_dir():
            return [place / each.name for each in file.unpacked] or [place]
        if len(missing) < len(file.unpacked):
            raise RunError(f"{place} has no {missing[0]} beside its other files; complete the folder or move it away")
    return []


def _matches(path: Path, content: Content | PublishedFile, is_own: bool, verify: bool) -> bool:
    """Return whether a file is there; in the dataset's own folder, one with another content is an error."""
    if not path.is_file():
        return False
    packed = isinstance(content, PublishedFile)
    inside = content if isinstance(content, Content) else content.unpacked[0] if len(content.unpacked) == 1 else None
    if not verify:
        # The same content may be packed into another number of bytes.
        is_sized = content.num_bytes in (None, path.stat().st_size)
        is_like = packed and inside is not None and _unpacked_size(path) == inside.num_bytes
        return (is_sized or is_like) and (is_own or inside is None or not inside.others)
    if content.checksum is None:
        return content.num_bytes is None or _holds(path, content, open)
    kind, _, published = content.checksum.partition(":")
    checksum = find_checksum(path, kind)
    if checksum == published or (packed and inside is not None and _holds(path, inside, gzip.open)):
        return True
    if is_own:
        found = f"its {kind} checksum is {checksum}, not {published}"
        cure = "move it away to download it again, or let --data-dir name another folder"
        raise RunError(f"{path} is damaged or another version ({found}); {cure}")
    return False


def _holds(path: Path, content: Content, open_file: Callable[..., Any]) -> bool:
    """Return whether a file holds a content, whoever packed it; what has no checksum is judged by its size."""
    kind, num_bytes = (content.checksum or "md5:").partition(":")[0], 0
    total = hashlib.new(kind, usedforsecurity=False)
    try:
        with open_file(path, "rb") as file:
            while block := file.read(2**20):
                total.update(block)
                num_bytes += len(block)
    except (OSError, EOFError, zlib.error):
        return False
    checksum = f"{kind}:{total.hexdigest()}"
    if content.checksum is not None:
        return checksum == content.checksum
    is_held = num_bytes == content.num_bytes and checksum not in content.others
    if is_held:
        logger.warning("%s has the right name and size; its content is not verified, no checksum is published", path)
    return is_held


def _unpacked_size(path: Path) -> int:
    """Return the size that the end of a packed file promises."""
    with path.open("rb") as file:
        file.seek(-min(4, path.stat().st_size), os.SEEK_END)
        return int.from_bytes(file.read(4), "little")
