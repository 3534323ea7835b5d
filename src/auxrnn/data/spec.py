"""What is known about a named dataset before it is opened. Each dataset has a file of its own with a `DatasetSpec`."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from auxrnn.config import DataConfig
from auxrnn.data.examples import Source
from auxrnn.errors import UsageError

READING_OPTIONS = ("image_size", "permutation", "enlarge_to", "length", "text_column", "label_column", "tokens")


class Content(NamedTuple):
    """A file that a user may have already; without a checksum, any file of that name will do."""

    name: str
    num_bytes: int | None = None
    checksum: str | None = None
    """Kind and digits: "md5:..." or "sha256:..."."""


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
    open: Callable[[DataConfig], Source]
    """Return the dataset as a source, downloading what is missing."""
    files: tuple[PublishedFile, ...] = ()
    folder: str = ""
    """Folder of its files, if not called like the dataset."""

    @property
    def download_bytes(self) -> int:
        """Total size of its files."""
        return sum(file.num_bytes for file in self.files)

    def describe(self) -> dict[str, str | int]:
        """Return what a user wants to know, as plain values."""
        plain = self._asdict()
        return {name: plain[name] for name in self._fields[:8]} | {"download_bytes": self.download_bytes}


def check_options(config: DataConfig, allowed: Collection[str], *, what: str) -> None:
    """Refuse an option that has no effect on this kind of data, rather than ignore it."""
    defaults = DataConfig(data=config.data)
    for name in READING_OPTIONS:
        if name not in allowed and getattr(config, name) != getattr(defaults, name):
            raise UsageError(f"{name} has no effect on {what}; remove it")
