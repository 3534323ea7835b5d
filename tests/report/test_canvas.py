import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from auxrnn.report.canvas import crop_rows, lay_out, lay_out_all, mean_errors, memory_errors, outline
from auxrnn.report.records import Reconstructions

NAN = np.nan


def test_a_reversed_segment_is_given_its_last_pixel_and_predicts_the_others(reconstructions):
    canvas = lay_out(reconstructions._replace(is_reversed=True), 0)
    image_YX = reconstructions.image_KT[0].reshape(5, 4)
    wanted_YX = np.full((5, 4), NAN)
    wanted_YX[1, 1:] = [0.5, 0.6, 0.7]
    wanted_YX[2, :2] = [0.8, image_YX[2, 1]]
    np.testing.assert_array_equal(canvas.rebuilt_YX, wanted_YX.astype(np.float32))
    assert canvas.given == (1, 2)


def test_a_forward_segment_is_given_its_first_pixel_and_predicts_the_others(reconstructions):
    canvas = lay_out(reconstructions._replace(is_reversed=False), 0)
    image_YX = reconstructions.image_KT[0].reshape(5, 4)
    wanted_YX = np.full((5, 4), NAN)
    wanted_YX[1, 1:] = [image_YX[1, 1], 0.5, 0.6]
    wanted_YX[2, :2] = [0.7, 0.8]
    np.testing.assert_array_equal(canvas.rebuilt_YX, wanted_YX.astype(np.float32))
    assert canvas.given == (1, 1)


def test_the_true_segment_is_the_image_there_and_nothing_elsewhere(reconstructions):
    canvas = lay_out(reconstructions, 0)
    is_segment_T = np.array([5 <= step <= 9 for step in range(20)])
    np.testing.assert_array_equal(canvas.is_segment_YX.ravel(), is_segment_T)
    np.testing.assert_array_equal(canvas.truth_YX.ravel()[is_segment_T], reconstructions.image_KT[0, 5:10])
    assert np.isnan(canvas.truth_YX.ravel()[~is_segment_T]).all()


def test_pixels_up_to_the_anchor_are_read(reconstructions):
    canvas = lay_out(reconstructions, 0)
    assert canvas.is_read_YX.ravel().tolist() == [step <= 12 for step in range(20)]
    assert (canvas.anchor, canvas.num_steps_back) == ((0, 3), 7)


@pytest.mark.parametrize(("is_reversed", "predicted"), [(True, range(2)), (False, range(1, 3))])
def test_the_error_of_a_padded_segment_covers_its_predicted_pixels_alone(reconstructions, is_reversed, predicted):
    error_T = lay_out(reconstructions._replace(is_reversed=is_reversed), 2).error_YX.ravel()
    assert np.flatnonzero(~np.isnan(error_T)).tolist() == list(predicted)
    wanted = np.abs(np.float32([0.9, 1.0]).astype(float) - reconstructions.image_KT[2, predicted].astype(float))
    np.testing.assert_array_equal(error_T[predicted], wanted)


def test_an_image_that_does_not_fill_its_canvas_is_refused(reconstructions):
    with pytest.raises(ValueError, match="20 steps and the canvas 6 x 4"):
        lay_out(reconstructions._replace(height=6), 0)


def test_pixels_of_any_range_are_shown_from_zero_to_one(reconstructions):
    stretched = reconstructions._replace(
        image_KT=reconstructions.image_KT * 16 - 3, reconstruction_KS=reconstructions.reconstruction_KS * 16 - 3
    )
    pairs = zip(lay_out_all(reconstructions, most=2), lay_out_all(stretched, most=2), strict=True)
    for plain, scaled in pairs:
        np.testing.assert_allclose(scaled.image_YX, plain.image_YX, atol=1e-6)
        np.testing.assert_allclose(scaled.error_YX, plain.error_YX, atol=1e-6)


def test_blank_images_can_be_laid_out(reconstructions):
    blank = reconstructions._replace(image_KT=np.zeros_like(reconstructions.image_KT))
    assert not lay_out_all(blank, most=1)[0].image_YX.any()


@pytest.mark.parametrize(("is_reversed", "first"), [(True, 0), (False, 1)])
def test_memory_errors_compare_rebuilt_pixels_with_blank_paper_and_the_mean_image(reconstructions, is_reversed, first):
    mean_image_T = np.linspace(0.2, 0.7, 20, dtype=np.float32)
    steps = [range(start + first, start + first + length) for start, length in ((5, 4), (15, 4), (0, 2))]
    truth = np.concatenate([reconstructions.image_KT[k, list(steps[k])] for k in range(3)])
    rebuilt = np.concatenate([reconstructions.reconstruction_KS[k, : len(steps[k])] for k in range(3)])
    mean = np.concatenate([mean_image_T[list(steps[k])] for k in range(3)])
    wanted = [((guess - truth) ** 2).mean() for guess in (rebuilt, np.zeros(10), mean)]
    found = memory_errors(reconstructions._replace(is_reversed=is_reversed), mean_image_T)
    assert found == pytest.approx(tuple(wanted), rel=1e-6)


def test_mean_errors_weigh_every_rebuilt_pixel_alike(reconstructions):
    canvases = [lay_out(reconstructions, example) for example in range(3)]
    predicted = [reconstructions.reconstruction_KS[k, : reconstructions.length_K[k]] for k in range(3)]
    truths = [reconstructions.image_KT[k, s : s + n] for k, s, n in ((0, 5, 4), (1, 15, 4), (2, 0, 2))]
    errors = np.abs(np.concatenate(predicted) - np.concatenate(truths))
    assert mean_errors(canvases) == pytest.approx((errors.mean(), np.concatenate(truths).mean()), rel=1e-6)


def test_the_outline_of_one_pixel_is_its_four_sides():
    is_inside_YX = np.zeros((3, 4), dtype=bool)
    is_inside_YX[1, 2] = True
    corners = {(1.5, 0.5), (2.5, 0.5), (2.5, 1.5), (1.5, 1.5)}
    edges = {frozenset(edge) for edge in outline(is_inside_YX)}
    assert len(edges) == 4
    assert set().union(*edges) == corners


@given(hnp.arrays(bool, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)))
def test_an_outline_has_a_side_between_each_inside_pixel_and_an_outside_neighbor(is_inside_YX):
    pixels = {(int(x), int(y)) for y, x in np.argwhere(is_inside_YX)}
    wanted = {
        frozenset([(x + (dx - dy) / 2, y + (dy - dx) / 2), (x + (dx + dy) / 2, y + (dy + dx) / 2)])
        for x, y in pixels
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))
        if (x + dx, y + dy) not in pixels
    }
    edges = outline(is_inside_YX)
    assert {frozenset((float(x), float(y)) for x, y in edge) for edge in edges} == wanted
    assert len(edges) == len(wanted)


@given(st.data())
def test_cropped_rows_hold_the_whole_segment_and_are_equally_many(data):
    height, width, num_examples = 6, 3, data.draw(st.integers(1, 4))
    starts = [data.draw(st.integers(0, height * width - 2)) for _ in range(num_examples)]
    lengths = [data.draw(st.integers(1, height * width - 1 - start)) for start in starts]
    shown = Reconstructions(
        image_KT=np.zeros((num_examples, height * width)),
        anchor_K=np.full(num_examples, height * width - 1),
        start_K=np.array(starts),
        length_K=np.array(lengths),
        reconstruction_KS=np.zeros((num_examples, height * width)),
        label_K=np.zeros(num_examples, dtype=int),
        is_reversed=data.draw(st.booleans()),
        height=height,
        width=width,
    )
    canvases = [lay_out(shown, example) for example in range(num_examples)]
    crops = crop_rows(canvases)
    spans = [(start + length) // width - start // width + 1 for start, length in zip(starts, lengths, strict=True)]
    for canvas, rows in zip(canvases, crops, strict=True):
        assert canvas.is_segment_YX[rows].sum() == canvas.is_segment_YX.sum()
        assert 0 <= rows.start < rows.stop <= height
        assert rows.stop - rows.start == max(spans)
