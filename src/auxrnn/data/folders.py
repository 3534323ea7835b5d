"""Pictures below a folder: visible files, at any depth, in an order that is the same everywhere."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.examples import Problems
from auxrnn.files import printable

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
"""How the names of pictures end, in lower case; the format of a file is told from its content."""
MOST_LOOKED_AT = 100_000
"""After this many names without a picture, a folder is taken to have none."""

Names = tuple[str, ...]
"""A path relative to a folder, name by name."""


class Tree(NamedTuple):
    """The pictures and all folders below a folder, sorted."""

    folder: Path
    files: tuple[Names, ...]
    folders: tuple[Names, ...]
    others: tuple[Names, ...]
    """What has the name of a picture but is no file, such as a broken link or a pipe."""
    errors: tuple[OSError, ...]
    """Why some folders cannot be read."""

    def paths(self) -> list[Path]:
        """Return the files as the user would name them."""
        return [self.folder.joinpath(*names) for names in self.files]

    def place(self, names: Names) -> str:
        """Return the path of something in the folder, for error messages."""
        return printable(self.folder.joinpath(*names))

    def report(self, problems: Problems) -> None:
        """Refuse folders that cannot be read, and skip what has the name of a picture but is no file."""
        for error in self.errors:
            cure = "check that it is there and that you may read it"
            problems.refuse(printable(error.filename), f"cannot be read ({error.strerror or 'it is damaged'})", cure)
        for names in self.others:
            problems.skip(self.place(names), "cannot be read as an image (it is not a file)")


def find_pictures(folder: Path, suffixes: tuple[str, ...] = PICTURE_SUFFIXES) -> Tree:
    """List the pictures (or others) below a folder by the suffixes of their names, in any case; links are followed."""
    errors: list[OSError] = []
    found = sorted(_walk(folder, errors))
    folders = tuple(names for names, is_folder in found if is_folder)
    files = [names for names, is_folder in found if not is_folder and names[-1].lower().endswith(suffixes)]
    others = tuple(names for names in files if not os.path.isfile(folder.joinpath(*names)))  # noqa: PTH113 - links to themselves
    return Tree(folder, tuple(sorted({*files} - {*others})), folders, others, tuple(errors))


def has_pictures(folder: Path, *, has_labels: bool = True, suffixes: tuple[str, ...] = PICTURE_SUFFIXES) -> bool:
    """Return whether a folder holds pictures, or other files, in sub-folders where these are the labels; cheap."""
    return any(
        not is_folder and len(names) > has_labels and names[-1].lower().endswith(suffixes)
        for names, is_folder in islice(_walk(folder, []), MOST_LOOKED_AT)
    )


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
