"""A single image file, or an array of images, read as the images of the training data were: for prediction.

Dimension letters: `N` examples, `H` and `W` rows and columns of an image, `C` its channels.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float32, Shaped, UInt8

from auxrnn.data.examples import ExampleError
from auxrnn.data.images import ImageFormat, to_sequences, to_unit
from auxrnn.data.readers.decoding import decode, quiet, resize
from auxrnn.data.readers.npy import list_keys, load_array, open_array
from auxrnn.errors import RunError

Pixels = Shaped[np.ndarray, "..."]
PIXELS = "give pixels as uint8, or as floats from 0 to 1"


def read_image_file(path: Path, image_format: ImageFormat) -> Float32[np.ndarray, "N T D"]:
    """Read an image (PNG, JPEG, ...), or one or many images in a .npy or .npz, as sequences.

    An image of the source size (or of any, where the format resizes) goes through the whole format; one of the final
    size is permuted only. Arrays may also hold sequences `[N, T]` or `[N, T, D]`, which are taken as they are.
    """
    is_array = path.suffix.lower() in (".npy", ".npz")
    pixels = _read_array(path) if is_array else _read_picture(path, image_format)
    for source in (image_format, image_format.without_resizing):
        images_NHWC = _as_examples(pixels, (source.height, source.width, source.channels))
        if images_NHWC is not None:
            return to_unit(to_sequences(images_NHWC, source))
    x_NTD = _as_examples(pixels, (image_format.num_steps, image_format.channels))
    if is_array and x_NTD is not None:
        return to_unit(x_NTD)
    raise RunError(f"{path} {_describe_wrong_size(pixels.shape, image_format, is_array=is_array)}")


def _as_examples(array: Pixels, shape: tuple[int, ...]) -> Pixels | None:
    """Return an array as examples of a shape, whether it holds one or many; None if it does not fit."""
    shapes = (shape, shape[:-1]) if shape[-1] == 1 else (shape,)
    fits = any(found in (array.shape, array.shape[1:]) for found in shapes)
    return array.reshape(-1, *shape) if fits else None


def _describe_wrong_size(shape: tuple[int, ...], image_format: ImageFormat, *, is_array: bool) -> str:
    sizes = dict.fromkeys(((image_format.height, image_format.width), image_format.size))
    wanted = " or ".join(f"{height}x{width}" for height, width in sizes)
    if not is_array:
        return f"is an image of {shape[0]}x{shape[1]} pixels (height x width); resize it to {wanted}"
    channels = "" if image_format.channels == 1 else f" with {image_format.channels} channels"
    cure = f"give images of {wanted}{channels} or sequences of {image_format.num_steps} steps"
    return f"holds an array of shape {list(shape)}; {cure}"


def _read_picture(path: Path, image_format: ImageFormat) -> UInt8[np.ndarray, "H W C"]:
    try:
        with quiet():
            image = decode(path, channels=image_format.channels)
    except ExampleError as error:
        raise RunError(f"{path} {error}") from error
    return resize(image, (image_format.height, image_format.width) if image_format.is_resized else None)


def _read_array(path: Path) -> Pixels:
    keys = list_keys(path) if path.suffix.lower() == ".npz" else None
    if keys is not None and len(keys) != 1 and "x" not in keys:
        raise RunError(f"{path} holds {len(keys)} arrays and none called x; save the images in it under the name x")
    key = None if keys is None else keys[0] if len(keys) == 1 else "x"
    array = load_array(open_array(path, key, kinds="uf", cure=PIXELS))
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f":
        raise RunError(f"{path} holds values of type {array.dtype}; {PIXELS}")
    if not (array.min() >= 0 and array.max() <= 1):
        raise RunError(f"{path} holds floats outside of 0 to 1; divide them by their largest possible value")
    return array.astype(np.float32)
