"""Images as sequences: one step is one pixel with all its channels, row by row.

Dimension letters of this layer: `N` examples, `H` and `W` rows and columns of an image, `C` its channels, `S` rows or
columns after averaging. Bytes count from 0 to 255, floats from 0 to 1.
"""

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int64, Shaped, UInt8

from auxrnn.data.pictures.decoding import PictureError, decode, quiet, reason, resize
from auxrnn.errors import RunError, UsageError

Pixels = Shaped[np.ndarray, "..."]
Images = UInt8[np.ndarray, "N H W C"] | Float32[np.ndarray, "N H W C"]
Sequences = UInt8[np.ndarray, "N T D"] | Float32[np.ndarray, "N T D"]

BLOCK_VALUES = 2**22
"""How many pixel values are averaged at a time, in double precision."""


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

    @property
    def without_resizing(self) -> "ImageFormat":
        """The same for images that have their final size already: only the permutation is left to do."""
        height, width = self.size
        return ImageFormat(height, width, self.channels, permutation=self.permutation)


class NamedSequences(NamedTuple):
    """Sequences from a user's files, each with the path as given, and `[i]` where one file holds several."""

    x_NTD: Float32[np.ndarray, "N T D"]
    names: tuple[str, ...]


def to_sequences(images_NHWC: Images, image_format: ImageFormat) -> Sequences:
    """Turn images of the source size into sequences; bytes stay bytes unless they are averaged."""
    source = (image_format.height, image_format.width, image_format.channels)
    if images_NHWC.shape[1:] != source:
        raise ValueError(f"images have the shape {images_NHWC.shape[1:]}; this format takes {source}")
    num_examples, num_steps = len(images_NHWC), image_format.num_steps
    is_averaged = image_format.size != image_format.canvas_size
    x_NTD = np.empty((num_examples, num_steps, image_format.channels), np.float32 if is_averaged else images_NHWC.dtype)
    order_T = np.arange(num_steps)
    if image_format.permutation is not None:
        order_T = permutation_order(image_format.permutation, num_steps)
    block_size = max(1, BLOCK_VALUES // (math.prod(image_format.canvas_size) * image_format.channels))
    for start in range(0, num_examples, block_size):
        block = slice(start, start + block_size)
        resized_NHWC = _center(images_NHWC[block], image_format.canvas_size)
        if is_averaged:
            resized_NHWC = average(resized_NHWC, image_format.size)
        x_NTD[block] = resized_NHWC.reshape(-1, num_steps, image_format.channels)[:, order_T]
    return x_NTD


def permutation_order(name: str, num_steps: int) -> Int64[np.ndarray, " T"]:
    """Give the order in which a named permutation reads the steps: the same on every platform, forever."""
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
    """Give pixels as floats from 0 to 1: bytes are divided by 255, floats are left alone."""
    return x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x.astype(np.float32, copy=False)


def read_image_files(paths: Sequence[Path], image_format: ImageFormat) -> NamedSequences:
    """Read a user's images (PNG, JPEG, ...; one or many in a .npy or .npz) as a dataset's images were read.

    An image has the source size (or any, where the format resizes), and goes through the whole format, or the final
    size, and is permuted only. Arrays may also hold sequences `[N, T]` or `[N, T, D]`, taken as they are. Transparency
    is ignored.
    """
    if not paths:
        raise UsageError("no image files are given; name at least one")
    sequences = [_read_one_file(path, image_format) for path in paths]
    names: list[str] = []
    for path, x_NTD in zip(paths, sequences, strict=True):
        names += [str(path)] if len(x_NTD) == 1 else [f"{path}[{index}]" for index in range(len(x_NTD))]
    return NamedSequences(np.concatenate(sequences), tuple(names))


def _center(images_NHWC: Images, size: tuple[int, int]) -> Shaped[np.ndarray, "N S1 S2 C"]:
    num_examples, height, width, channels = images_NHWC.shape
    if size == (height, width):
        return images_NHWC
    top, left = (size[0] - height) // 2, (size[1] - width) // 2
    canvas_NHWC = np.zeros((num_examples, *size, channels), images_NHWC.dtype)
    canvas_NHWC[:, top : top + height, left : left + width] = images_NHWC
    return canvas_NHWC


def _overlaps(length: int, num_cells: int) -> Float64[np.ndarray, "S H"]:
    """Say how much of each pixel falls into each cell, in whole units: pixels span `num_cells`, cells `length`."""
    cells_S1 = np.arange(num_cells)[:, None] * length
    pixels_1H = np.arange(length)[None, :] * num_cells
    starts_SH = np.maximum(cells_S1, pixels_1H)
    ends_SH = np.minimum(cells_S1 + length, pixels_1H + num_cells)
    overlaps_SH: Int64[np.ndarray, "S H"] = np.maximum(0, ends_SH - starts_SH)
    return overlaps_SH.astype(np.float64)


def _read_one_file(path: Path, image_format: ImageFormat) -> Float32[np.ndarray, "N T D"]:
    is_array = path.suffix.lower() in (".npy", ".npz")
    pixels = _read_array(path) if is_array else _read_picture(path, image_format)
    final = image_format.without_resizing
    for source in (image_format, final):
        images_NHWC = _as_examples(pixels, (source.height, source.width, source.channels))
        if images_NHWC is not None:
            return to_unit(to_sequences(images_NHWC, source))
    x_NTD = _as_examples(pixels, (image_format.num_steps, image_format.channels))
    if is_array and x_NTD is not None:
        return to_unit(x_NTD)
    raise RunError(_describe_wrong_size(path, pixels.shape, image_format, is_array=is_array))


def _as_examples(array: Pixels, shape: tuple[int, ...]) -> Pixels | None:
    """View an array as examples of a shape, whether it holds one or many, or give None where it does not fit."""
    shapes = (shape, shape[:-1]) if shape[-1] == 1 else (shape,)
    fits = any(found in (array.shape, array.shape[1:]) for found in shapes)
    return array.reshape(-1, *shape) if fits else None


def _describe_wrong_size(path: Path, shape: tuple[int, ...], image_format: ImageFormat, *, is_array: bool) -> str:
    sizes = dict.fromkeys(((image_format.height, image_format.width), image_format.size))
    wanted = " or ".join(f"{height}x{width}" for height, width in sizes)
    if not is_array:
        return f"{path} is an image of {shape[0]}x{shape[1]} pixels (height x width); resize it to {wanted}"
    found = f"an array of shape {list(shape)}"
    channels = "" if image_format.channels == 1 else f" with {image_format.channels} channels"
    return f"{path} holds {found}; give images of {wanted}{channels} or sequences of {image_format.num_steps} steps"


def _read_picture(path: Path, image_format: ImageFormat) -> UInt8[np.ndarray, "H W C"]:
    try:
        with quiet():
            image = decode(path, channels=image_format.channels)
    except PictureError as error:
        raise RunError(f"{path} {error}") from error
    return resize(image, (image_format.height, image_format.width) if image_format.is_resized else None)


def _read_array(path: Path) -> Pixels:
    array = _load_array(path)
    if array.size == 0 or (array.dtype != np.uint8 and array.dtype.kind != "f"):
        found = "nothing" if array.size == 0 else f"values of type {array.dtype}"
        raise RunError(f"{path} holds {found}; give pixels as uint8, or as floats from 0 to 1")
    if array.dtype != np.uint8 and not (array.min() >= 0 and array.max() <= 1):
        raise RunError(f"{path} holds floats outside of 0 to 1; divide them by their largest possible value")
    return array if array.dtype == np.uint8 else array.astype(np.float32)


def _load_array(path: Path) -> Pixels:
    try:
        # Numpy leaves a file that it opens itself open where an archive is damaged.
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            names = loaded.files
            name = names[0] if len(names) == 1 else "x"
            array: Pixels | None = loaded[name] if name in names else None
    except Exception as error:  # numpy and zipfile report damage by many kinds of exception
        raise RunError(f"{path} cannot be read as an array ({reason(error)}); save it with numpy again") from error
    if array is None:
        raise RunError(f"{path} holds {len(names)} arrays and none called x; save the images in it under the name x")
    return array
