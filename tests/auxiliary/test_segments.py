"""Segments lie where the notes say: inside their sequence, on their side of the anchor, every legal place possible."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from auxrnn.auxiliary import Geometry, sample_future_segments, sample_past_segments, segment_positions
from auxrnn.structs import Draws, Segments

PLACEMENTS = ["immediate", "past", "past_future"]
KINDS = [*PLACEMENTS, "predict"]
BATCHES = st.lists(st.integers(1, 30), min_size=1, max_size=5)
GEOMETRIES = st.builds(Geometry, st.integers(1, 4), st.integers(1, 40))


def sample(kind, lengths, geometry, draws=None):
    seq_len_B, rng = torch.tensor(lengths), (draws or Draws(0, "test", 0)).rng("segments")
    if kind == "predict":
        return sample_future_segments(seq_len_B, geometry=geometry, rng=rng)
    return sample_past_segments(seq_len_B, geometry=geometry, placement=kind, rng=rng)


def as_rows(segments):
    return list(zip(*[part.tolist() for part in segments], strict=True))


def legal_places(kind, num_steps, segment_length):
    """List the (anchor, start) pairs of the notes' table."""
    length = min(segment_length, num_steps - 1)
    if kind == "predict":
        return [(anchor, anchor) for anchor in range(num_steps - length)]
    first_anchor = 1 if kind == "past_future" else length
    starts = {
        "immediate": lambda anchor: [anchor - length],
        "past": lambda anchor: range(anchor - length + 1),
        "past_future": lambda anchor: range(min(anchor, num_steps - 1 - length) + 1),
    }[kind]
    return [(anchor, start) for anchor in range(first_anchor, num_steps) for start in starts(anchor)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(lengths=BATCHES, geometry=GEOMETRIES, seed=st.integers(0, 10**6))
def test_a_segment_and_its_anchor_stay_inside_their_sequence(kind, lengths, geometry, seed):
    for row, anchor, start, length in as_rows(sample(kind, lengths, geometry, Draws(seed, "test", 0))):
        assert 0 <= anchor < lengths[row]
        assert 0 <= start <= start + length < lengths[row]


@settings(max_examples=60, deadline=None)
@given(lengths=BATCHES, geometry=GEOMETRIES, seed=st.integers(0, 10**6))
def test_a_segment_stays_on_its_side_of_the_anchor(lengths, geometry, seed):
    draws = Draws(seed, "test", 0)
    assert all(
        start + length == anchor for _, anchor, start, length in as_rows(sample("immediate", lengths, geometry, draws))
    )
    assert all(
        start + length <= anchor for _, anchor, start, length in as_rows(sample("past", lengths, geometry, draws))
    )
    assert all(start <= anchor for _, anchor, start, _ in as_rows(sample("past_future", lengths, geometry, draws)))
    assert all(start == anchor for _, anchor, start, _ in as_rows(sample("predict", lengths, geometry, draws)))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(lengths=BATCHES, geometry=GEOMETRIES)
def test_each_sequence_has_its_segments_clipped_to_what_it_can_predict(kind, lengths, geometry):
    segments = sample(kind, lengths, geometry)
    rows = [row for row in range(len(lengths)) for _ in range(geometry.num_segments)]
    assert segments.row_M.tolist() == rows
    assert segments.length_M.tolist() == [min(geometry.segment_length, lengths[row] - 1) for row in rows]


@pytest.mark.parametrize("segment_length", [1, 2, 4, 9])
@pytest.mark.parametrize("num_steps", [2, 3, 5, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_every_legal_place_can_be_drawn_and_no_other(kind, num_steps, segment_length):
    segments = sample(kind, [num_steps], Geometry(2000, segment_length))
    drawn = {(anchor, start) for _, anchor, start, _ in as_rows(segments)}
    assert drawn == set(legal_places(kind, num_steps, segment_length))


@pytest.mark.parametrize("kind", KINDS)
def test_all_anchors_are_equally_likely(kind):
    num_steps, segment_length, num_draws = 13, 4, 20_000
    anchors = sorted({anchor for anchor, _ in legal_places(kind, num_steps, segment_length)})
    segments = sample(kind, [num_steps], Geometry(num_draws, segment_length))
    counts = torch.bincount(segments.anchor_M, minlength=num_steps)[anchors].double()
    assert int(counts.sum()) == num_draws
    expected = num_draws / len(anchors)
    # The 99.9% quantile of chi-square with 8 to 11 degrees of freedom is 26.1 to 31.3.
    assert float(((counts - expected) ** 2 / expected).sum()) < 26.1


@pytest.mark.parametrize("kind", ["past", "past_future"])
def test_all_starts_of_one_anchor_are_equally_likely(kind):
    num_steps, segment_length = 13, 4
    segments = sample(kind, [num_steps], Geometry(40_000, segment_length))
    counts = torch.bincount(segments.start_M[segments.anchor_M == 8]).double()
    num_starts = sum(anchor == 8 for anchor, _ in legal_places(kind, num_steps, segment_length))
    assert len(counts) == num_starts
    expected = counts.sum() / num_starts
    # The 99.9% quantile of chi-square with 4 degrees of freedom (past) is 18.5; with 8 (past_future) 26.1.
    assert float(((counts - expected) ** 2 / expected).sum()) < 18.5


@pytest.mark.parametrize("kind", KINDS)
def test_examples_and_segments_draw_independently(kind):
    num_rows, num_segments = 400, 5
    anchor_BN = sample(kind, [50] * num_rows, Geometry(num_segments, 7)).anchor_M.reshape(num_rows, num_segments)
    # Each pair of columns (segments of one example) and of rows (examples) is as good as uncorrelated.
    correlation_NN = torch.corrcoef(anchor_BN.T.double()) - torch.eye(num_segments)
    assert float(correlation_NN.abs().max()) < 4 / num_rows**0.5
    neighbors_2B = torch.stack([anchor_BN[:-1, 0], anchor_BN[1:, 0]]).double()
    assert float(torch.corrcoef(neighbors_2B)[0, 1].abs()) < 4 / num_rows**0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_shared_draw_is_the_same_in_every_row_and_differs_between_segments(kind):
    segments = sample(kind, [50] * 6, Geometry(4, 7, is_shared_by_batch=True))
    for part_M in (segments.anchor_M, segments.start_M):
        part_BN = part_M.reshape(6, 4)
        assert bool((part_BN == part_BN[0]).all())
        assert len(part_BN[0].unique()) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_shared_draw_still_fits_rows_of_unequal_length(kind):
    lengths = [1, 2, 9, 30]
    for row, anchor, start, length in as_rows(sample(kind, lengths, Geometry(3, 7, is_shared_by_batch=True))):
        assert length == 0 or (anchor, start) in legal_places(kind, lengths[row], 7)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_depend_on_seed_phase_step_and_purpose_only(kind):
    def drawn(draws, purpose="segments"):
        rng = draws.rng(purpose)
        if kind == "predict":
            return as_rows(sample_future_segments(seq_len_B, geometry=geometry, rng=rng))
        return as_rows(sample_past_segments(seq_len_B, geometry=geometry, placement=kind, rng=rng))

    seq_len_B, geometry = torch.tensor([90, 80]), Geometry(4, 7)
    first = drawn(Draws(1, "joint", 5))
    torch.manual_seed(123)
    torch.rand(7)
    assert drawn(Draws(1, "joint", 5)) == first
    others = [Draws(2, "joint", 5), Draws(1, "pretrain", 5), Draws(1, "joint", 6)]
    assert all(drawn(other) != first for other in others)
    assert drawn(Draws(1, "joint", 5), purpose="sampling") != first


def test_a_draw_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    sample("past_future", [20, 30], Geometry(3, 7))
    assert torch.equal(torch.get_rng_state(), before)


def test_forward_positions_count_up_and_reversed_positions_count_down():
    segments = Segments(*(torch.tensor(values) for values in ([0, 0, 1], [9, 8, 3], [2, 5, 0], [4, 4, 2])))
    forward_MS = segment_positions(segments, order="forward")
    reversed_MS = segment_positions(segments, order="reversed")
    for m, (_, _, start, length) in enumerate(as_rows(segments)):
        positions = list(range(start, start + length + 1))
        assert forward_MS[m, : length + 1].tolist() == positions
        assert reversed_MS[m, : length + 1].tolist() == positions[::-1]
    assert forward_MS.shape == reversed_MS.shape == (3, 5)
