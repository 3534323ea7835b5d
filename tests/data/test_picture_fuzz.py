"""Whatever bytes a picture file holds, it is read or left out, in one sentence, and nothing else happens."""

import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from auxrnn.data.examples import Problems
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers.image_folder import ImageOptions, image_folder_source
from auxrnn.data.readers.pictures import decode, read_header, read_image_file
from auxrnn.errors import RunError

KINDS = {
    "png": [{"mode": mode} for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")],
    "jpeg": [{"mode": mode} for mode in ("L", "RGB", "CMYK")] + [{"mode": "RGB", "progressive": True}],
    "gif": [{"mode": mode} for mode in ("L", "P")],
    "tiff": [{"mode": mode} for mode in ("1", "L", "I;16", "F", "RGB", "CMYK", "LAB")]
    + [{"mode": "RGB", "compression": packing} for packing in ("tiff_lzw", "jpeg", "tiff_adobe_deflate", "packbits")]
    + [{"mode": "1", "compression": "group4"}],
    "bmp": [{"mode": mode} for mode in ("1", "L", "P", "RGB", "RGBA")],
    "webp": [{"mode": "RGB"}, {"mode": "RGBA", "lossless": True}],
    "ppm": [{"mode": mode} for mode in ("1", "L", "RGB")],
}


def make_seed(kind, *, mode, **options):
    """Make a small whole picture, with the notes of a camera where it can have them."""
    pixels = np.random.default_rng(len(kind)).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    wide = {"I;16": pixels[..., 0].astype(np.uint16) * 257, "F": pixels[..., 0] / np.float32(255)}
    image = Image.fromarray(wide[mode]) if mode in wide else Image.fromarray(pixels).convert(mode)
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    image.save(file, kind, **options, **({"exif": exif} if kind in ("png", "jpeg", "webp", "tiff") else {}))
    return file.getvalue()


SEEDS = [make_seed(kind, **options) for kind, all_options in KINDS.items() for options in all_options]


def mutate(data, seed):
    """Flip, cut and insert some bytes; the front, where the structure is, more often than the rest."""
    content = bytearray(seed)
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, max(0, len(content) - 1)) | st.integers(0, min(60, max(0, len(content) - 1))))
        action = data.draw(st.sampled_from(["set", "insert", "remove"]))
        if action == "insert":
            content[place:place] = data.draw(st.binary(max_size=4))
        else:
            content[place : place + 1] = bytes([data.draw(st.integers(0, 255))]) if action == "set" else b""
    return bytes(content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))])


def assert_read_or_left_out(folder, content, image_size):
    """Read a folder in which one picture is fuzzed."""
    path = folder / "a/fuzzed.png"
    path.write_bytes(content)
    problems = Problems(is_patient=True)
    understood = image_folder_source("x", folder, ImageOptions(image_size)).read(problems, None)
    examples = list(understood.examples)
    assert len(examples) + problems.num_skipped == 3
    assert problems.num_refused == 0
    form = understood.format
    assert {example.value_T.shape for example in examples} == {(form.num_steps, form.channels)}
    assert all(skipped.startswith(f"{path} ") and "\n" not in skipped for skipped in problems.skipped)


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("L", (7, 9), 100).save(tmp_path / name / "whole.png")
    return tmp_path


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), seed=st.sampled_from(SEEDS))
def test_a_damaged_picture_is_read_or_left_out(folder, data, seed):
    assert_read_or_left_out(folder, mutate(data, seed), image_size=3)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_left_out(folder, content):
    assert_read_or_left_out(folder, content, image_size=3)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), seed=st.sampled_from(SEEDS))
def test_a_damaged_single_picture_is_read_or_refused(tmp_path, data, seed):
    path = tmp_path / "fuzzed.jpg"
    path.write_bytes(mutate(data, seed))
    try:
        found = read_image_file(path, ImageFormat(3, 2, 3, is_resized=True))
    except RunError as error:
        sentence = str(error)
    else:
        sentence = f"{path} is whole; "
        assert found.shape == (1, 6, 3)
    assert sentence.startswith(str(path))
    assert "; " in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_is_a_picture_that_can_be_read(tmp_path, seed):
    path = tmp_path / "seed.png"
    path.write_bytes(seed)
    assert (*decode(path, channels=3).size,) == read_header(path)[1::-1]
    assert read_image_file(path, ImageFormat(3, 2, 3, is_resized=True)).any()
