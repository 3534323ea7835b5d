"""Files of a kind below a folder: visible ones at any depth, in the same order everywhere; and their classes.

The first level is the class, or train/, validation/ and test/ are and the second is the class, however deep files lie
below; a class called `unlabeled` has files without one.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from auxrnn.data.examples import SPLIT_NAMES, Example, Part, Problems
from auxrnn.files import printable

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
"""How the names of pictures end, in lower case; the format of a file is told from its content."""
AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff")
MOST_LOOKED_AT = 100_000
"""After this many names without a file of a kind, a folder is taken to have none."""
UNLABELED: Part = "unlabeled"
ORDER: tuple[Part | None, ...] = (None, "train", "validation", "test", UNLABELED)

Names = tuple[str, ...]
"""A path relative to a folder, name by name."""


class Tree(NamedTuple):
    """The files of a kind and all folders below a folder, sorted."""

    folder: Path
    files: tuple[Names, ...]
    folders: tuple[Names, ...]
    others: tuple[Names, ...]
    """What has the name of such a file but is none, such as a broken link or a pipe."""
    errors: tuple[OSError, ...]
    """Why some folders cannot be read."""

    @property
    def below(self) -> str:
        """The path down to where the files part: labels depend on it, and a checksum of the files does not know it."""
        return os.path.commonpath(["/".join(names[:-1]) for names in self.files]) if self.files else ""

    def paths(self) -> list[Path]:
        """Return the files as the user would name them."""
        return [self.folder.joinpath(*names) for names in self.files]

    def place(self, names: Names) -> str:
        """Return the path of something in the folder, for error messages."""
        return printable(self.folder.joinpath(*names))

    def put(self, names: Names, label: str | None, part: Part | None, group: str) -> "Placed":
        """Return a file of the tree with what its place says of it."""
        return Placed(self.folder.joinpath(*names), names, label, part, group)

    def report(self, problems: Problems, kind: str) -> None:
        """Refuse folders that cannot be read, and skip what has the name of a file but is none."""
        for error in self.errors:
            cure = "check that it is there and that you may read it"
            problems.refuse(printable(error.filename), f"cannot be read ({error.strerror or 'it is damaged'})", cure)
        for names in self.others:
            problems.skip(self.place(names), f"cannot be read as {kind} (it is not a file)")


class Placed(NamedTuple):
    """A file, and what its place says of it."""

    path: Path
    names: Names
    """Its path below the folder that the user named."""
    label: str | None
    part: Part | None
    group: str
    """The folder of its class, which may not come out empty."""

    @property
    def place(self) -> str:
        """Its path, for error messages."""
        return printable(self.path)


class Album(NamedTuple):
    """All files of a source, training first."""

    files: Sequence[Placed]
    groups: Sequence[str]
    """The folders of all classes, with files or without."""
    class_names: Mapping[str, str] | None = None

    def describe(self, what: str) -> str:
        """Return how many there are of files and classes: "3 recordings, 2 classes"."""
        number = len({file.label for file in self.files} - {None})
        classes = f", {number} class{'es' * (number != 1)}" if number else ""
        return f"{len(self.files):,} {what}{classes}"

    def refuse_empty(self, filled: Collection[str], what: str, problems: Problems) -> None:
        """Refuse the folders of which nothing could be read."""
        for group in self.groups:
            if group not in filled:
                problems.refuse(group, f"has no {what} that can be read", "add some or remove the folder")

    def read_each(
        self, read: Callable[[Placed], Shaped[np.ndarray, "T *D"]], what: str, problems: Problems, *, can_skip: bool
    ) -> Iterator[Example]:
        """Yield the files as examples, one after the other; refuse folders of which none could be read."""
        filled = set[str]()
        for file in self.files:
            with problems.noting_errors(), problems.at(file.place, can_skip=can_skip):
                value_T = read(file)
                filled.add(file.group)
                yield Example(value_T, file.label, file.place, file.part)
        self.refuse_empty(filled, what, problems)


def find_files(folder: Path, suffixes: tuple[str, ...]) -> Tree:
    """List the files below a folder by the suffixes of their names, in any case; links are followed.

    A file that is given instead is the only one.
    """
    if folder.is_file():
        return Tree(folder.parent, ((folder.name,),), (), (), ())
    errors: list[OSError] = []
    found = sorted(_walk(folder, errors))
    folders = tuple(names for names, is_folder in found if is_folder)
    files = [names for names, is_folder in found if not is_folder and names[-1].lower().endswith(suffixes)]
    others = tuple(names for names in files if not os.path.isfile(folder.joinpath(*names)))  # noqa: PTH113 - links to themselves
    return Tree(folder, tuple(sorted({*files} - {*others})), folders, others, tuple(errors))


def has_files(folder: Path, suffixes: tuple[str, ...], *, in_folders: bool = False) -> bool:
    """Return whether a folder holds files of a kind, or sub-folders that do; cheap."""
    return any(
        not is_folder and len(names) > in_folders and names[-1].lower().endswith(suffixes)
        for names, is_folder in islice(_walk(folder, []), MOST_LOOKED_AT)
    )


def sort_by_folder(tree: Tree, problems: Problems, *, has_labels: bool, kind: str, cure: str) -> Album:
    """Return each file with the class and the part of its folder.

    Without labels every file counts, wherever it is. Where no folder is a class, `cure` says what to do.
    """
    tree.report(problems, kind)
    if not has_labels:
        group = printable(tree.folder)
        return Album([tree.put(names, None, None, group) for names in tree.files], [group])
    first = {names[0] for names in tree.folders if len(names) == 1}
    parted = {name for name in first if name.lower() in SPLIT_NAMES}
    has_folders = {names[0] for names in tree.folders if len(names) == 2}
    # A class may be called train, too: then it holds files itself, beside folders with other names.
    is_parted = bool(parted and (parted & has_folders or {*parted, UNLABELED} >= first))
    classes = [folder for folder in tree.folders if _find_class((*folder, ""), is_parted=is_parted) == folder]
    if all(names[-1].lower() == UNLABELED for names in classes):
        problems.refuse(printable(tree.folder), "has no class folders", cure)
        return Album([], [])
    files = []
    for names in tree.files:
        folder = _find_class(names, is_parted=is_parted)
        if folder is None:
            problems.skip(tree.place(names), "lies in no class folder")
            continue
        label, part = printable(folder[-1]), SPLIT_NAMES[folder[0].lower()] if len(folder) == 2 else None
        file = tree.put(names, label, part, tree.place(folder))
        files.append(file._replace(label=None, part=UNLABELED) if label.lower() == UNLABELED else file)
    return Album(by_part(files), [tree.place(folder) for folder in classes])


def by_part(files: Sequence[Placed]) -> list[Placed]:
    """Return files in their order, training first: it says what the others are."""
    return sorted(files, key=lambda file: ORDER.index(file.part))


def _find_class(names: Names, *, is_parted: bool) -> Names | None:
    """Return the folder of the class that a file belongs to."""
    depth = 1
    if is_parted and names[0].lower() != UNLABELED:
        depth = 2 if names[0].lower() in SPLIT_NAMES else len(names)
    return names[:depth] if len(names) > depth else None


def _walk(folder: Path, errors: list[OSError]) -> Iterator[tuple[Names, bool]]:
    """Yield everything below a folder except hidden names, and whether it is a folder; links never lead in circles."""
    entered = {os.path.realpath(folder)}
    for parent, folders, files in os.walk(folder, onerror=errors.append, followlinks=True):
        above = Path(parent).relative_to(folder).parts
        folders[:] = [name for name in folders if _is_visible(name) and _is_new(f"{parent}/{name}", entered)]
        for names, is_folder in ((folders, True), (files, False)):
            yield from (((*above, name), is_folder) for name in names if _is_visible(name))


def _is_visible(name: str) -> bool:
    return not name.startswith(".") and name != "__MACOSX"


def _is_new(path: str, entered: set[str]) -> bool:
    """Return whether a folder is to be entered: of links, those that lead to where nothing else leads."""
    if not os.path.islink(path):  # noqa: PTH114 - one of many thousands, and Path is slower
        return True
    target = os.path.realpath(path)
    is_new = all(os.path.commonpath([target, known]) not in (target, known) for known in entered)
    entered.add(target)
    return is_new
