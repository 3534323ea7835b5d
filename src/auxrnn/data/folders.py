"""What lies below a folder: visible files of some kinds, at any depth, in an order that is the same everywhere."""

import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Literal, NamedTuple

from auxrnn.data.examples import Problems

MOST_LOOKED_AT = 100_000
"""After this many names without a file of the wanted kind, a folder is taken to have none."""
MOST_LINKS = 2
"""How many links to folders a path may follow: folders that link to each other have endlessly many paths."""

Names = tuple[str, ...]
"""A path relative to a folder, name by name."""


class FolderEntry(NamedTuple):
    """Something below a folder; `other` is neither file nor folder, such as a broken link or a pipe."""

    names: Names
    kind: Literal["file", "folder", "other", "unreadable"]
    reason: str = ""
    """Why a folder cannot be read."""


class Tree(NamedTuple):
    """The files of some kinds and all folders below a folder, sorted."""

    folder: Path
    files: tuple[Names, ...]
    folders: tuple[Names, ...]
    others: tuple[Names, ...]
    unreadable: tuple[FolderEntry, ...]

    def paths(self) -> list[Path]:
        """Return the files as the user would name them."""
        return [self.folder.joinpath(*names) for names in self.files]

    def shared_folder(self) -> str:
        """Return the folder below this one that holds all files; empty if it is this one."""
        # The files are sorted: what the first and the last share, all share.
        ends = [names[:-1] for names in (*self.files[:1], *self.files[-1:])]
        pairs = zip(*ends, strict=False)
        return "/".join(names[0] for names in takewhile(lambda names: names[0] == names[1], pairs))

    def place(self, names: Names) -> str:
        """Return the path of something in the folder, for error messages."""
        return printable(self.folder.joinpath(*names))

    def report(self, problems: Problems, *, what: str) -> None:
        """Refuse folders that cannot be read, and skip what has the name of a file but is none."""
        for names, _, reason in self.unreadable:
            cure = "check that it is there and that you may read it"
            problems.refuse(self.place(names), f"cannot be read ({reason})", cure)
        for names in self.others:
            problems.skip(self.place(names), f"cannot be read as {what} (it is not a file)")


def find_files(folder: Path, *, suffixes: Sequence[str]) -> Tree:
    """List the files below a folder whose names have one of the suffixes, in any case; links are followed."""
    found: dict[str, list[Names]] = {"file": [], "folder": [], "other": []}
    unreadable = []
    for entry in _walk(folder):
        if entry.kind == "unreadable":
            unreadable.append(entry)
        elif entry.kind == "folder" or entry.names[-1].lower().endswith(tuple(suffixes)):
            found[entry.kind].append(entry.names)
    files, folders, others = (tuple(sorted(names)) for names in found.values())
    return Tree(folder, files, folders, others, tuple(sorted(unreadable)))


def has_file(folder: Path, *, suffixes: Sequence[str], least_depth: int) -> bool:
    """Return whether there is such a file at least so many levels down; the search ends at the first one."""
    for number, entry in enumerate(_walk(folder)):
        if number >= MOST_LOOKED_AT:
            return False
        is_deep = entry.kind == "file" and len(entry.names) >= least_depth
        if is_deep and entry.names[-1].lower().endswith(tuple(suffixes)):
            return True
    return False


def printable(text: str | Path) -> str:
    """Return a name on one line that every terminal can show."""
    return "".join(character if character.isprintable() else "?" for character in str(text))


def _walk(folder: Path) -> Iterator[FolderEntry]:
    """Yield everything below a folder except hidden names; a folder is not entered again from inside itself."""
    pending: list[tuple[Names, frozenset[tuple[int, int]], int]] = [((), frozenset(), 0)]
    while pending:
        names, above, num_links = pending.pop()
        path = folder.joinpath(*names)
        try:
            status = path.stat()
            with os.scandir(path) as scanned:
                entries = list(scanned)
        except OSError as error:
            yield FolderEntry(names, "unreadable", error.strerror or "it is damaged")
            continue
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            found = FolderEntry((*names, entry.name), _kind_of(entry))
            yield found
            is_followed = num_links < MOST_LINKS or not entry.is_symlink()
            if found.kind == "folder" and is_followed:
                pending.append((found.names, above | {identity}, num_links + entry.is_symlink()))


def _kind_of(entry: "os.DirEntry[str]") -> Literal["file", "folder", "other"]:
    try:
        if entry.is_dir():
            return "folder"
        return "file" if entry.is_file() else "other"
    except OSError:
        # A link that leads to itself, or into a folder that is closed.
        return "other"
