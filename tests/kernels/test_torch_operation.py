"""The kernel is a proper torch operation: what torch's own check of operations asks for holds."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from auxrnn.kernels.gated import FEED_ARGMAX, FEED_VECTOR
from auxrnn.structs import RNNState, StateQuery
from stacks import Sizes, draw_pass

SIZES = Sizes(rows=5, steps=4, hidden=16, layers=2, inputs=3, places=6)


def list_arguments(cell, *, is_token=False, is_late=False, wants_outputs=True, is_fed=False, is_recording=True):
    """Give the arguments of a forward pass; vectors are fed as they are predicted, of tokens the likeliest."""
    work = draw_pass(SIZES, cell=cell, is_token=is_token, is_late=is_late)
    if is_recording:
        work = work.to(torch.float32)
    head, own, uniform = [], None, None
    if is_fed:
        head = [torch.randn(7, SIZES.hidden), torch.randn(7), torch.randn(SIZES.inputs, 7), torch.randn(SIZES.inputs)]
        own, uniform = torch.rand(SIZES.rows, SIZES.steps) < 0.5, torch.rand(SIZES.rows, SIZES.steps)
    rule = FEED_ARGMAX if is_token else FEED_VECTOR
    shared = (work.x_BT, work.weights, *work.start, work.begin_B, *work.places, work.cell)
    return *shared, wants_outputs, is_recording, head, own, uniform, rule


CASES = {
    "vectors": {},
    "tokens": {"is_token": True},
    "late rows": {"is_late": True, "wants_outputs": False, "is_recording": False},
    "fed vectors": {"is_fed": True},
    "fed tokens": {"is_fed": True, "is_token": True},
}


@pytest.mark.parametrize("case", CASES)
def test_the_forward_pass_is_a_proper_operation(best_build, cell, case):
    torch.library.opcheck(torch.ops.auxrnn.gated.default, list_arguments(cell, **CASES[case]))


@pytest.mark.parametrize("wants_x", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
def test_the_backward_pass_is_a_proper_operation(best_build, cell, wants_x, is_late):
    with torch.no_grad():
        arguments = list_arguments(cell, is_late=is_late)
        *results, _fed, saved = torch.ops.auxrnn.gated(*arguments)
        shared = [[weight.detach() for weight in one] if isinstance(one, list) else one for one in arguments[:8]]
        shared = [one.detach() if isinstance(one, torch.Tensor) else one for one in shared]
    entering = [torch.ones_like(result) for result in results]
    torch.library.opcheck(torch.ops.auxrnn.gated_backward.default, (*shared, saved, *entering, wants_x))


class CountSaved(TorchDispatchMode):
    """Notes how much each forward pass keeps for the way back."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        results = func(*args, **(kwargs or {}))
        if func is torch.ops.auxrnn.gated.default:
            self.sizes.append(results[-1].numel())
        return results


def test_memory_is_taken_for_the_way_back_only_while_gradients_are_recorded(best_build):
    work = draw_pass(SIZES)
    taught = work.to(torch.float32)
    with CountSaved() as count:
        work.read()
        with torch.no_grad():
            taught.read()
        taught.read()
    assert count.sizes[:2] == [0, 0]
    # The four sums and the cell of each unit; 16 units are whole vectors in all builds.
    assert count.sizes[2:] == [5 * SIZES.rows * SIZES.steps * SIZES.layers * SIZES.hidden]


def list_misfits():
    """Give passes that do not fit together, none of which lets an unchecked call read out of bounds."""
    work = draw_pass(SIZES, is_late=True)
    row_P, steps_P = work.places
    return {
        "x is too wide": work._replace(x_BT=torch.zeros(SIZES.rows, SIZES.steps, SIZES.inputs + 1)),
        "start has too many rows": work._replace(start=RNNState(*(part.repeat(1, 2, 1) for part in work.start))),
        "start is in double precision": work._replace(start=RNNState(*(part.double() for part in work.start))),
        "begin has too many rows": work._replace(begin_B=work.begin_B.repeat(2)),
        "places differ in number": work._replace(places=StateQuery(row_P, steps_P.repeat(2))),
    }


@pytest.mark.parametrize("misfit", list_misfits())
def test_tensors_that_do_not_fit_together_are_refused(best_build, misfit):
    with pytest.raises((ValueError, RuntimeError)):
        list_misfits()[misfit].read()


@pytest.mark.filterwarnings("ignore:auxrnn::gated_backward")
def test_a_gradient_of_a_gradient_is_refused(best_build):
    work = draw_pass(SIZES).to(torch.float32)
    (grad,) = torch.autograd.grad(work.read()[1].square().sum(), work.x_BT, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(grad.square().sum(), work.x_BT)
