"""Folders of images: `CLASS/*.png`, or `train/CLASS/*.png` with `val/` and `test/` beside it.

The first level is the class, however deep its pictures lie below; a class called `unlabeled` has pictures without one.
All headers are read first, then a handful of pictures at a time is decoded in threads, in order, handed on and
forgotten, so that memory does not grow with their number.
"""

import os
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import UInt8

from auxrnn.data.examples import SPLIT_NAMES, Example, ExampleError, Part, Problems, Source, Understood
from auxrnn.data.folders import Names, Tree, find_pictures
from auxrnn.data.formats import Format
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers.pictures import PictureHeader, decode, draw_crop, read_header, resize
from auxrnn.errors import UsageError
from auxrnn.files import printable

MOST_SIDE = 10_000
UNLABELED: Part = "unlabeled"
ORDER: tuple[Part | None, ...] = (None, "train", "validation", "test", UNLABELED)
TRAINING = ORDER[:2]
LAYOUT = "give it one sub-folder of images for each class, or train/, val/ and test/ with such folders in them"
NUM_THREADS = os.cpu_count() or 1
HANDFUL_BYTES = 2**28
"""About how much memory the pictures take that are decoded at a time; a single one may take more."""
BYTES_PER_PIXEL = 8
"""What pillow needs for a pixel: four bytes, twice when it is converted."""

Result = TypeVar("Result")


class ImageOptions(NamedTuple):
    """What a user may ask of a folder of images."""

    image_size: int | None = None
    """Squeeze each image to a square of this side, whole; None: all must have one size, which is kept."""
    enlarge_to: int | None = None
    """Add seeded crops of the training images until there are that many."""
    has_labels: bool = True
    """Whether folders are classes; if not, every picture counts, wherever it is, and has no label."""


class Picture(NamedTuple):
    """A picture file, and what becomes known of it."""

    path: Path
    names: Names
    """Its path below the folder that the user named: what its crops depend on."""
    label: str | None
    part: Part | None
    group: str
    """The folder of its class, which may not come out empty."""
    header: PictureHeader = PictureHeader(0, 0, is_gray=False)
    num_crops: int = 0


class Album(NamedTuple):
    """All pictures of a source, training first."""

    kind: str
    pictures: Sequence[Picture]
    groups: Sequence[str]
    """The folders of all classes, with pictures or without."""
    class_names: Mapping[str, str] | None = None


def image_folder_source(name: str, folder: Path, options: ImageOptions) -> Source:
    """Return all images below a folder, laid out as the top of this file says."""
    tree = find_pictures(folder)
    # Labels and parts depend on all folders below this one; a checksum of the files knows only where they differ.
    below = os.path.commonpath(["/".join(names[:-1]) for names in tree.files]) if tree.files else ""
    plain = {"reader": "image_folder", "below": below}
    return album_source(name, options, lambda problems: sort_by_folder(tree, options, problems), plain, tree.paths())


def album_source(
    name: str, options: ImageOptions, sort: Callable[[Problems], Album], plain: Mapping[str, str], files: Sequence[Path]
) -> Source:
    """Return pictures as a source, given how they are sorted into classes and parts.

    With `enlarge_to`, seeded crops follow each training picture until there are that many training examples. With a
    format, pictures fit it, and none are cropped. Pictures that cannot be read are skipped and counted.
    """
    if options.image_size is not None and not 1 <= options.image_size <= MOST_SIDE:
        raise UsageError(f"image_size is {options.image_size}; it must be from 1 to {MOST_SIDE}")

    def read(problems: Problems, like: Format | None) -> Understood:
        kind, pictures, groups, class_names = sort(problems)
        headers = _in_threads(lambda picture: read_header(picture.path), pictures, problems, num_bytes=1)
        found = [picture._replace(header=header) for picture, header in headers]
        if not isinstance(like, ImageFormat | None):
            raise UsageError(f"{name} holds images, and the other data does not; give data of the same kind")
        form = like or _choose_format(name, [picture.header for picture in found], options.image_size)
        if like is not None:
            found = [picture for picture in found if _has_size(picture, form, problems)]
        if like is None and options.enlarge_to is not None and options.has_labels:
            found = _plan_crops(found, options.enlarge_to)
        num_examples = sum(1 + picture.num_crops for picture in found)
        num_bytes = num_examples * form.height * form.width * form.channels
        examples = _read_examples(found, form, groups, problems)
        return Understood(f"{kind}, {_describe(found, form)}", form, examples, num_examples, num_bytes, class_names)

    return Source(name, files, {**plain, **options._asdict()}, read)


def sort_by_folder(tree: Tree, options: ImageOptions, problems: Problems) -> Album:
    """Return each picture with the class and the part of its folder."""
    tree.report(problems)
    kind, pairs = "folder of images", list(zip(tree.files, tree.paths(), strict=True))
    if not options.has_labels:
        group = printable(tree.folder)
        return Album(kind, [Picture(path, names, None, None, group) for names, path in pairs], [group])
    first = {names[0] for names in tree.folders if len(names) == 1}
    parted = {name for name in first if name.lower() in SPLIT_NAMES}
    has_folders = {names[0] for names in tree.folders if len(names) == 2}
    # A class may be called train, too: then it holds pictures itself, beside folders with other names.
    is_parted = bool(parted and (parted & has_folders or {*parted, UNLABELED} >= first))
    classes = [folder for folder in tree.folders if _find_class((*folder, ""), is_parted=is_parted) == folder]
    if all(names[-1].lower() == UNLABELED for names in classes):
        problems.refuse(printable(tree.folder), "has no class folders", LAYOUT)
        return Album(kind, [], [])
    pictures = []
    for names, path in pairs:
        folder = _find_class(names, is_parted=is_parted)
        if folder is None:
            problems.skip(printable(path), "lies in no class folder")
            continue
        label, part = printable(folder[-1]), SPLIT_NAMES[folder[0].lower()] if len(folder) == 2 else None
        picture = Picture(path, names, label, part, tree.place(folder))
        pictures.append(picture._replace(label=None, part=UNLABELED) if label.lower() == UNLABELED else picture)
    pictures.sort(key=lambda picture: ORDER.index(picture.part))
    return Album(kind, pictures, [tree.place(folder) for folder in classes])


def _find_class(names: Names, *, is_parted: bool) -> Names | None:
    """Return the folder of the class that a file belongs to."""
    depth = 1
    if is_parted and names[0].lower() != UNLABELED:
        depth = 2 if names[0].lower() in SPLIT_NAMES else len(names)
    return names[:depth] if len(names) > depth else None


def _choose_format(name: str, headers: Sequence[PictureHeader], image_size: int | None) -> ImageFormat:
    channels = 1 if headers and all(header.is_gray for header in headers) else 3
    if image_size is not None:
        return ImageFormat(image_size, image_size, channels, is_resized=True)
    # If no picture can be read, the format does not matter: the reader refuses the folder.
    sizes = list(dict.fromkeys((header.height, header.width) for header in headers)) or [(1, 1)]
    if len(sizes) > 1:
        found = " and ".join(f"{width}x{height}" for height, width in sizes[:2])
        raise UsageError(f"{name}: images have {len(sizes)} different sizes, such as {found}; give --image-size")
    return ImageFormat(*sizes[0], channels)


def _plan_crops(pictures: Sequence[Picture], enlarge_to: int) -> list[Picture]:
    """Share the crops evenly among the training pictures: two counts differ by one at most, also inside a class."""
    num_training = sum(picture.part in TRAINING for picture in pictures)
    num_crops, numbers = enlarge_to - num_training, count()
    if num_crops < 0:
        found = f"--enlarge-to is {enlarge_to}, and there are {num_training} training images"
        raise UsageError(f"{found}; give at least {num_training}")

    def share(number: int) -> int:
        return num_crops * (number + 1) // num_training - num_crops * number // num_training

    return [p._replace(num_crops=share(next(numbers))) if p.part in TRAINING else p for p in pictures]


def _describe(pictures: Sequence[Picture], form: ImageFormat) -> str:
    labels = {picture.label for picture in pictures} - {None}
    classes = f"{len(labels)} classes, " if labels else ""
    size = f"{'resized to ' if form.is_resized else ''}{form.height}x{form.width} pixels"
    num_crops = sum(picture.num_crops for picture in pictures)
    crops = f", with {num_crops:,} random crops of the training images" if num_crops else ""
    return f"{len(pictures):,} images, {classes}{size}, {'gray' if form.channels == 1 else 'color'}{crops}"


def _read_examples(
    pictures: Sequence[Picture], form: ImageFormat, groups: Sequence[str], problems: Problems
) -> Iterator[Example]:
    """Yield each picture and then its crops; refuse groups of which no picture could be read."""
    empty = dict.fromkeys(groups)
    sizes = [
        header.height * header.width * BYTES_PER_PIXEL + (1 + num_crops) * form.height * form.width * form.channels
        for *_, header, num_crops in pictures
    ]
    num_bytes = max(sizes, default=1)
    with closing(_in_threads(lambda picture: _decode(picture, form), pictures, problems, num_bytes)) as decoded:
        for picture, views in decoded:
            empty.pop(picture.group, None)
            place = printable(picture.path)
            yield Example(views[0], picture.label, place, picture.part)
            for number, view_TC in enumerate(views[1:], start=1):
                yield Example(view_TC, picture.label, f"{place}, crop {number}", picture.part, origin=place)
    for group in empty:
        problems.refuse(group, "has no images that can be read", "add some or remove the folder")


def _has_size(picture: Picture, form: ImageFormat, problems: Problems) -> bool:
    """Return whether a picture fits; refuse it otherwise, so that no test set shrinks unnoticed."""
    with problems.at(printable(picture.path)):
        _check_size(picture.header.height, picture.header.width, form)
        return True
    return False


def _check_size(height: int, width: int, form: ImageFormat) -> None:
    if not form.is_resized and (height, width) != (form.height, form.width):
        what = f"has {height}x{width} pixels (height x width) where {form.height}x{form.width} are needed"
        raise ExampleError(what, "resize it")


def _decode(picture: Picture, form: ImageFormat) -> list[UInt8[np.ndarray, "T C"]]:
    """Decode a picture once, for itself and all its crops."""
    image = decode(picture.path, channels=form.channels)
    _check_size(image.height, image.width, form)
    numbers = range(1, picture.num_crops + 1)
    boxes = [None, *(draw_crop("/".join(picture.names), number, image.size) for number in numbers)]
    return [resize(image, (form.height, form.width), box=box).reshape(-1, form.channels) for box in boxes]


def _in_threads(
    function: Callable[[Picture], Result], pictures: Sequence[Picture], problems: Problems, num_bytes: int
) -> Generator[tuple[Picture, Result], None, None]:
    """Yield each picture with what a function makes of it, in order; skip those that raise `ExampleError`.

    A picture takes at most `num_bytes` of memory, which decides how many are read at a time.
    """
    step = max(1, min(16 * NUM_THREADS, HANDFUL_BYTES // num_bytes))
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        for start in range(0, len(pictures), step):
            handful = pictures[start : start + step]
            # Warnings are switched for the whole process, never inside a thread.
            with warnings.catch_warnings(action="ignore"):
                futures = [pool.submit(function, picture) for picture in handful]
                wait(futures)
            for picture, future in zip(handful, futures, strict=True):
                with problems.at(printable(picture.path), can_skip=True):
                    yield picture, future.result()
