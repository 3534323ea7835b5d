"""Images become sequences: order of the pixels, exact averages, blank canvas, named permutations."""

import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auxrnn.data.images import ImageFormat, average, permutation_order, to_sequences, to_unit

SIDES = st.integers(1, 12)


def bytes_of(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def test_a_step_is_a_pixel_with_all_its_channels_row_by_row():
    images_NHWC = bytes_of(5, 3, 4, 3)
    x_NTD = to_sequences(images_NHWC, ImageFormat(3, 4, 3))
    assert x_NTD.dtype == np.uint8
    assert x_NTD.shape == (5, 12, 3)
    assert x_NTD[2, 1 * 4 + 3].tolist() == images_NHWC[2, 1, 3].tolist()


def test_a_format_survives_json():
    image_format = ImageFormat(8, 8, 1, canvas=14, image_size=7, permutation="other")
    assert ImageFormat(**json.loads(json.dumps(image_format._asdict()))) == image_format
    assert (image_format.size, image_format.num_steps) == ((7, 7), 49)


def test_a_canvas_centers_the_image_on_blank():
    x_NTD = to_sequences(np.full((1, 8, 8, 1), 9, np.uint8), ImageFormat(8, 8, 1, canvas=14))
    image_HW = x_NTD.reshape(14, 14)
    assert (image_HW[3:11, 3:11] == 9).all()
    assert image_HW.sum(dtype=int) == 64 * 9


@given(cells=SIDES, factor=st.integers(1, 5), data=st.data())
def test_averaging_to_a_divisor_gives_the_nearest_float_to_the_true_mean(cells, factor, data):
    side = cells * factor
    images_NHWC = data.draw(arrays(np.uint8, (2, side, side, 2)))
    sums = images_NHWC.reshape(2, cells, factor, cells, factor, 2).sum(axis=(2, 4), dtype=np.int64)
    expected = (sums / (factor * factor * 255)).astype(np.float32)
    assert np.array_equal(average(images_NHWC, (cells, cells)), expected)


@given(height=SIDES, width=SIDES, data=st.data())
def test_averaging_to_any_size_preserves_the_mean(height, width, data):
    images_NHWC = data.draw(arrays(np.uint8, (2, height, width, 1)))
    size = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    averaged = average(images_NHWC, size)
    # Each float is the nearest to the true mean, so it is off by at most half a unit in the last place.
    np.testing.assert_allclose(averaged.mean(dtype=np.float64), images_NHWC.mean() / 255, rtol=2**-24, atol=0)
    assert averaged.min() >= images_NHWC.min() / 255 - 2**-24
    assert averaged.max() <= images_NHWC.max() / 255 + 2**-24


def test_a_pixel_on_a_border_is_shared_by_area():
    image_NHWC = np.array([30, 60, 90], np.uint8).reshape(1, 1, 3, 1)
    averaged = average(image_NHWC, (1, 2)).ravel()
    expected = [Fraction(30 + 60 // 2) / Fraction(3, 2) / 255, Fraction(60 // 2 + 90) / Fraction(3, 2) / 255]
    assert averaged.tolist() == [np.float32(float(value)) for value in expected]


def test_averaging_to_its_own_size_keeps_bytes():
    images_NHWC = bytes_of(2, 6, 6, 1)
    x_NTD = to_sequences(images_NHWC, ImageFormat(6, 6, 1, image_size=6))
    assert x_NTD.dtype == np.uint8
    assert np.array_equal(x_NTD.ravel(), images_NHWC.ravel())


def test_bytes_and_the_floats_they_stand_for_are_averaged_alike():
    images_NHWC = bytes_of(2, 9, 9, 1)
    image_format = ImageFormat(9, 9, 1, image_size=4)
    from_floats = to_sequences(to_unit(images_NHWC), image_format)
    # The floats were rounded once before they were averaged.
    np.testing.assert_allclose(from_floats, to_sequences(images_NHWC, image_format), rtol=2**-23, atol=0)


def test_images_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"\(5, 6, 1\); this format takes \(6, 6, 1\)"):
        to_sequences(bytes_of(1, 5, 6, 1), ImageFormat(6, 6, 1))


@given(name=st.text(), num_steps=st.integers(0, 300))
def test_a_permutation_holds_every_step_once(name, num_steps):
    assert sorted(permutation_order(name, num_steps).tolist()) == list(range(num_steps))


@given(name=st.text(), num_steps=st.integers(2, 100))
def test_a_longer_permutation_keeps_the_order_of_a_shorter_one(name, num_steps):
    longer = permutation_order(name, 2 * num_steps)
    assert longer[longer < num_steps].tolist() == permutation_order(name, num_steps).tolist()


def test_the_same_permutation_is_applied_to_every_image():
    images_NHWC, order_T = bytes_of(4, 5, 5, 2), permutation_order("auxrnn-1", 25)
    plain_NTD = to_sequences(images_NHWC, ImageFormat(5, 5, 2))
    x_NTD = to_sequences(images_NHWC, ImageFormat(5, 5, 2, permutation="auxrnn-1"))
    for plain_TD, x_TD in zip(plain_NTD, x_NTD, strict=True):
        assert x_TD.tolist() == [plain_TD[position].tolist() for position in order_T]


def test_the_named_permutation_is_the_recorded_one_and_the_same_in_another_process():
    first = [216, 346, 558, 708, 61, 766, 27, 523]
    code = "from auxrnn.data.images import *; print(permutation_order('auxrnn-1', 784).tolist())"
    elsewhere = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = permutation_order("auxrnn-1", 784).tolist()
    assert json.loads(elsewhere) == here
    assert here[:8] == first
    assert permutation_order("auxrnn-2", 784).tolist() != here
