"""Many picture files become examples: looked at once for their sizes, then decoded by all cores, in order.

Memory does not grow with the number of pictures: a handful is decoded, handed on and forgotten.
"""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import UInt8

from auxrnn.data.examples import Example, Part, Problems, Understood
from auxrnn.data.folders import printable
from auxrnn.data.formats import Format
from auxrnn.data.images import ImageFormat
from auxrnn.data.pictures.decoding import Header, PictureError, decode, draw_crop, quiet, read_header, resize
from auxrnn.errors import UsageError

MOST_SIDE = 10_000
PICTURES_PER_THREAD = 16
HANDFUL_BYTES = 2**28
"""About how much memory the pictures take that are decoded at a time; a single one may take more."""
BYTES_PER_PIXEL = 8
"""What pillow needs for a pixel: four bytes, twice when it is converted."""
NAMED_SIZES = 3

Item = TypeVar("Item")
Result = TypeVar("Result")
Pixels = UInt8[np.ndarray, "T C"]


class Picture(NamedTuple):
    """A picture that was found but not opened."""

    path: Path
    relative: str
    """Its path below the folder that the user named: what its crops depend on."""
    label: str | None
    part: Part | None
    group: str
    """The folder of its class, which may not come out empty."""

    @property
    def place(self) -> str:
        """The file, as an error message names it."""
        return printable(self.path)


class Wanted(NamedTuple):
    """What a user may ask of pictures."""

    image_size: int | None = None
    enlarge_to: int | None = None


class Planned(NamedTuple):
    """A picture, what its header says, and how many crops are made of it."""

    picture: Picture
    header: Header
    num_crops: int = 0


def check_image_size(image_size: int | None) -> None:
    """Refuse a side that no picture can have."""
    if image_size is not None and not 1 <= image_size <= MOST_SIDE:
        raise UsageError(f"image_size is {image_size}; it must be from 1 to {MOST_SIDE}")


def read_album(
    pictures: Sequence[Picture], wanted: Wanted, *, name: str, kind: str, problems: Problems, like: Format | None
) -> Understood:
    """Look at all pictures, and say what they are; those that cannot be read are left out and counted.

    With an enlargement, crops of each training picture follow it, all resized as the picture is. With a format (`like`)
    pictures fit it, and none are cropped.
    """
    found = _read_headers(pictures, problems)
    if like is None:
        form = _choose_format([planned.header for planned in found], wanted.image_size, name)
        planned = found if wanted.enlarge_to is None else _plan_crops(found, wanted.enlarge_to)
    else:
        form = _check_kind(like, name)
        planned = found if form.is_resized else _keep_size(found, form, problems)
    num_examples = sum(1 + item.num_crops for item in planned)
    return Understood(
        description=f"{kind}, {_describe(planned, form, num_examples)}",
        format=form,
        examples=_read_examples(planned, form, problems),
        num_examples=num_examples,
        num_bytes=num_examples * form.height * form.width * form.channels,
    )


def _read_headers(pictures: Sequence[Picture], problems: Problems) -> list[Planned]:
    found: list[Planned] = []
    for picture, future in _in_threads(_read_one_header, pictures, lambda _picture: 1):
        try:
            found.append(Planned(picture, future.result()))
        except PictureError as error:
            problems.skip(picture.place, error.what)
    _refuse_empty(pictures, Counter(planned.picture.group for planned in found), problems)
    return found


def _read_one_header(picture: Picture) -> Header:
    return read_header(picture.path)


def _refuse_empty(pictures: Sequence[Picture], num_read: Counter[str], problems: Problems) -> None:
    for group in dict.fromkeys(picture.group for picture in pictures):
        if not num_read[group]:
            problems.refuse(group, "has no images that can be read", "add some or remove the folder")


def _choose_format(headers: Sequence[Header], image_size: int | None, name: str) -> ImageFormat:
    channels = 1 if headers and all(header.is_gray for header in headers) else 3
    if image_size is not None:
        return ImageFormat(image_size, image_size, channels, is_resized=True)
    sizes = [size for size, _ in Counter((header.width, header.height) for header in headers).most_common()]
    if len(sizes) > 1:
        some = [f"{width}x{height}" for width, height in sizes[:NAMED_SIZES]]
        listed = ", ".join(some + ["..."] * (len(sizes) > NAMED_SIZES))
        raise UsageError(f"{name}: images have different sizes ({listed}); give --image-size")
    # Nothing is left of the pictures only where problems are gathered; then any size will do.
    width, height = sizes[0] if sizes else (1, 1)
    return ImageFormat(height, width, channels)


def _check_kind(like: Format, name: str) -> ImageFormat:
    if not isinstance(like, ImageFormat):
        raise UsageError(f"{name} holds images, which the other data are not; give data of the same kind")
    return like


def _keep_size(found: Sequence[Planned], form: ImageFormat, problems: Problems) -> list[Planned]:
    """Keep pictures of the size that a format has; it resizes none."""
    kept: list[Planned] = []
    for planned in found:
        height, width, _ = planned.header
        if (height, width) == (form.height, form.width):
            kept.append(planned)
            continue
        what = f"is an image of {height}x{width} pixels (height x width)"
        problems.refuse(planned.picture.place, what, f"resize it to {form.height}x{form.width}")
    return kept


def _plan_crops(found: Sequence[Planned], enlarge_to: int) -> list[Planned]:
    """Share the crops evenly among the training pictures: two counts differ by one at most, also inside a class."""
    num_training = sum(_is_training(planned.picture) for planned in found)
    if enlarge_to < num_training:
        cure = f"give at least {num_training}"
        raise UsageError(f"--enlarge-to is {enlarge_to}, and there are {num_training} training images; {cure}")
    plan: list[Planned] = []
    num_seen = num_given = 0
    for planned in found:
        if _is_training(planned.picture):
            num_seen += 1
            due = (enlarge_to - num_training) * num_seen // num_training
            plan.append(planned._replace(num_crops=due - num_given))
            num_given = due
        else:
            plan.append(planned)
    return plan


def _is_training(picture: Picture) -> bool:
    return picture.part in (None, "train")


def _describe(planned: Sequence[Planned], form: ImageFormat, num_examples: int) -> str:
    labels = {item.picture.label for item in planned} - {None}
    classes = f"{len(labels)} classes, " if labels else ""
    size = f"{'resized to ' if form.is_resized else ''}{form.height}x{form.width} pixels"
    colors = "gray" if form.channels == 1 else "color"
    num_crops = num_examples - len(planned)
    crops = f", with {num_crops:,} random crops of the training images" if num_crops else ""
    return f"{len(planned):,} images, {classes}{size}, {colors}{crops}"


def _read_examples(planned: Sequence[Planned], form: ImageFormat, problems: Problems) -> Iterator[Example]:
    num_read: Counter[str] = Counter()

    def count_bytes(item: Planned) -> int:
        num_values = form.height * form.width * form.channels * (1 + item.num_crops)
        return num_values + item.header.height * item.header.width * BYTES_PER_PIXEL

    with closing(_in_threads(lambda item: _read_one(item, form), planned, count_bytes)) as results:
        for item, future in results:
            try:
                views = future.result()
            except PictureError as error:
                problems.skip(item.picture.place, error.what)
                continue
            num_read[item.picture.group] += 1
            yield from _to_examples(item.picture, views)
    _refuse_empty([item.picture for item in planned], num_read, problems)


def _to_examples(picture: Picture, views: Sequence[Pixels]) -> Iterator[Example]:
    place, label, part = picture.place, picture.label, picture.part
    yield Example(views[0], label, place, part)
    for number, view_TC in enumerate(views[1:], start=1):
        yield Example(view_TC, label, f"{place}, crop {number}", part, origin=place)


def _read_one(item: Planned, form: ImageFormat) -> list[Pixels]:
    """Decode a picture once, for itself and all its crops."""
    image = decode(item.picture.path, channels=form.channels)
    size = (form.height, form.width)
    if not form.is_resized and (image.height, image.width) != size:
        raise PictureError("is of another size than its header said", "save it again")
    crops = [draw_crop(item.picture.relative, number, image.size) for number in range(1, item.num_crops + 1)]
    views = [resize(image, size), *(resize(image, size, box=box) for box in crops)]
    return [view_HWC.reshape(-1, form.channels) for view_HWC in views]


def _in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], cost: Callable[[Item], int]
) -> Generator[tuple[Item, "Future[Result]"], None, None]:
    """Give all items in order, each with what a function made of it; nothing runs while the caller has its turn."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for handful in _in_handfuls(items, cost):
            with quiet():
                futures = [pool.submit(function, item) for item in handful]
                wait(futures)
            yield from zip(handful, futures, strict=True)


def _in_handfuls(items: Sequence[Item], cost: Callable[[Item], int]) -> Iterator[list[Item]]:
    handful: list[Item] = []
    total = 0
    for item in items:
        if handful and (
            len(handful) >= PICTURES_PER_THREAD * (os.cpu_count() or 1) or total + cost(item) > HANDFUL_BYTES
        ):
            yield handful
            handful, total = [], 0
        handful.append(item)
        total += cost(item)
    if handful:
        yield handful
