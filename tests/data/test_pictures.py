"""One picture becomes pixels: every mode, upright, squeezed or cropped, and refused before it costs anything."""

import os
import struct
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from auxrnn.data.examples import ExampleError
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers.pictures import (
    MOST_PIXELS,
    PictureHeader,
    decode,
    draw_crop,
    read_header,
    read_image_file,
    resize,
)
from auxrnn.errors import RunError

LENGTHS = st.integers(1, 300)


def bytes_of(*shape):
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


def pixels_of(path, channels):
    return resize(decode(path, channels=channels))


def write_png_header(path, *, width, height):
    """Write a PNG that claims a size and has hardly any pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)
    return path


@pytest.mark.parametrize(
    ("mode", "suffix", "is_gray"),
    [
        ("1", ".png", True),
        ("L", ".pgm", True),
        ("LA", ".png", True),
        ("I;16", ".png", True),
        ("I;16B", ".tif", True),
        ("I", ".tif", True),
        ("F", ".tiff", True),
        ("RGB", ".ppm", False),
        ("RGB", ".BMP", False),
        ("RGBA", ".png", False),
        ("RGBA", ".webp", False),
        ("P", ".gif", False),
        ("P", ".png", False),
        ("PA", ".tif", False),
        ("CMYK", ".tif", False),
        ("YCbCr", ".tif", False),
        ("LAB", ".tif", False),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_of_any_mode_is_read_in_gray_and_in_color(tmp_path, mode, suffix, is_gray, channels):
    gray_HW = np.repeat(np.array([[0, 255], [255, 0], [255, 255]], dtype=np.uint8), 4, axis=1)
    scaled = {"I;16": 257, "I;16B": 257, "I": 257, "F": 1 / 255}
    if mode in scaled:
        kind = {"I;16": "<u2", "I;16B": ">u2", "I": "<i4", "F": "<f4"}[mode]
        image = Image.fromarray((gray_HW * np.float64(scaled[mode])).astype(kind))
    else:
        rgb = Image.fromarray(gray_HW).convert("RGB")
        image = rgb.convert("P").convert("PA") if mode == "PA" else rgb.convert(mode)
    options = {"lossless": True} if suffix == ".webp" else {}
    image.save(tmp_path / f"image{suffix}", **options)
    with warnings.catch_warnings(action="ignore"):
        found_HWC = pixels_of(tmp_path / f"image{suffix}", channels)
        assert read_header(tmp_path / f"image{suffix}") == PictureHeader(3, 8, is_gray)
    assert found_HWC.shape == (3, 8, channels)
    # Color spaces with other axes come back within a few of 255 steps.
    slack = 3 if mode in ("LAB", "YCbCr") else 0
    assert np.abs(found_HWC.astype(int) - gray_HW[..., None]).max() <= slack


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bits_are_rounded_to_the_nearest_of_eight(tmp_path, suffix):
    wide_HW = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    Image.fromarray(wide_HW).save(tmp_path / f"wide{suffix}")
    found_HWC = pixels_of(tmp_path / f"wide{suffix}", 1)
    assert np.array_equal(found_HWC[..., 0], np.rint(wide_HW / 257))


@pytest.mark.parametrize(
    ("array", "part"),
    [
        (np.full((2, 2), 65536, np.int32), "outside of 0 to 65535; convert it to 8 bits"),
        (np.full((2, 2), -1, np.int32), "has pixels from -1 to -1"),
        (np.full((2, 2), 1.5, np.float32), "has pixels from 1.5 to 1.5, outside of 0 to 1; convert"),
        (np.full((2, 2), np.nan, np.float32), "outside of 0 to 1"),
    ],
)
def test_pixels_of_no_known_scale_are_refused(tmp_path, assert_one_sentence, array, part):
    Image.fromarray(array).save(tmp_path / "deep.tif")
    with pytest.raises(ExampleError) as error:
        decode(tmp_path / "deep.tif", channels=1)
    assert_one_sentence(error, part)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".tif"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_turned_upright_and_its_size_is_known_before(tmp_path, suffix, orientation):
    # Blocks as large as those of JPEG keep their colors.
    upright = Image.fromarray(np.repeat(np.repeat(bytes_of(3, 2, 3), 16, axis=0), 16, axis=1))
    back = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    turned = upright if orientation == 1 else upright.transpose(Image.Transpose(back[orientation]))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"turned{suffix}"
    turned.save(path, exif=exif, quality=95, **({"lossless": True} if suffix == ".webp" else {}))
    found_HWC = pixels_of(path, 3)
    assert read_header(path)[:2] == (48, 32)
    differences = np.abs(found_HWC.astype(int) - np.asarray(upright))
    assert np.median(differences) <= (4 if suffix == ".jpg" else 0)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_plain_tiff_files_are_turned_too(tmp_path, mode):
    image_HWC = bytes_of(9, 7, 3)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(image_HWC).convert(mode).save(tmp_path / "turned.tif", exif=exif)
    Image.fromarray(np.rot90(image_HWC, -1)).convert(mode).save(tmp_path / "upright.tif")
    assert np.array_equal(pixels_of(tmp_path / "turned.tif", 3), pixels_of(tmp_path / "upright.tif", 3))
    assert read_header(tmp_path / "turned.tif")[:2] == (7, 9)


@pytest.mark.parametrize("notes", [b"Exif\0\0MM", b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + bytes(20)])
def test_damaged_notes_of_a_camera_do_no_harm(tmp_path, notes):
    image = Image.fromarray(bytes_of(5, 4, 3))
    image.save(tmp_path / "image.png", exif=notes)
    with warnings.catch_warnings(action="ignore"):
        assert np.array_equal(pixels_of(tmp_path / "image.png", 3), np.asarray(image))


def test_the_first_picture_of_an_animation_counts(tmp_path):
    frames = [Image.new("P", (4, 4), color) for color in (1, 2)]
    for frame in frames:
        frame.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    assert (pixels_of(tmp_path / "moving.gif", 3) == [255, 0, 0]).all()


def test_a_smaller_picture_is_an_average_and_nothing_is_cut_off():
    image_HWC = bytes_of(6, 8, 3)
    found_HWC = resize(Image.fromarray(image_HWC), (3, 2))
    expected = image_HWC.reshape(3, 2, 2, 4, 3).mean(axis=(1, 3))
    # Pillow rounds after each of the two directions.
    assert np.abs(found_HWC - expected).max() <= 1


def test_a_larger_picture_lies_between_its_pixels():
    found = resize(Image.fromarray(np.array([[0, 100]], dtype=np.uint8)), (1, 4))
    assert found.ravel().tolist() == [0, 25, 75, 100]


def test_a_picture_of_the_wanted_size_is_kept():
    image_HWC = bytes_of(5, 7, 3)
    assert np.array_equal(resize(Image.fromarray(image_HWC), (5, 7)), image_HWC)


def test_a_box_is_cut_out_before_it_is_resized():
    image_HWC = bytes_of(8, 9, 3)
    found_HWC = resize(Image.fromarray(image_HWC), (2, 3), box=(1, 2, 7, 6))
    assert np.array_equal(found_HWC, resize(Image.fromarray(image_HWC[2:6, 1:7]), (2, 3)))


@given(name=st.text(), number=st.integers(1, 1000), width=LENGTHS, height=LENGTHS)
def test_a_crop_keeps_six_tenths_of_each_side_and_stays_inside(name, number, width, height):
    left, top, right, bottom = draw_crop(name, number, (width, height))
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height
    assert 10 * (right - left) >= 6 * width
    assert 10 * (bottom - top) >= 6 * height


def test_crops_are_the_recorded_ones_and_every_one_can_be_drawn():
    assert [draw_crop("a/b.png", number, (100, 50)) for number in (1, 2)] == [(25, 0, 86, 49), (1, 15, 100, 45)]
    drawn = {draw_crop("x", number, (5, 5))[::2] for number in range(2000)}
    assert drawn == {(start, end) for start in range(5) for end in range(6) if end - start >= 3}
    widths = [right - left for left, _, right, _ in (draw_crop("x", number, (100, 100)) for number in range(4000))]
    # 41 widths, each about 98 times: five deviations are 50.
    assert all(48 <= widths.count(width) <= 148 for width in range(60, 101))


@pytest.mark.parametrize(
    ("width", "height"), [(10_001, 10_000), (9_500, 10_527), (20_000, 20_000), (2**31 - 1, 2**31 - 1)]
)
def test_a_bomb_is_refused_by_its_header(tmp_path, assert_one_sentence, width, height):
    path = write_png_header(tmp_path / "bomb.png", width=width, height=height)
    for read in (read_header, lambda path: decode(path, channels=3)):
        with pytest.raises(ExampleError) as error, warnings.catch_warnings(action="ignore"):
            read(path)
        assert_one_sentence(error, f"has more than {MOST_PIXELS:,} pixels")
    with pytest.raises(RunError) as error:
        read_image_file(path, ImageFormat(4, 4, 3, is_resized=True))
    assert_one_sentence(error, path, f"more than {MOST_PIXELS:,} pixels")


def test_a_large_picture_below_the_limit_gives_no_warning(tmp_path):
    path = write_png_header(tmp_path / "large.png", width=9_400, height=9_600)
    with warnings.catch_warnings(action="ignore"):
        assert read_header(path) == PictureHeader(9_600, 9_400, is_gray=False)


@pytest.mark.parametrize(("width", "height"), [(0, 5), (5, 0)])
def test_a_picture_without_pixels_is_refused(tmp_path, width, height):
    path = write_png_header(tmp_path / "flat.png", width=width, height=height)
    with pytest.raises(ExampleError):
        read_header(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path, assert_one_sentence):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(RunError) as error:
        read_image_file(tmp_path / "pipe.png", ImageFormat(4, 4, 3))
    assert_one_sentence(error, tmp_path / "pipe.png", "it is not a file")


@pytest.mark.parametrize("transparency", [3, bytes([100, 200])])
def test_a_transparent_color_is_ignored_without_a_warning(tmp_path, transparency):
    image = Image.fromarray(bytes_of(5, 4, 3)).quantize(8)
    image.save(tmp_path / "image.png", transparency=transparency)
    assert np.array_equal(pixels_of(tmp_path / "image.png", 3), np.asarray(image.convert("RGB")))


def test_a_document_named_as_a_picture_starts_no_program(tmp_path):
    path = tmp_path / "page.png"
    path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n")
    with Image.open(path) as image:
        assert image.format == "EPS"
    with pytest.raises(ExampleError, match="damaged or of another kind"):
        read_header(path)


def test_single_files_are_resized_where_the_format_says_so(tmp_path):
    image_HWC = bytes_of(12, 20, 3)
    Image.fromarray(image_HWC).save(tmp_path / "one.png")
    found = read_image_file(tmp_path / "one.png", ImageFormat(4, 4, 3, is_resized=True))
    expected = resize(Image.fromarray(image_HWC), (4, 4)).reshape(1, 16, 3) / np.float32(255)
    assert np.array_equal(found, expected)
