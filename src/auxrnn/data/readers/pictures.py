"""One picture file becomes pixels: opened, turned upright, converted to bytes, cropped, resized.

A picture that cannot be used raises `ExampleError`; a single file for prediction, which may also be an array of images,
`RunError`. Dimension letters: `N` examples, `H` and `W` rows and columns of a picture, `C` its channels.
"""

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped, UInt8
from PIL import ExifTags, Image

from auxrnn.data.examples import ExampleError, describe_damage
from auxrnn.data.images import ImageFormat, to_sequences, to_unit
from auxrnn.data.readers.arrays import LARGEST_BLOCK, list_keys, load_array, open_array
from auxrnn.errors import RunError

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "WEBP", "TIFF")
"""The kinds of pictures, as pillow calls them; it knows others, and some of these start programs (EPS)."""
MOST_PIXELS = 100_000_000
"""A picture of more pixels is not decoded: a few hundred bytes of a file can stand for gigabytes."""
GRAY_MODES = ("1", "L", "LA", "I", "F", "I;16", "I;16L", "I;16B", "I;16N")
"""What pillow calls pixels without color; palettes count as color."""
WIDE_MODES = GRAY_MODES[3:]
"""What pillow calls pixels of more than 8 bits; its own conversion would cut the values off."""
TURNS = ("FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")
UPRIGHT = {orientation: Image.Transpose[name] for orientation, name in enumerate(TURNS, start=2)}
"""What turns a photograph upright, by the EXIF orientation that its camera wrote into it."""
PIXELS = "give pixels as uint8, or as floats from 0 to 1"

Pixels = Shaped[np.ndarray, "..."]
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
        converted = narrow.convert("L" if channels == 1 else "RGB")
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
    spans = []
    for length, span_draw, start_draw in zip(size, draws[:2], draws[2:], strict=True):
        least = -(-length * 6 // 10)
        span = least + (span_draw * (length - least + 1) >> 64)
        start = start_draw * (length - span + 1) >> 64
        spans.append((start, start + span))
    (left, right), (top, bottom) = spans
    return left, top, right, bottom


def read_image_file(path: Path, form: ImageFormat) -> Float32[np.ndarray, "N T D"]:
    """Read an image (PNG, JPEG, ...), or one or many images in a .npy or .npz, as sequences for prediction.

    An image of the source size (or of any, where the format resizes) goes through the whole format; one of the final
    size is permuted only. Arrays may also hold sequences `[N, T]` or `[N, T, D]`, which are taken as they are.
    """
    is_array = path.suffix.lower() in (".npy", ".npz")
    return to_image_sequences(_read_array(path) if is_array else _read_picture(path, form), form, str(path), is_array)


def to_image_sequences(
    pixels: Pixels, form: ImageFormat, place: str, is_array: bool = True
) -> Float32[np.ndarray, "N T D"]:
    """Return the sequences that pixels mean, see `read_image_file`; a picture is never one."""
    # Of images that have their final size already, only the permutation is left to do.
    for source in (form, ImageFormat(*form.size, form.channels, permutation=form.permutation)):
        images_NHWC = _as_examples(pixels, (source.height, source.width, source.channels))
        if images_NHWC is not None:
            return to_unit(to_sequences(images_NHWC, source))
    x_NTD = _as_examples(pixels, (form.num_steps, form.channels)) if is_array else None
    if x_NTD is not None:
        return to_unit(x_NTD)
    sizes = dict.fromkeys(f"{height}x{width}" for height, width in ((form.height, form.width), form.size))
    channels = "" if form.channels == 1 else f" with {form.channels} channels"
    wanted = f"images of {' or '.join(sizes)}{channels} or sequences of {form.num_steps} steps"
    raise RunError(f"{place} has pixels of shape {list(pixels.shape)}; give {wanted}")


def _as_examples(array: Pixels, shape: tuple[int, ...]) -> Pixels | None:
    """Return an array as examples of a shape, whether it holds one or many; None if it does not fit."""
    shapes = (shape, shape[:-1]) if shape[-1] == 1 else (shape,)
    fits = any(found in (array.shape, array.shape[1:]) for found in shapes)
    return array.reshape(-1, *shape) if fits else None


def _read_picture(path: Path, form: ImageFormat) -> UInt8[np.ndarray, "H W C"]:
    try:
        with warnings.catch_warnings(action="ignore"):
            image = decode(path, channels=form.channels)
    except ExampleError as error:
        raise RunError(f"{path} {error}") from error
    return resize(image, (form.height, form.width) if form.is_resized else None)


def _read_array(path: Path) -> Pixels:
    keys = list_keys(path) if path.suffix.lower() == ".npz" else [None]
    if len(keys) != 1 and "x" not in keys:
        raise RunError(f"{path} holds {len(keys)} arrays and none called x; save the images in it under the name x")
    stored = open_array(path, "x" if "x" in keys else keys[0], kinds="uf", cure=PIXELS)
    if path.suffix.lower() == ".npz" and stored.num_bytes > LARGEST_BLOCK:
        raise RunError(f"{path} unpacks to {stored.num_bytes:,} bytes in memory; save the images as an .npy file")
    return check_pixels(load_array(stored), str(path))


def check_pixels(array: Pixels, place: str) -> Pixels:
    """Return bytes, or floats from 0 to 1; raise `RunError` for anything else."""
    is_unit = array.dtype.kind == "f" and array.min() >= 0 and array.max() <= 1
    if not is_unit and array.dtype != np.uint8:
        raise RunError(f"{place} holds {array.dtype} from {array.min():.3g} to {array.max():.3g}; {PIXELS}")
    return array.astype(np.float32) if is_unit else array


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    try:
        # Opening a pipe would wait for its other end.
        if path.exists() and not path.is_file():
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
        raise _unreadable(describe_damage(error)) from error


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
    """Convert gray pixels of more than 8 bits to 8."""
    pixels: Shaped[np.ndarray, "H W"] = np.asarray(image)
    largest = 1 if image.mode == "F" else 65535
    if not (pixels.min() >= 0 and pixels.max() <= largest):
        what = f"has pixels from {pixels.min():.3g} to {pixels.max():.3g}, outside of 0 to {largest}"
        raise ExampleError(what, "convert it to 8 bits")
    narrow_HW = np.rint(pixels * np.float32(255)) if image.mode == "F" else (pixels.astype(np.uint32) + 128) // 257
    return Image.fromarray(narrow_HW.astype(np.uint8))
