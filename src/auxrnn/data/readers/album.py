"""Many picture files become examples: their headers are read first, then all are decoded in threads, in order.

Memory does not grow with the number of pictures: a handful is decoded, handed on and forgotten.
"""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import UInt8

from auxrnn.data.examples import Example, ExampleError, Part, Problems, Understood
from auxrnn.data.folders import printable
from auxrnn.data.formats import Format
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers.decoding import PictureHeader, decode, draw_crop, quiet, read_header, resize
from auxrnn.errors import UsageError

MOST_SIDE = 10_000
NUM_THREADS = os.cpu_count() or 1
HANDFUL_PICTURES = 16 * NUM_THREADS
HANDFUL_BYTES = 2**28
"""About how much memory the pictures take that are decoded at a time; a single one may take more."""
BYTES_PER_PIXEL = 8
"""What pillow needs for a pixel: four bytes, twice when it is converted."""
NAMED_SIZES = 3

Result = TypeVar("Result")
Pixels = UInt8[np.ndarray, "T C"]


class Picture(NamedTuple):
    """A picture file, and what becomes known of it."""

    path: Path
    relative: str
    """Its path below the folder that the user named: what its crops depend on."""
    label: str | None
    part: Part | None
    group: str
    """The folder of its class, which may not come out empty."""
    header: PictureHeader = PictureHeader(0, 0, is_gray=False)
    num_crops: int = 0

    @property
    def place(self) -> str:
        """The file, as an error message names it."""
        return printable(self.path)

    @property
    def is_training(self) -> bool:
        """Whether it may be cropped."""
        return self.part in (None, "train")


def check_image_size(image_size: int | None) -> None:
    """Refuse a side that no picture can have."""
    if image_size is not None and not 1 <= image_size <= MOST_SIDE:
        raise UsageError(f"image_size is {image_size}; it must be from 1 to {MOST_SIDE}")


def read_album(
    pictures: Sequence[Picture],
    *,
    name: str,
    kind: str,
    image_size: int | None,
    enlarge_to: int | None,
    problems: Problems,
    like: Format | None,
) -> Understood:
    """Read the headers of all pictures, and return what they are; those that cannot be read are skipped and counted.

    With `enlarge_to`, seeded crops follow each training picture until there are so many training examples. With a
    format (`like`), pictures fit it, and none are cropped.
    """
    headers = _in_threads(lambda picture: read_header(picture.path), pictures, problems, cost=lambda _picture: 1)
    found = [picture._replace(header=header) for picture, header in headers]
    if like is None:
        form = _choose_format([picture.header for picture in found], image_size, name)
        found = found if enlarge_to is None else _plan_crops(found, enlarge_to)
    elif isinstance(like, ImageFormat):
        form = like
        found = found if form.is_resized else [picture for picture in found if _has_size(picture, form, problems)]
    else:
        raise UsageError(f"{name} holds images, and the other data does not; give data of the same kind")
    num_examples = sum(1 + picture.num_crops for picture in found)
    groups = dict.fromkeys(picture.group for picture in pictures)
    return Understood(
        description=f"{kind}, {_describe(found, form)}",
        format=form,
        examples=_read_examples(found, form, groups, problems),
        num_examples=num_examples,
        num_bytes=num_examples * form.height * form.width * form.channels,
    )


def _choose_format(headers: Sequence[PictureHeader], image_size: int | None, name: str) -> ImageFormat:
    channels = 1 if headers and all(header.is_gray for header in headers) else 3
    if image_size is not None:
        return ImageFormat(image_size, image_size, channels, is_resized=True)
    sizes = [size for size, _count in Counter(header[:2] for header in headers).most_common()]
    if len(sizes) > 1:
        some = [f"{width}x{height}" for height, width in sizes[:NAMED_SIZES]]
        listed = ", ".join(some + ["..."] * (len(sizes) > NAMED_SIZES))
        raise UsageError(f"{name}: images have different sizes ({listed}); give --image-size")
    # If no picture can be read, the format does not matter: the reader refuses the folder.
    height, width = sizes[0] if sizes else (1, 1)
    return ImageFormat(height, width, channels)


def _has_size(picture: Picture, form: ImageFormat, problems: Problems) -> bool:
    height, width, _is_gray = picture.header
    if (height, width) == (form.height, form.width):
        return True
    what = f"is an image of {height}x{width} pixels (height x width)"
    problems.refuse(picture.place, what, f"resize it to {form.height}x{form.width}")
    return False


def _plan_crops(pictures: Sequence[Picture], enlarge_to: int) -> list[Picture]:
    """Share the crops evenly among the training pictures: two counts differ by one at most, also inside a class."""
    num_training = sum(picture.is_training for picture in pictures)
    if enlarge_to < num_training:
        found = f"--enlarge-to is {enlarge_to}, and there are {num_training} training images"
        raise UsageError(f"{found}; give at least {num_training}")
    planned = []
    num_seen = num_given = 0
    for picture in pictures:
        num_seen += picture.is_training
        num_due = (enlarge_to - num_training) * num_seen // max(num_training, 1)
        planned.append(picture._replace(num_crops=num_due - num_given))
        num_given = num_due
    return planned


def _describe(pictures: Sequence[Picture], form: ImageFormat) -> str:
    labels = {picture.label for picture in pictures} - {None}
    classes = f"{len(labels)} classes, " if labels else ""
    size = f"{'resized to ' if form.is_resized else ''}{form.height}x{form.width} pixels"
    colors = "gray" if form.channels == 1 else "color"
    num_crops = sum(picture.num_crops for picture in pictures)
    crops = f", with {num_crops:,} random crops of the training images" if num_crops else ""
    return f"{len(pictures):,} images, {classes}{size}, {colors}{crops}"


def _read_examples(
    pictures: Sequence[Picture], form: ImageFormat, groups: dict[str, None], problems: Problems
) -> Iterator[Example]:
    """Yield each picture and then its crops; refuse groups of which no picture could be read."""
    empty = dict(groups)

    def count_bytes(picture: Picture) -> int:
        num_values = form.height * form.width * form.channels * (1 + picture.num_crops)
        return num_values + picture.header.height * picture.header.width * BYTES_PER_PIXEL

    with closing(_in_threads(lambda picture: _decode(picture, form), pictures, problems, cost=count_bytes)) as decoded:
        for picture, views in decoded:
            empty.pop(picture.group, None)
            place, label, part = picture.place, picture.label, picture.part
            yield Example(views[0], label, place, part)
            for number, view_TC in enumerate(views[1:], start=1):
                yield Example(view_TC, label, f"{place}, crop {number}", part, origin=place)
    for group in empty:
        problems.refuse(group, "has no images that can be read", "add some or remove the folder")


def _decode(picture: Picture, form: ImageFormat) -> list[Pixels]:
    """Decode a picture once, for itself and all its crops."""
    image = decode(picture.path, channels=form.channels)
    size = (form.height, form.width)
    if not form.is_resized and (image.height, image.width) != size:
        raise ExampleError("is of another size than its header said", "save it again")
    crops = [draw_crop(picture.relative, number, image.size) for number in range(1, picture.num_crops + 1)]
    views = [resize(image, size), *(resize(image, size, box=box) for box in crops)]
    return [view_HWC.reshape(-1, form.channels) for view_HWC in views]


def _in_threads(
    function: Callable[[Picture], Result],
    pictures: Sequence[Picture],
    problems: Problems,
    *,
    cost: Callable[[Picture], int],
) -> Generator[tuple[Picture, Result], None, None]:
    """Yield each picture with what a function makes of it, in order; skip those that raise `ExampleError`."""

    def attempt(picture: Picture) -> Result | ExampleError:
        try:
            return function(picture)
        except ExampleError as error:
            return error

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        for handful in _in_handfuls(pictures, cost):
            with quiet():
                results = list(pool.map(attempt, handful))
            for picture, result in zip(handful, results, strict=True):
                if isinstance(result, ExampleError):
                    problems.skip(picture.place, result.what)
                else:
                    yield picture, result


def _in_handfuls(pictures: Sequence[Picture], cost: Callable[[Picture], int]) -> Iterator[list[Picture]]:
    handful: list[Picture] = []
    total = 0
    for picture in pictures:
        if handful and (len(handful) >= HANDFUL_PICTURES or total + cost(picture) > HANDFUL_BYTES):
            yield handful
            handful, total = [], 0
        handful.append(picture)
        total += cost(picture)
    if handful:
        yield handful
