"""A user's own images and arrays are read as a dataset's images were, or refused in one sentence."""

import numpy as np
import pytest
from PIL import Image

from auxrnn.data.images import ImageFormat, to_sequences, to_unit
from auxrnn.data.readers.pictures import read_image_file
from auxrnn.errors import RunError

GRAY = ImageFormat(6, 6, 1, image_size=3, permutation="p")
COLOR = ImageFormat(6, 4, 3)


def bytes_of(*shape):
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


def save(path, array):
    """Save pixels as the kind of file that the name says."""
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez(path, array)
    else:
        Image.fromarray(array).save(path)
    return path


@pytest.mark.parametrize("name", ["one.png", "one.npy", "one.npz"])
@pytest.mark.parametrize("image_format", [GRAY, COLOR], ids=["gray", "color"])
def test_an_image_of_the_source_size_goes_through_the_whole_format(tmp_path, name, image_format):
    image_HWC = bytes_of(image_format.height, image_format.width, image_format.channels)
    path = save(tmp_path / name, image_HWC.squeeze())
    found = read_image_file(path, image_format)
    assert found.dtype == np.float32
    assert np.array_equal(found, to_unit(to_sequences(image_HWC[None], image_format)))


@pytest.mark.parametrize("name", ["one.png", "one.npy"])
def test_an_image_of_the_final_size_is_permuted_only(tmp_path, name):
    image_HW = bytes_of(3, 3)
    found = read_image_file(save(tmp_path / name, image_HW), GRAY)
    assert np.array_equal(
        found, to_unit(to_sequences(image_HW[None, :, :, None], ImageFormat(3, 3, 1, permutation="p")))
    )


@pytest.mark.parametrize("shape", [(2, 6, 6), (2, 6, 6, 1)])
def test_a_file_may_hold_many_images(tmp_path, shape):
    pixels = bytes_of(*shape)
    many, one = save(tmp_path / "many.npy", pixels), save(tmp_path / "one.png", pixels[1].squeeze())
    first_TD, second_TD = read_image_file(many, GRAY)
    assert np.array_equal(second_TD, read_image_file(one, GRAY)[0])
    assert not np.array_equal(first_TD, second_TD)


@pytest.mark.parametrize("shape", [(4, 9), (4, 9, 1)])
def test_sequences_are_taken_as_they_are(tmp_path, shape):
    x = np.random.default_rng(2).random(shape)
    found = read_image_file(save(tmp_path / "x.npy", x), GRAY)
    assert np.array_equal(found.ravel(), x.astype(np.float32).ravel())


def test_an_npz_with_several_arrays_gives_the_one_called_x(tmp_path):
    path, image_HW = tmp_path / "several.npz", bytes_of(6, 6)
    np.savez(path, labels=np.arange(3), x=image_HW)
    alone = read_image_file(save(tmp_path / "alone.npy", image_HW), GRAY)
    assert np.array_equal(read_image_file(path, GRAY), alone)


@pytest.mark.parametrize(
    ("name", "array", "part"),
    [
        ("wide.png", bytes_of(5, 7), "[5, 7, 1]; give images of 6x6 or 3x3 or sequences of 9 steps"),
        ("flat.png", bytes_of(1, 9), "[1, 9, 1]"),
        ("wide.npy", bytes_of(5, 7), "[5, 7]; give images of 6x6 or 3x3 or sequences of 9 steps"),
        ("color.npy", bytes_of(6, 6, 3), "[6, 6, 3]"),
        ("scalar.npy", np.array(0.5), "shape []"),
        ("integers.npy", np.zeros((6, 6), np.int64), "int64"),
        ("text.npy", np.full((6, 6), "a"), "type str32"),
        ("empty.npy", np.zeros((0, 6, 6)), "no entries"),
        ("bright.npy", np.full((6, 6), 1.5), "float64 from 1.5 to 1.5"),
        ("negative.npy", np.full((6, 6), -0.1), "float64 from -0.1 to -0.1"),
        ("unknown.npy", np.full((6, 6), np.nan), "floats from 0 to 1"),
        ("deep.tif", np.full((6, 6), 65536, np.int32), "8 bits"),
    ],
)
def test_wrong_pixels_are_refused_by_file(tmp_path, assert_one_sentence, name, array, part):
    path = save(tmp_path / name, array)
    with pytest.raises(RunError) as error:
        read_image_file(path, GRAY)
    assert_one_sentence(error, path, part)


def test_wrong_arrays_for_a_color_format_say_how_many_channels(tmp_path, assert_one_sentence):
    with pytest.raises(RunError) as error:
        read_image_file(save(tmp_path / "gray.npy", bytes_of(6, 4)), COLOR)
    assert_one_sentence(error, "6x4 with 3 channels or sequences of 24 steps")


@pytest.mark.parametrize(
    "name", ["absent.png", "absent.npy", "folder", "text.png", "text.npy", "text.npz", "cut.png", "cut.npy", "cut.npz"]
)
def test_what_cannot_be_read_is_refused_by_file(tmp_path, assert_one_sentence, name):
    path = tmp_path / name
    if name.startswith("text"):
        path.write_text("not an image")
    elif name == "folder":
        path.mkdir()
    elif name.startswith("cut"):
        whole = save(tmp_path / f"whole{path.suffix}", bytes_of(6, 6)).read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunError) as error:
        read_image_file(path, GRAY)
    assert_one_sentence(error, path)


def test_an_npz_of_several_arrays_without_x_is_refused(tmp_path, assert_one_sentence):
    np.savez(tmp_path / "several.npz", a=bytes_of(6, 6), b=bytes_of(6, 6))
    with pytest.raises(RunError) as error:
        read_image_file(tmp_path / "several.npz", GRAY)
    assert_one_sentence(error, tmp_path / "several.npz", "2 arrays")
