"""Numbers at the edges: what is no number stays in its row, what is huge saturates, what is tiny is left to others."""

import numpy as np
import pytest
import torch

from auxrnn.structs import StateQuery
from stacks import Sizes, assert_near, assert_same_bytes, draw_pass, gradients, read_plainly

SIZES = Sizes(rows=21, steps=6, hidden=11, layers=2, inputs=3, places=0)
LAST = StateQuery(torch.arange(SIZES.rows), torch.full((SIZES.rows,), SIZES.steps))
DENORMAL = 1e-40


def test_what_is_not_a_number_spoils_its_own_row_and_later_steps_alone(build, cell):
    work = draw_pass(SIZES, cell=cell)._replace(places=LAST).to(torch.float32)
    x_BTI = work.x_BT.detach().clone()
    x_BTI[7, 2, 1] = torch.nan
    spoiled = work._replace(x_BT=x_BTI.requires_grad_())
    (h_BTH, *state), (spoiled_h_BTH, *spoiled_state) = (some.read(wants_outputs=True) for some in (work, spoiled))
    others_B = torch.arange(SIZES.rows) != 7
    assert_same_bytes([spoiled_h_BTH[others_B], spoiled_h_BTH[7, :2]], [h_BTH[others_B], h_BTH[7, :2]])
    assert_same_bytes([part[:, others_B] for part in spoiled_state], [part[:, others_B] for part in state])
    assert spoiled_h_BTH[7, 2:].isnan().all()
    assert all(part[:, 7].isnan().all() for part in spoiled_state)
    entering = [torch.ones_like(h_BTH), None, None]
    (expected,) = gradients([h_BTH, *state], [work.x_BT], entering)
    (actual,) = gradients([spoiled_h_BTH, *spoiled_state], [spoiled.x_BT], entering)
    assert_same_bytes([actual[others_B]], [expected[others_B]])


def test_what_is_not_a_number_in_an_idle_column_leaves_no_trace(build, cell):
    work = draw_pass(SIZES, cell=cell, is_late=True)._replace(places=LAST).to(torch.float32)
    is_idle_BT = torch.arange(SIZES.steps) < work.begin_B[:, None]
    x_BTI = work.x_BT.detach().masked_fill(is_idle_BT[:, :, None], torch.nan).requires_grad_()
    other = work._replace(x_BT=x_BTI)
    results, other_results = work.read(wants_outputs=True), other.read(wants_outputs=True)
    assert_same_bytes(other_results, results)
    entering = [torch.ones_like(part) for part in results]
    grads, other_grads = (
        gradients(results, work.sources(), entering),
        gradients(other_results, other.sources(), entering),
    )
    assert_same_bytes(other_grads, grads)
    assert not grads[0][is_idle_BT].any()


# Of a GRU, infinity may meet a reset gate that is shut; their product is no number in any arithmetic.
@pytest.mark.parametrize("cell", ["lstm", "ur_lstm"])
@pytest.mark.parametrize("hidden", [1, 11, 16, 33])
def test_an_infinite_input_saturates_whatever_fills_the_vectors(build, cell, hidden):
    work = draw_pass(SIZES._replace(hidden=hidden, inputs=1), cell=cell)._replace(places=LAST).to(torch.float32)
    x_BTI = work.x_BT.detach().clone()
    x_BTI[7, 2], x_BTI[9, 4] = torch.inf, -torch.inf
    work = work._replace(x_BT=x_BTI)
    results = work.read(wants_outputs=True)
    assert all(part.isfinite().all() for part in results)
    assert_near(results, read_plainly(work.to(torch.float64)), relative=1e-5)


@pytest.mark.parametrize("size", [1e4, 1e30])
def test_huge_inputs_saturate(build, cell, size):
    drawn = draw_pass(SIZES, cell=cell)._replace(places=LAST)
    work = drawn._replace(x_BT=size * drawn.x_BT).to(torch.float32)
    plain = work.to(torch.float64)
    results, expected = work.read(wants_outputs=True), read_plainly(plain)
    assert_near(results, expected, relative=1e-5)
    entering = [torch.ones_like(part) for part in results]
    ours = gradients(results, work.sources(), entering)
    assert all(grad.isfinite().all() for grad in ours)
    # Gates are shut to 1e-7, not wholly, and let as much of a gradient through.
    (theirs,) = gradients(expected, [plain.x_BT], entering)
    torch.testing.assert_close(ours[0], theirs.float(), rtol=1e-4, atol=1e-5)


# A GRU's are its outputs, between -1 and 1.
@pytest.mark.parametrize("cell", ["lstm", "ur_lstm"])
@pytest.mark.parametrize("value", [80.0, -80.0, 1e4, -1e4])
def test_huge_cells_saturate(build, cell, value):
    drawn = draw_pass(SIZES, cell=cell)._replace(places=LAST)
    work = drawn._replace(start=drawn.start._replace(c_LBH=torch.full_like(drawn.start.c_LBH, value))).to(torch.float32)
    assert_near(work.read(wants_outputs=True), read_plainly(work.to(torch.float64)), relative=1e-5)


def flushes_denormals():
    """Say, for numpy and torch, whether tiny numbers count as zeros in this thread."""
    is_flushed = (
        float(np.array([DENORMAL], dtype=np.float32)[0] * np.float32(1.0)) == 0.0,
        float(np.multiply(np.full(64, DENORMAL, np.float32), np.ones(64, np.float32))[0]) == 0.0,
        float((torch.full((64,), DENORMAL) * torch.ones(64))[0]) == 0.0,
    )
    assert len(set(is_flushed)) == 1
    return is_flushed[0]


@pytest.mark.parametrize("is_flushing", [False, True])
def test_whether_tiny_numbers_count_is_left_as_it_was(build, cell, is_flushing):
    work = draw_pass(SIZES._replace(rows=130, hidden=40), cell=cell)._replace(places=LAST).to(torch.float32)
    torch.set_flush_denormal(is_flushing)
    try:
        for num_threads in (1, 2):
            torch.set_num_threads(num_threads)
            results = work.read(wants_outputs=True)
            gradients(results, work.sources(), [torch.ones_like(part) for part in results])
            assert flushes_denormals() == is_flushing
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(1)


def test_tiny_numbers_come_out_as_zeros_at_most(build, cell):
    drawn = draw_pass(SIZES, cell=cell)._replace(places=LAST)
    work = drawn._replace(x_BT=DENORMAL * drawn.x_BT).to(torch.float32)
    assert_near(work.read(wants_outputs=True), read_plainly(work.to(torch.float64)), relative=1e-5)
    results = work.read(wants_outputs=True)
    grads = gradients(results, work.sources(), [DENORMAL * torch.ones_like(part) for part in results])
    assert all(float(grad.abs().max()) < 1e-35 for grad in grads)


@pytest.mark.parametrize(
    ("cell", "biases"), [("lstm", [-30, 30, 1, 1]), ("gru", [1, 30, 1, 1]), ("ur_lstm", [1, 30, 1, 1])]
)
def test_open_gates_keep_a_cell_over_very_many_steps(build, cell, biases):
    sizes = Sizes(rows=1, steps=16_384, hidden=4, layers=1, inputs=1, places=0)
    work = draw_pass(sizes, cell=cell)._replace(places=StateQuery(torch.tensor([0]), torch.tensor([sizes.steps])))
    gate_4H = torch.tensor(biases, dtype=torch.float32)[:, None].expand(4, sizes.hidden)
    still = work._replace(weights=[*(torch.zeros_like(weight) for weight in work.weights[:2]), gate_4H.reshape(-1)])
    assert_near(still.read()[2:], [still.start.c_LBH], relative=1e-5)
