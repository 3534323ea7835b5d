"""Folders of images: `CLASS/*.png`, or `train/CLASS/*.png` with `val/` and `test/` beside it.

The first level is the class, however deep its pictures lie below; a class called `unlabeled` has pictures without one.
"""

from pathlib import Path
from typing import NamedTuple

from auxrnn.data.examples import SPLIT_NAMES, Part, Problems, Source, Understood
from auxrnn.data.folders import Names, Tree, find_files, has_file, printable
from auxrnn.data.formats import Format
from auxrnn.data.readers.album import Picture, check_image_size, read_album

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
"""How the names of pictures end, in lower case; the format of a file is told from its content."""
UNLABELED: Part = "unlabeled"
ORDER: tuple[Part | None, ...] = (None, "train", "validation", "test", UNLABELED)
LAYOUT = "give it one sub-folder of images for each class, or train/, val/ and test/ with such folders in them"


class ImageOptions(NamedTuple):
    """What a user may ask of a folder of images."""

    image_size: int | None = None
    """Squeeze each image to a square of this side, whole; None: all must have one size, which is kept."""
    enlarge_to: int | None = None
    """Add seeded crops of the training images until there are so many."""
    has_labels: bool = True
    """Whether folders are classes; if not, every picture counts, wherever it is, and has no label."""


class ClassFolder(NamedTuple):
    """What the pictures of a folder are."""

    label: str | None
    part: Part | None


def find_image_folder(folder: Path, *, has_labels: bool = True) -> bool:
    """Return whether a folder holds images, in sub-folders where these are the labels; cheap."""
    return has_file(folder, suffixes=PICTURE_SUFFIXES, least_depth=2 if has_labels else 1)


def image_folder_source(name: str, folder: Path, options: ImageOptions) -> Source:
    """Return all images below a folder, laid out as the top of this file says."""
    check_image_size(options.image_size)
    tree = find_files(folder, suffixes=PICTURE_SUFFIXES)

    def read(problems: Problems, like: Format | None) -> Understood:
        tree.report(problems, what="an image")
        return read_album(
            _sort_into_classes(tree, problems) if options.has_labels else _take_all(tree, problems),
            name=name,
            kind="folder of images",
            image_size=options.image_size,
            enlarge_to=options.enlarge_to if options.has_labels else None,
            problems=problems,
            like=like,
        )

    # Labels and parts depend on all folders below this one; a checksum of the files knows only where they differ.
    plain = {"reader": "image_folder", "below": tree.shared_folder(), **options._asdict()}
    return Source(name, tree.paths(), plain, read)


def _sort_into_classes(tree: Tree, problems: Problems) -> list[Picture]:
    """Return each picture with the class and the part of its folder: training first, each part by name."""
    classes = _find_classes(tree, problems)
    if not any(found.label is not None for found in classes.values()):
        problems.refuse(printable(tree.folder), "has no class folders", LAYOUT)
        return []
    pictures: list[Picture] = []
    empty = dict.fromkeys(classes)
    for names, path in zip(tree.files, tree.paths(), strict=True):
        key = next((names[:depth] for depth in (1, 2) if names[:depth] in classes and len(names) > depth), None)
        if key is None:
            problems.skip(printable(path), "lies in no class folder")
            continue
        empty.pop(key, None)
        pictures.append(Picture(path, "/".join(names), *classes[key], group=tree.place(key)))
    for key in empty:
        problems.refuse(tree.place(key), "has no images", "add some or remove the folder")
    return sorted(pictures, key=lambda picture: ORDER.index(picture.part))


def _find_classes(tree: Tree, problems: Problems) -> dict[Names, ClassFolder]:
    """Return the folders that are classes: those of the first level, or of the second below train/, val/ and test/."""
    first = [names[0] for names in tree.folders if len(names) == 1]
    parted = {name for name in first if name.lower() in SPLIT_NAMES}
    has_classes = {names[0] for names in tree.folders if len(names) == 2}
    # A class may be called train, too: then it holds pictures itself, beside folders with other names.
    if not parted or not (parted & has_classes or parted | {UNLABELED} >= set(first)):
        return {(name,): _to_class(tree, (name,), None, problems) for name in first}
    classes: dict[Names, ClassFolder] = {}
    for names in tree.folders:
        if names[0] in parted and len(names) == 2:
            classes[names] = _to_class(tree, names, SPLIT_NAMES[names[0].lower()], problems)
        elif names[0].lower() == UNLABELED and len(names) == 1:
            classes[names] = ClassFolder(None, UNLABELED)
    filled = {names[0] for names in tree.files if len(names) > 1}
    for name in sorted(filled.intersection(first) - parted):
        if name.lower() != UNLABELED:
            cure = "move it away, or into train/ if it is a class"
            problems.refuse(tree.place((name,)), "lies beside train/, val/ and test/ and holds images", cure)
    return classes


def _to_class(tree: Tree, names: Names, part: Part | None, problems: Problems) -> ClassFolder:
    label = names[-1]
    if label.lower() == UNLABELED:
        return ClassFolder(None, UNLABELED)
    if not label.isprintable():
        problems.refuse(tree.place(names), "has a name that cannot be shown", "rename the folder")
    return ClassFolder(printable(label), part)


def _take_all(tree: Tree, problems: Problems) -> list[Picture]:
    group = printable(tree.folder)
    if not tree.files:
        problems.refuse(group, "has no images", f"give a folder with some ({', '.join(PICTURE_SUFFIXES)})")
    pairs = zip(tree.files, tree.paths(), strict=True)
    return [Picture(path, "/".join(names), None, None, group) for names, path in pairs]
