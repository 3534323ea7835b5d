"""What lies below a folder: visible files of some kinds, at any depth, in an order that is the same everywhere."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Literal, NamedTuple, overload

from auxrnn.data.examples import Problems

MOST_LOOKED_AT = 100_000
"""After so many names without a file of the wanted kind, a folder is said to have none."""
MOST_LINKS = 2
"""How many links to folders a path may lead over: folders that link to each other have endlessly many paths."""

Names = tuple[str, ...]
"""A path from a folder down, name by name."""


class Entry(NamedTuple):
    """Something below a folder; `other` is what is neither file nor folder, such as a link to nowhere or a pipe."""

    names: Names
    kind: Literal["file", "folder", "other", "unreadable"]
    reason: str = ""
    """Why a folder cannot be looked into."""


class Tree(NamedTuple):
    """The files of some kinds and all folders below a folder, sorted."""

    folder: Path
    files: tuple[Names, ...]
    folders: tuple[Names, ...]
    others: tuple[Names, ...]
    unreadable: tuple[Entry, ...]

    def paths(self) -> "Paths":
        """Give the files as the user would name them."""
        return Paths([os.path.join(self.folder, *names) for names in self.files])  # noqa: PTH118 - see Paths

    def shared_folder(self) -> str:
        """Give the folder below this one that holds all files; empty where it is this one."""
        # The files are sorted: what the first and the last share, all share.
        ends = [names[:-1] for names in (*self.files[:1], *self.files[-1:])]
        pairs = zip(*ends, strict=False)
        return "/".join(names[0] for names in takewhile(lambda names: names[0] == names[1], pairs))

    def place(self, names: Names) -> str:
        """Give something in the folder as an error message names it."""
        return printable(self.folder.joinpath(*names))

    def report(self, problems: Problems, *, what: str) -> None:
        """Refuse folders that cannot be looked into, and skip what is named as a file and is none."""
        for names, _, reason in self.unreadable:
            cure = "check that it is there and that you may read it"
            problems.refuse(self.place(names), f"cannot be read ({reason})", cure)
        for names in self.others:
            problems.skip(self.place(names), f"cannot be read as {what} (it is not a file)")


class Paths(Sequence[Path]):
    """Paths that are made when they are asked for: of a hundred thousand files that takes longer than to look at them.

    `names` are the same as strings.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> list[Path]: ...
    def __getitem__(self, index: int | slice) -> Path | list[Path]:
        if isinstance(index, slice):
            return [Path(name) for name in self.names[index]]
        return Path(self.names[index])


def name_files(files: Sequence[Path]) -> Iterable[str]:
    """Give paths as strings."""
    return files.names if isinstance(files, Paths) else map(str, files)


def find_files(folder: Path, *, suffixes: Sequence[str]) -> Tree:
    """List the files below a folder whose names end in some way, in any case; links count as what they lead to."""
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
    """Say whether there is such a file at least so many levels down; the search ends at the first, or soon."""
    for number, entry in enumerate(_walk(folder)):
        if number >= MOST_LOOKED_AT:
            return False
        is_deep = entry.kind == "file" and len(entry.names) >= least_depth
        if is_deep and entry.names[-1].lower().endswith(tuple(suffixes)):
            return True
    return False


def printable(text: str | Path) -> str:
    """Give a name on one line that every terminal can show."""
    return "".join(character if character.isprintable() else "?" for character in str(text))


def _walk(folder: Path) -> Iterator[Entry]:
    """Give all that is below a folder but hidden names; a folder is not entered again from inside itself."""
    pending: list[tuple[Names, frozenset[tuple[int, int]], int]] = [((), frozenset(), 0)]
    while pending:
        names, above, num_links = pending.pop()
        path = folder.joinpath(*names)
        try:
            status = path.stat()
            with os.scandir(path) as scanned:
                entries = list(scanned)
        except OSError as error:
            yield Entry(names, "unreadable", error.strerror or "it is damaged")
            continue
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            found = Entry((*names, entry.name), _kind_of(entry))
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
