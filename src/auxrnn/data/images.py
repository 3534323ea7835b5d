"""Images as sequences: one step is one pixel with all its channels, row by row.

Dimension letters of this layer: `N` examples, `H` and `W` rows and columns of an image, `C` its channels, `S` rows or
columns after averaging, `R` bytes of a record. Bytes count from 0 to 255, floats from 0 to 1.
"""

import gzip
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int64, Shaped, UInt8

from auxrnn.config import DataConfig
from auxrnn.data.examples import Example, Part, Problems, Source, Understood, refusing_damage
from auxrnn.data.spec import DatasetSpec, check_options, get_files
from auxrnn.errors import UsageError

CIFAR_SHAPE, CIFAR_CLASSES = (3, 32, 32), 10
GET_AGAIN = "delete it and get it again"
BLOCK_EXAMPLES = 1024

Pixels = Shaped[np.ndarray, "..."]
Images = UInt8[np.ndarray, "N H W C"] | Float32[np.ndarray, "N H W C"]
Sequences = UInt8[np.ndarray, "N T D"] | Float32[np.ndarray, "N T D"]
ImagePart = tuple[Part, UInt8[np.ndarray, "N H W C"], Int64[np.ndarray, " N"]]
"""A split, all its images and the numbers of their classes."""


class ImageFormat(NamedTuple):
    """How images become sequences: plain values, so that a run can record them and prediction repeat them."""

    height: int
    width: int
    channels: int
    canvas: int | None = None
    """Side of the blank square that the image is centered on."""
    image_size: int | None = None
    """Side that the image is then averaged down to."""
    permutation: str | None = None
    """Name of the fixed order in which the pixels are then read."""
    is_resized: bool = False
    """Whether pictures of any size are first resized to height x width."""
    steps_per_input: int = 1
    """Neighboring pixels that a network reads as one input."""

    @property
    def canvas_size(self) -> tuple[int, int]:
        """Height and width before averaging."""
        return (self.height, self.width) if self.canvas is None else (self.canvas, self.canvas)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the image whose pixels are the steps."""
        return self.canvas_size if self.image_size is None else (self.image_size, self.image_size)

    @property
    def num_steps(self) -> int:
        """Length of a sequence."""
        return math.prod(self.size)


def to_sequences(images_NHWC: Images, image_format: ImageFormat) -> Sequences:
    """Turn images of the source size into sequences; bytes stay bytes unless they are averaged."""
    source = (image_format.height, image_format.width, image_format.channels)
    if images_NHWC.shape[1:] != source:
        raise ValueError(f"images have the shape {images_NHWC.shape[1:]}; this format takes {source}")
    centered_NHWC = _center(images_NHWC, image_format.canvas_size)
    if image_format.size != image_format.canvas_size:
        centered_NHWC = average(centered_NHWC, image_format.size)
    x_NTD: Sequences = centered_NHWC.reshape(-1, image_format.num_steps, image_format.channels)
    if image_format.permutation is None:
        return x_NTD
    return x_NTD[:, permutation_order(image_format.permutation, image_format.num_steps)]


def permutation_order(name: str, num_steps: int) -> Int64[np.ndarray, " T"]:
    """Return the order in which a named permutation reads the steps: the same on every platform, forever."""
    digests = [hashlib.sha256(f"{name}:{position}".encode()).digest() for position in range(num_steps)]
    return np.array(sorted(range(num_steps), key=digests.__getitem__), dtype=np.int64)


def average(images_NHWC: Images, size: tuple[int, int]) -> Float32[np.ndarray, "N S1 S2 C"]:
    """Average images down to a height and width, each pixel weighted by the area that falls into the new one.

    Bytes are summed without any rounding before the one division, so the result is the nearest float to the true mean.
    """
    height, width = images_NHWC.shape[1:3]
    rows_SH, columns_SW = _overlaps(height, size[0]), _overlaps(width, size[1])
    sums_NSSC: Float64[np.ndarray, "N S1 S2 C"] = np.einsum(
        "sh,nhwc,tw->nstc", rows_SH, images_NHWC.astype(np.float64), columns_SW, optimize=True
    )
    white = 255 if images_NHWC.dtype == np.uint8 else 1
    sums_NSSC /= height * width * white
    return sums_NSSC.astype(np.float32)


def to_unit(x: Pixels) -> Float32[np.ndarray, "..."]:
    """Return pixels as floats from 0 to 1: bytes are divided by 255, floats are left alone."""
    return x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x.astype(np.float32, copy=False)


def to_pixels(x: Any) -> Pixels:
    """Return whole numbers from 0 to 255 as bytes, and any other array as it is."""
    try:
        array: Pixels = np.atleast_1d(x)
    except ValueError:
        array = np.array(["rows of different lengths"])
    if array.dtype.kind not in "iuf":
        raise UsageError("these are not pixels; give an array of numbers from 0 to 255, or of floats from 0 to 1")
    is_byte = array.dtype.kind in "iu" and array.size > 0 and array.min() >= 0 and array.max() <= 255
    return array.astype(np.uint8) if is_byte else array


def _center(images_NHWC: Images, size: tuple[int, int]) -> Shaped[np.ndarray, "N S1 S2 C"]:
    height, width = images_NHWC.shape[1:3]
    top, left = (size[0] - height) // 2, (size[1] - width) // 2
    return np.pad(images_NHWC, ((0, 0), (top, size[0] - height - top), (left, size[1] - width - left), (0, 0)))


def _overlaps(length: int, num_cells: int) -> Float64[np.ndarray, "S H"]:
    """Return how much of each pixel falls into each cell, in whole units: pixels span `num_cells`, cells `length`."""
    cells_S1, pixels_1H = np.arange(num_cells)[:, None] * length, np.arange(length)[None, :] * num_cells
    ends_SH = np.minimum(cells_S1 + length, pixels_1H + num_cells)
    overlaps_SH: Int64[np.ndarray, "S H"] = np.maximum(0, ends_SH - np.maximum(cells_S1, pixels_1H))
    return overlaps_SH.astype(np.float64)


def image_source(
    spec: DatasetSpec, config: DataConfig, form: ImageFormat, read: Callable[[Sequence[Path]], Iterable[ImagePart]]
) -> Source:
    """Return a dataset as a source, given how its files are read; options are checked before anything is downloaded."""
    check_options(config, ("image_size", "permutation") if form.permutation else ("image_size",), what=spec.name)
    if config.image_size is not None and config.image_size > min(form.size):
        raise UsageError(f"image_size is {config.image_size}; for {spec.name} it must be from 1 to {min(form.size)}")
    form = form._replace(image_size=config.image_size)
    files = get_files(spec, config.data_dir)
    num_examples = spec.train_examples + spec.test_examples
    num_bytes = num_examples * form.num_steps * form.channels * (1 if form.image_size is None else 4)
    colors, (height, width) = "gray" if form.channels == 1 else "color", form.size
    description = f"{colors} images of {width}x{height}, pixel by pixel"

    def understand(_problems: Problems, _like: object) -> Understood:
        examples = (example for part in read(files) for example in _to_examples(part, form))
        names = {str(number): class_name for number, class_name in enumerate(spec.class_names)}
        return Understood(description, form, examples, num_examples, num_bytes, names)

    options = {name: value for name, value in form._asdict().items() if name != "steps_per_input"}
    return Source(spec.name, files, {"reader": spec.name, **options}, understand)


def read_idx_files(files: Sequence[Path]) -> Iterator[ImagePart]:
    """Yield the splits of a dataset in MNIST's four files: training images and labels, test images and labels."""
    train_images, train_labels, test_images, test_labels = files
    yield "train", read_idx(train_images)[..., None], read_idx(train_labels).astype(np.int64)
    yield "test", read_idx(test_images)[..., None], read_idx(test_labels).astype(np.int64)


def read_idx(path: Path) -> UInt8[np.ndarray, "..."]:
    """Return the unsigned bytes of an IDX file (a magic number, the shape, the values), plain or packed with gzip."""
    with refusing_damage(path, GET_AGAIN):
        content = path.read_bytes()
        content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        shape = np.frombuffer(content, dtype=">u4", count=content[3], offset=4).tolist()
        if not content.startswith(b"\0\0\x08") or not shape:
            raise ValueError("not an IDX file of unsigned bytes")
        return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def read_cifar10(paths: Sequence[Path]) -> tuple[UInt8[np.ndarray, "N H W C"], Int64[np.ndarray, " N"]]:
    """Return the images and labels of one or more files, in their order; the images are a view, not contiguous."""
    records_NR = np.concatenate([_read_records(path) for path in paths])
    return records_NR[:, 1:].reshape(-1, *CIFAR_SHAPE).transpose(0, 2, 3, 1), records_NR[:, 0].astype(np.int64)


def _read_records(path: Path) -> UInt8[np.ndarray, "N R"]:
    """Return records of a label, then the red, green and blue plane of an image."""
    with refusing_damage(path, GET_AGAIN):
        records_NR = np.frombuffer(path.read_bytes(), dtype=np.uint8).reshape(-1, 1 + math.prod(CIFAR_SHAPE))
        if records_NR[:, 0].max() >= CIFAR_CLASSES:
            raise ValueError("a label that no class has")
        return records_NR


def _to_examples(images: ImagePart, form: ImageFormat) -> Iterator[Example]:
    part, images_NHWC, label_N = images
    for start in range(0, len(label_N), BLOCK_EXAMPLES):
        x_NTD = to_sequences(images_NHWC[start : start + BLOCK_EXAMPLES], form)
        for row, x_TD in enumerate(x_NTD, start=start):
            yield Example(x_TD, str(label_N[row]), f"{part} image {row}", part)
