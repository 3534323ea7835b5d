"""What the kernel keeps to the last bit: no result depends on threads, on other rows, on pieces or on a graph."""

import pytest
import torch

from auxrnn.kernels.library import WORTH_A_THREAD
from auxrnn.structs import RNNState, StateQuery
from stacks import Sizes, assert_same_bytes, draw_pass, gradients

# More than 64 rows make nine blocks; units are no multiple of a vector.
SIZES = Sizes(rows=130, steps=5, hidden=43, layers=2, inputs=3, places=60)


def read_with_gradients(work, num_threads=1):
    """Give all results of a pass and all gradients, with gradients entering at each of the results."""
    work = work.to(torch.float32)
    torch.set_num_threads(num_threads)
    results = work.read(wants_outputs=True)
    entering = [torch.arange(part.numel()).reshape(part.shape).sin() for part in results]
    grads = gradients(results, work.sources(), entering)
    torch.set_num_threads(1)
    return [*results, *grads]


@pytest.mark.parametrize("is_token", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
def test_no_result_depends_on_the_number_of_threads(build, cell, is_token, is_late):
    assert SIZES.rows * SIZES.steps * SIZES.hidden**2 > WORTH_A_THREAD
    work = draw_pass(SIZES, cell=cell, is_token=is_token, is_late=is_late)
    expected = read_with_gradients(work)
    for num_threads in (2, 3, 5):
        assert_same_bytes(read_with_gradients(work, num_threads), expected)


@pytest.mark.parametrize("is_token", [False, True])
@pytest.mark.parametrize("rows", [range(1), range(129, 130), range(20, 90), range(7, 24)])
def test_a_row_does_not_depend_on_the_rows_beside_it(build, cell, is_token, rows):
    work = draw_pass(SIZES, cell=cell, is_token=is_token, is_late=True).to(torch.float32)
    some_B = torch.tensor(rows)
    everywhere = StateQuery(torch.arange(SIZES.rows), torch.full((SIZES.rows,), SIZES.steps))
    together = work._replace(places=everywhere)
    alone = work._replace(
        x_BT=work.x_BT[some_B],
        start=work.start.select(some_B),
        places=StateQuery(torch.arange(len(some_B)), everywhere.steps_P[some_B]),
        begin_B=work.begin_B[some_B],
    )
    (h_BTH, h_LBH, c_LBH), parts = together.read(wants_outputs=True), alone.read(wants_outputs=True)
    results = h_BTH[some_B], h_LBH[:, some_B], c_LBH[:, some_B]
    assert_same_bytes(parts, results)
    entering = [torch.arange(part.numel()).reshape(part.shape).sin() for part in parts]
    own = [*([] if is_token else [work.x_BT]), *work.start]
    assert_same_bytes(gradients(parts, own, entering), gradients(results, own, entering))


@pytest.mark.parametrize("is_token", [False, True])
def test_reading_in_pieces_equals_reading_at_once(build, cell, is_token):
    work = draw_pass(SIZES._replace(steps=11), cell=cell, is_token=is_token)
    row_B = torch.arange(SIZES.rows)

    def read_on(x_BT, state):
        places = StateQuery(row_B, torch.full_like(row_B, x_BT.shape[1]))
        return work._replace(x_BT=x_BT, start=state, places=places).read(wants_outputs=True)

    at_once = read_on(work.x_BT, work.start)
    state, outputs = work.start, []
    for part in work.x_BT.split([1, 4, 6], dim=1):
        h_BTH, *state = read_on(part, RNNState(*state))
        outputs.append(h_BTH)
    assert_same_bytes([torch.cat(outputs, dim=1), *state], at_once)


@pytest.mark.parametrize("wants_outputs", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
def test_what_is_read_without_a_graph_equals_what_is_read_with_one(build, cell, wants_outputs, is_late):
    work = draw_pass(SIZES, cell=cell, is_late=is_late)
    with_graph = work.to(torch.float32).read(wants_outputs=wants_outputs)
    assert with_graph[1].requires_grad
    assert_same_bytes(work.read(wants_outputs=wants_outputs), with_graph)


def test_a_state_does_not_depend_on_what_else_is_asked_for(build, cell):
    work = draw_pass(SIZES, cell=cell, is_late=True)
    _, h_LPH, c_LPH = work.read(wants_outputs=True)
    few_P = torch.tensor([0, 17, 17, 59])
    few = work._replace(places=StateQuery(work.places.row_P[few_P], work.places.steps_P[few_P]))
    assert_same_bytes(few.read()[1:], [h_LPH[:, few_P], c_LPH[:, few_P]])


def test_strides_of_what_comes_in_do_not_matter(build, cell):
    work = draw_pass(SIZES, cell=cell, is_late=True).to(torch.float32)
    strided = work._replace(
        x_BT=work.x_BT.transpose(0, 1).contiguous().transpose(0, 1).repeat(1, 1, 2)[:, :, ::2],
        weights=[weight.t().contiguous().t() for weight in work.weights],
        start=RNNState(*(part.expand(3, *part.shape).movedim(0, 3)[..., 1] for part in work.start)),
    )
    x_BTI = work.x_BT.repeat(1, 1, 2)[:, :, ::2]
    expected = work._replace(x_BT=x_BTI.contiguous()).read(wants_outputs=True)
    actual = strided.read(wants_outputs=True)
    assert_same_bytes(actual, expected)
    entering = [torch.ones(()).expand(part.shape) for part in expected]
    assert_same_bytes(gradients(actual, work.sources(), entering), gradients(expected, work.sources(), entering))
