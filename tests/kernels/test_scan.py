"""The scan of a linear recurrence on the kernel equals the plain one, in values and gradients, on any threads."""

import pytest
import torch

from auxrnn.kernels import scan as kernel
from auxrnn.models.cells.lru import scan_steps
from stacks import assert_same_bytes

B, T = 5, 11
# Units that fill no vector, and more than one.
SIZES = [1, 7, 19]


def draw(num_units, *, is_late=False, num_rows=B, num_steps=T, dtype=torch.float64):
    """Give what a scan reads: v, decay, start, and which columns are idle at the beginning of rows."""
    radius_U, angle_U = 0.5 + 0.5 * torch.rand(num_units), 3 * torch.rand(num_units)
    decay_K = torch.cat([radius_U * angle_U.cos(), radius_U * angle_U.sin()])
    parts = [torch.randn(num_rows, num_steps, 2 * num_units), decay_K, torch.randn(num_rows, 2 * num_units)]
    idle_BT = torch.arange(num_steps) < torch.randint(num_steps + 1, (num_rows, 1)) if is_late else None
    return [part.to(dtype).requires_grad_() for part in parts], idle_BT


def run(scan, parts, idle_BT):
    """Give the states and the gradients of a number that depends on each of them in its own way."""
    x_BTK = scan(*parts, idle_BT)
    measure = (x_BTK * torch.arange(x_BTK.numel()).reshape(x_BTK.shape).sin()).sum()
    return [x_BTK, *torch.autograd.grad(measure, parts)]


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("num_units", SIZES)
def test_it_equals_the_plain_scan_in_double_precision(build, num_units, is_late):
    parts, idle_BT = draw(num_units, is_late=is_late)
    expected = run(scan_steps, parts, idle_BT)
    single = [part.detach().float().requires_grad_() for part in parts]
    for ours, theirs in zip(run(kernel.scan, single, idle_BT), expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("is_late", [False, True])
def test_no_result_depends_on_the_number_of_threads(build, is_late):
    parts, idle_BT = draw(40, is_late=is_late, num_rows=33, num_steps=100, dtype=torch.float32)
    assert parts[0].numel() > kernel.WORTH_A_THREAD
    expected = run(kernel.scan, parts, idle_BT)
    for num_threads in (2, 3, 5):
        torch.set_num_threads(num_threads)
        assert_same_bytes(run(kernel.scan, parts, idle_BT), expected)


def test_strides_do_not_matter(best_build):
    parts, _ = draw(6, dtype=torch.float32)
    expected = run(kernel.scan, parts, None)
    turned = [part.detach().T.contiguous().T if part.dim() == 2 else part.detach().clone() for part in parts]
    turned[0] = turned[0].transpose(0, 1).contiguous().transpose(0, 1)
    assert_same_bytes(run(kernel.scan, [part.requires_grad_() for part in turned], None), expected)


def test_the_plain_scan_equals_a_loop_over_complex_numbers_and_its_gradients_finite_differences():
    parts, idle_BT = draw(3, is_late=True)
    v_BTK, decay_K, start_BK = (part.detach() for part in parts)
    x_BTK = scan_steps(v_BTK, decay_K, start_BK, idle_BT)
    for row in range(B):
        for unit in range(3):
            state = complex(start_BK[row, unit], start_BK[row, 3 + unit])
            for step in range(T):
                if not idle_BT[row, step]:
                    state = complex(decay_K[unit], decay_K[3 + unit]) * state
                    state += complex(v_BTK[row, step, unit], v_BTK[row, step, 3 + unit])
                assert complex(x_BTK[row, step, unit], x_BTK[row, step, 3 + unit]) == pytest.approx(state, rel=1e-12)
    assert torch.autograd.gradcheck(lambda *given: scan_steps(*given, idle_BT), parts)


@pytest.mark.parametrize("is_late", [False, True])
def test_it_is_a_proper_operation(best_build, is_late):
    parts, idle_BT = draw(4, is_late=is_late, dtype=torch.float32)
    torch.library.opcheck(torch.ops.auxrnn.scan.default, (*parts, idle_BT))


def test_what_does_not_fit_together_is_refused(best_build):
    (v_BTK, decay_K, start_BK), _ = draw(4, dtype=torch.float32)
    for wrong in [(v_BTK, decay_K[:-1], start_BK, None), (v_BTK, decay_K, start_BK[1:], None)]:
        with pytest.raises(ValueError, match="does not fit"):
            kernel.scan(*wrong)
    with pytest.raises(ValueError, match="does not fit"):
        kernel.scan(v_BTK, decay_K, start_BK, torch.zeros(B, T + 1, dtype=torch.bool))
