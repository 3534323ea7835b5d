"""What is known of files before they are there: their addresses, names, sizes and checksums."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Observe = Callable[[str, int, int | None], None]
"""Told the name of a file that comes, how many of its bytes are there, and of how many (None: not known)."""


class Content(NamedTuple):
    """A file by its name, and what it must hold, as far as that is known."""

    name: str
    num_bytes: int | None = None
    checksum: str | None = None
    """The kind and the digits: "md5:..." or "sha256:..."."""


class RemoteFile(NamedTuple):
    """A file to download, and what it must hold."""

    url: str
    checksum: str
    num_bytes: int | None = None

    @property
    def name(self) -> str:
        """The file's name, in the address and on disk."""
        return self.url.rpartition("/")[2]

    @property
    def content(self) -> Content:
        """The file without its address."""
        return Content(self.name, self.num_bytes, self.checksum)


def find_checksum(path: Path, like: str) -> str:
    """Give the checksum of a file, of the kind of another one."""
    kind = like.partition(":")[0]
    with path.open("rb") as file:
        return f"{kind}:{hashlib.file_digest(file, kind).hexdigest()}"
