"""Stanford Dogs as it is published: `Images/<wnid>-<breed>/*.jpg`, and lists that say which are for training."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from auxrnn.data.examples import Part, Problems, Source, Understood
from auxrnn.data.folders import Tree, find_files, printable
from auxrnn.data.formats import Format
from auxrnn.data.readers.album import Picture, check_image_size, read_album
from auxrnn.data.readers.decoding import reason
from auxrnn.data.readers.image_folder import PICTURE_SUFFIXES, ImageOptions, image_folder_source
from auxrnn.data.readers.matlab import MatlabError, Variable, read_matlab

IMAGES = "Images"
LISTS: dict[Part, str] = {"train": "lists/train_list.mat", "test": "lists/test_list.mat"}
GET_AGAIN = "get the lists of the dataset again"


class Listed(NamedTuple):
    """One line of a list: a file below `Images`, and the number of its breed."""

    names: tuple[str, ...]
    number: int
    part: Part


def is_dogs_folder(folder: Path) -> bool:
    """Return whether a folder has the layout of Stanford Dogs, whole or a part of it."""
    return (folder / IMAGES).is_dir() and all((folder / name).is_file() for name in LISTS.values())


def dogs_source(name: str, folder: Path, options: ImageOptions) -> Source:
    """Return Stanford Dogs as a source; the lists decide which images are read and what they are for.

    The enlarged training set is an approximation: how the paper's 150,000 images were made is not known.
    """
    if not options.has_labels:
        return image_folder_source(name, folder, options)
    check_image_size(options.image_size)
    tree = find_files(folder / IMAGES, suffixes=PICTURE_SUFFIXES)
    lists = [folder / listed for listed in LISTS.values()]

    def read(problems: Problems, like: Format | None) -> Understood:
        tree.report(problems, what="an image")
        listed = [item for part in LISTS for item in read_list(folder / LISTS[part], part, problems)]
        breeds = _name_breeds(folder, listed, problems)
        pictures = _match(folder, tree, listed, problems)
        is_enlarged = options.enlarge_to is not None and like is None
        kind = "Stanford Dogs, the paper's enlargement approximated" if is_enlarged else "Stanford Dogs"
        understood = read_album(
            pictures,
            name=name,
            kind=kind,
            image_size=options.image_size,
            enlarge_to=options.enlarge_to,
            problems=problems,
            like=like,
        )
        return understood._replace(class_names=breeds)

    plain = {"reader": "dogs", **options._asdict()}
    return Source(name, [*lists, *tree.paths()], plain, read)


def read_list(path: Path, part: Part, problems: Problems) -> list[Listed]:
    """Read one of the lists; where it is damaged, there is nothing on it."""
    try:
        content = read_matlab(path.read_bytes())
        return _to_lines(content.get("file_list"), content.get("labels"), part)
    except (OSError, MatlabError) as error:
        what = f"cannot be read as a list of images ({reason(error)})"
        problems.refuse(printable(path), what, GET_AGAIN)
        return []


def _to_lines(files: Variable, labels: Variable, part: Part) -> list[Listed]:
    if not isinstance(files, list) or not isinstance(labels, np.ndarray) or len(files) != len(labels):
        raise MatlabError("there are no names and labels that belong together")
    if not np.isfinite(labels).all() or (labels != np.floor(labels)).any():
        raise MatlabError("labels are no whole numbers")
    lines = [Listed(tuple(file.split("/")), int(label), part) for file, label in zip(files, labels, strict=True)]
    for names, _, _ in lines:
        if len(names) < 2 or {"", ".", ".."} & set(names) or any("\0" in name for name in names):
            raise MatlabError(f"{names} is no file below {IMAGES}")
    return lines


def _name_breeds(folder: Path, listed: Sequence[Listed], problems: Problems) -> dict[str, str]:
    """Return the breed of each folder, in the order of the numbers; a folder and its number belong together."""
    number_of: dict[str, int] = {}
    folder_of: dict[int, str] = {}
    for names, number, part in listed:
        known = number_of.setdefault(names[0], number), folder_of.setdefault(number, names[0])
        if known != (number, names[0]):
            place = printable(folder / LISTS[part])
            what = f"gives the label {number} to {names[0]!r}, and elsewhere {known[1]!r} has the label {known[0]}"
            problems.refuse(place, what, GET_AGAIN)
    ordered = sorted(number_of, key=lambda name: number_of[name])
    return {printable(name): printable(name.partition("-")[2] or name) for name in ordered}


def _match(folder: Path, tree: Tree, listed: Sequence[Listed], problems: Problems) -> list[Picture]:
    """Return the listed pictures, training first; the others are skipped and counted."""
    missing = set(tree.files)
    pictures: list[Picture] = []
    for names, _, part in sorted(listed, key=lambda item: (item.part == "test", item.names)):
        if names in missing:
            missing.remove(names)
            path, group = tree.folder.joinpath(*names), tree.place(names[:1])
            pictures.append(Picture(path, "/".join(names), printable(names[0]), part, group))
            continue
        found = "which is listed twice" if tree.folder.joinpath(*names).is_file() else "which is missing"
        cure = "get the images again, or take it out of the list"
        problems.refuse(printable(folder / LISTS[part]), f"names {'/'.join(names)!r}, {found}", cure)
    for names in sorted(missing):
        problems.skip(tree.place(names), "is in neither list")
    return pictures
