"""Folders of images: `CLASS/*.png`, or `train/CLASS/*.png` with `val/` and `test/` beside it.

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

from auxrnn.data.examples import Example, ExampleError, Problems, Source, Understood
from auxrnn.data.folders import ORDER, PICTURE_SUFFIXES, Album, Placed, find_files, sort_by_folder
from auxrnn.data.formats import Format
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers.pictures import PictureHeader, decode, draw_crop, read_header, resize
from auxrnn.errors import UsageError

MOST_SIDE = 10_000
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

    file: Placed
    header: PictureHeader = PictureHeader(0, 0, is_gray=False)
    num_crops: int = 0


def image_folder_source(name: str, folder: Path, options: ImageOptions) -> Source:
    """Return all images below a folder, laid out as the top of this file says."""
    tree = find_files(folder, PICTURE_SUFFIXES)

    def sort(problems: Problems) -> Album:
        return sort_by_folder(tree, problems, has_labels=options.has_labels, kind="an image", cure=LAYOUT)

    plain = {"reader": "image_folder", "below": tree.below}
    return album_source(name, "folder of images", sort, options, plain, tree.paths())


def album_source(
    name: str,
    kind: str,
    sort: Callable[[Problems], Album],
    options: ImageOptions,
    plain: Mapping[str, str],
    files: Sequence[Path],
) -> Source:
    """Return pictures as a source, given how they are sorted into classes and parts.

    With `enlarge_to`, seeded crops follow each training picture until there are that many training examples. With a
    format, pictures fit it, and none are cropped. Pictures that cannot be read are skipped and counted.
    """
    if options.image_size is not None and not 1 <= options.image_size <= MOST_SIDE:
        raise UsageError(f"image_size is {options.image_size}; it must be from 1 to {MOST_SIDE}")

    def read(problems: Problems, like: Format | None) -> Understood:
        if not isinstance(like, ImageFormat | None):
            raise UsageError(f"{name} holds images, and the other data does not; give data of the same kind")
        album = sort(problems)
        pictures = [Picture(file) for file in album.files]
        headers = _in_threads(lambda picture: read_header(picture.file.path), pictures, problems, num_bytes=1)
        found = [picture._replace(header=header) for picture, header in headers]
        form = like or _choose_format(name, [picture.header for picture in found], options.image_size)
        if like is not None:
            found = [picture for picture in found if _has_size(picture, form, problems)]
        if like is None and options.enlarge_to is not None and options.has_labels:
            found = _plan_crops(found, options.enlarge_to)
        num_examples = sum(1 + picture.num_crops for picture in found)
        num_bytes = num_examples * form.height * form.width * form.channels
        album = album._replace(files=[picture.file for picture in found])
        size = f"{'resized to ' if form.is_resized else ''}{form.height}x{form.width} pixels"
        color, num_crops = "gray" if form.channels == 1 else "color", num_examples - len(found)
        crops = f", with {num_crops:,} random crops of the training images" if num_crops else ""
        description = f"{kind}, {album.describe('images')}, {size}, {color}{crops}"
        examples = _read_examples(found, form, album, problems)
        return Understood(description, form, examples, num_examples, num_bytes, album.class_names)

    return Source(name, files, {**plain, **options._asdict()}, read)


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
    num_training = sum(picture.file.part in TRAINING for picture in pictures)
    num_crops, numbers = enlarge_to - num_training, count()
    if num_crops < 0:
        found = f"--enlarge-to is {enlarge_to}, and there are {num_training} training images"
        raise UsageError(f"{found}; give at least {num_training}")

    def share(number: int) -> int:
        return num_crops * (number + 1) // num_training - num_crops * number // num_training

    return [p._replace(num_crops=share(next(numbers))) if p.file.part in TRAINING else p for p in pictures]


def _read_examples(
    pictures: Sequence[Picture], form: ImageFormat, album: Album, problems: Problems
) -> Iterator[Example]:
    """Yield each picture and then its crops; refuse groups of which no picture could be read."""
    filled = set[str]()
    sizes = [
        header.height * header.width * BYTES_PER_PIXEL + (1 + num_crops) * form.height * form.width * form.channels
        for _, header, num_crops in pictures
    ]
    num_bytes = max(sizes, default=1)
    with closing(_in_threads(lambda picture: _decode(picture, form), pictures, problems, num_bytes)) as decoded:
        for (file, *_), views in decoded:
            filled.add(file.group)
            yield Example(views[0], file.label, file.place, file.part)
            for number, view_TC in enumerate(views[1:], start=1):
                yield Example(view_TC, file.label, f"{file.place}, crop {number}", file.part, origin=file.place)
    album.refuse_empty(filled, "images", problems)


def _has_size(picture: Picture, form: ImageFormat, problems: Problems) -> bool:
    """Return whether a picture fits; refuse it otherwise, so that no test set shrinks unnoticed."""
    with problems.at(picture.file.place):
        _check_size(picture.header.height, picture.header.width, form)
        return True
    return False


def _check_size(height: int, width: int, form: ImageFormat) -> None:
    if not form.is_resized and (height, width) != (form.height, form.width):
        what = f"has {height}x{width} pixels (height x width) where {form.height}x{form.width} are needed"
        raise ExampleError(what, "resize it")


def _decode(picture: Picture, form: ImageFormat) -> list[UInt8[np.ndarray, "T C"]]:
    """Decode a picture once, for itself and all its crops."""
    image = decode(picture.file.path, channels=form.channels)
    _check_size(image.height, image.width, form)
    numbers = range(1, picture.num_crops + 1)
    boxes = [None, *(draw_crop("/".join(picture.file.names), number, image.size) for number in numbers)]
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
                with problems.at(picture.file.place, can_skip=True):
                    yield picture, future.result()
