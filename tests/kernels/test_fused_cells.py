"""The fused kernel gives the values and gradients of the plain recurrence, over all that it can be asked for."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stacks import PLAIN_STEPS, Sizes, assert_near, draw_pass, gradients, read_plainly

# What item 7 of the issue promises, relative to a tensor's largest magnitude.
VALUE_TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-4

# Rows are split into blocks of at most 16, from 64 rows on exactly so; units into vectors of 4, 8 or 16.
ROWS = st.one_of(st.integers(1, 6), st.sampled_from([15, 16, 17, 63, 64, 65, 130]), st.integers(1, 70))
HIDDEN = st.one_of(st.integers(1, 34), st.sampled_from([63, 64, 65, 128, 300]), st.integers(1, 300))
SIZES = st.builds(
    Sizes,
    rows=ROWS,
    steps=st.integers(0, 9),
    hidden=HIDDEN,
    layers=st.integers(1, 3),
    inputs=st.integers(1, 40),
    places=st.one_of(st.just(0), st.integers(1, 40)),
)


@settings(max_examples=120)
@given(
    cell=st.sampled_from(sorted(PLAIN_STEPS)),
    sizes=SIZES,
    is_token=st.booleans(),
    is_late=st.booleans(),
    wants_outputs=st.booleans(),
    enters=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    num_threads=st.integers(1, 4),
    seed=st.integers(0, 2**31),
)
def test_values_and_gradients_equal_the_plain_recurrence(
    build, cell, sizes, *, is_token, is_late, wants_outputs, enters, num_threads, seed
):
    drawn = draw_pass(sizes, cell=cell, is_token=is_token, is_late=is_late, seed=seed)
    plain, fused = drawn.to(torch.float64), drawn.to(torch.float32)
    expected = read_plainly(plain)
    torch.set_num_threads(num_threads)
    actual = fused.read(wants_outputs=wants_outputs)
    if not wants_outputs:
        assert actual[0].numel() == 0
        enters = (False, *enters[1:])
    compared = slice(0 if wants_outputs else 1, 3)
    assert_near(actual[compared], expected[compared], relative=VALUE_TOLERANCE)
    rng = torch.Generator().manual_seed(seed + 1)
    entering = [
        torch.randn(result.shape, generator=rng) if is_entered else None
        for result, is_entered in zip(expected, enters, strict=True)
    ]
    ours, theirs = gradients(actual, fused.sources(), entering), gradients(expected, plain.sources(), entering)
    torch.set_num_threads(1)
    assert_near(ours, theirs, relative=GRADIENT_TOLERANCE)
