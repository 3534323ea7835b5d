"""One picture file becomes pixels: opened, turned upright, converted to bytes, cropped, resized.

A picture that cannot be used raises `ExampleError`; nothing else leaves this file. Dimension letters: `H` and `W` rows
and columns of a picture, `C` its channels.
"""

import hashlib
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import ExifTags, Image

from auxrnn.data.examples import ExampleError

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "WEBP", "TIFF")
"""The kinds of pictures, as pillow calls them; it knows others, and some of these start programs (EPS)."""
MOST_PIXELS = 100_000_000
"""A picture of more pixels is not decoded: a few hundred bytes of a file can stand for gigabytes."""
GRAY_MODES = ("1", "L", "LA", "I", "F", "I;16", "I;16L", "I;16B", "I;16N")
"""What pillow calls pixels without color; palettes count as color."""
WIDE_MODES = GRAY_MODES[3:]
"""What pillow calls pixels of more than 8 bits; its own conversion would cut the values off."""
BAND_PIXELS = 2**20
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What turns a photograph upright, by the EXIF orientation that its camera wrote into it."""

Box = tuple[int, int, int, int]
"""Left, top, right and bottom of a part of a picture, in pixels."""


class PictureHeader(NamedTuple):
    """What is known of a picture without decoding it; the size is that of the upright picture."""

    height: int
    width: int
    is_gray: bool


def read_header(path: Path) -> PictureHeader:
    """Return the size and color of a picture, from the first bytes of its file."""
    with _opened(path) as image:
        width, height = image.size
        is_turned = _orientation(image) >= 5
        return PictureHeader(*((width, height) if is_turned else (height, width)), image.mode in GRAY_MODES)


def decode(path: Path, *, channels: int) -> Image.Image:
    """Return a picture upright, in gray (one channel) or in color (three), whatever its mode.

    Transparency is ignored; of an animation or several pages, the first counts. 16 bits of gray are divided by 257,
    floats from 0 to 1 multiplied by 255, both rounded.
    """
    with _opened(path) as image:
        method = UPRIGHT.get(_orientation(image))
        image.load()
        # Pillow would carry a transparent color through each conversion, and warns where it cannot.
        image.info.pop("transparency", None)
        narrow = _narrow(image) if image.mode in WIDE_MODES else image
        if narrow.mode not in ("RGB", *GRAY_MODES):
            narrow = narrow.convert("RGB")  # some kinds of color have no way to gray but this
        mode = "L" if channels == 1 else "RGB"
        converted = narrow if narrow.mode == mode else narrow.convert(mode)
        return converted if method is None else converted.transpose(method)


def resize(
    image: Image.Image, size: tuple[int, int] | None = None, *, box: Box | None = None
) -> UInt8[np.ndarray, "H W C"]:
    """Return the pixels of a picture, or of a box in it, squeezed to a height and width; nothing is cut off.

    Each pixel of a smaller picture is the average of those that fall into it; a larger picture is bilinear.
    """
    left, top, right, bottom = box or (0, 0, *image.size)
    height, width = size or (bottom - top, right - left)
    is_smaller = height <= bottom - top and width <= right - left
    method = Image.Resampling.BOX if is_smaller else Image.Resampling.BILINEAR
    pixels: UInt8[np.ndarray, "..."] = np.asarray(image.resize((width, height), method, (left, top, right, bottom)))
    return pixels.reshape(height, width, -1)


def draw_crop(name: str, number: int, size: tuple[int, int]) -> Box:
    """Draw one of a picture's crops: each side from 60 to 100 % of the picture's (width, height), anywhere in it.

    It depends on the picture's name, the number and the size alone, so that it is the same everywhere.
    """
    digest = hashlib.sha256(f"{name}:{number}".encode("utf-8", "surrogateescape")).digest()
    draws = [int.from_bytes(digest[start : start + 8], "big") for start in range(0, 32, 8)]
    (left, right), (top, bottom) = (_draw_span(size[axis], draws[axis], draws[axis + 2]) for axis in (0, 1))
    return left, top, right, bottom


@contextmanager
def quiet() -> Iterator[None]:
    """Silence pillow's warnings: what is wrong with a picture is said once, by name.

    Warnings are switched for the whole process, so this belongs around threads, never inside one.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def reason(error: Exception) -> str:
    """Return in a few words why a file could not be read."""
    text = error.strerror if isinstance(error, OSError) else None
    return text or "it is damaged or of another kind"


def _draw_span(length: int, *draws: int) -> tuple[int, int]:
    """Turn two draws of 64 bits into a part of a line: its length first, then where it lies."""
    least = -(-length * 6 // 10)
    span = least + (draws[0] * (length - least + 1) >> 64)
    start = draws[1] * (length - span + 1) >> 64
    return start, start + span


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    try:
        # Opening a pipe would wait for its other end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _unreadable("it is not a file")
        # Given a path, pillow maps some files into memory, and then turns some kinds of TIFF wrongly.
        with path.open("rb") as file, Image.open(file, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise Image.DecompressionBombError
            if image.width * image.height < 1:
                raise _unreadable("it has no pixels")
            yield image
    except ExampleError:
        raise
    except Image.DecompressionBombError as error:
        raise ExampleError(f"has more than {MOST_PIXELS:,} pixels", "make it smaller") from error
    except Exception as error:  # pillow reports damage by many kinds of exception
        raise _unreadable(reason(error)) from error


def _unreadable(why: str) -> ExampleError:
    return ExampleError(f"cannot be read as an image ({why})", "give a PNG or JPEG image")


def _orientation(image: Image.Image) -> int:
    # Pillow turns this kind itself, its size included.
    if image.format == "TIFF":
        return 1
    try:
        # The method of PNG files would decode the picture to look for more behind it.
        found = Image.Image.getexif(image).get(ExifTags.Base.Orientation)
    except Exception:  # damaged EXIF data does no harm to the picture
        return 1
    return found if isinstance(found, int) and found in UPRIGHT else 1


def _narrow(image: Image.Image) -> Image.Image:
    """Convert gray pixels of more than 8 bits to 8; a band of rows at a time, since each takes many times the space."""
    narrow_HW = np.empty((image.height, image.width), dtype=np.uint8)
    num_rows = max(1, BAND_PIXELS // image.width)
    for top in range(0, image.height, num_rows):
        bottom = min(top + num_rows, image.height)
        narrow_HW[top:bottom] = _narrow_band(np.asarray(image.crop((0, top, image.width, bottom))), image.mode)
    return Image.fromarray(narrow_HW)


def _narrow_band(pixels: Shaped[np.ndarray, "H W"], mode: str) -> Shaped[np.ndarray, "H W"]:
    low, high = pixels.min(), pixels.max()
    if mode == "F" and not (low >= 0 and high <= 1):
        raise ExampleError("has floats outside of 0 to 1", "divide them by their largest possible value")
    if not (low >= 0 and high <= 65535):
        raise ExampleError("has pixels of more than 16 bits", "convert it to 8 bits")
    return np.rint(pixels * 255) if mode == "F" else (pixels.astype(np.uint32) + 128) // 257
