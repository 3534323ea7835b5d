"""The scan of a linear recurrence on the compiled kernel, as a torch operation with autograd.

Single precision on CPUs; `K` counts the real parts of all units, then their imaginary parts. The readable reference is
`scan_steps` in `models/cells/lru.py`.
"""

import ctypes
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from auxrnn.kernels import gated, library

can_run = gated.can_run
# Work below so many complex multiply-adds is done before a second thread has started.
WORTH_A_THREAD = 250_000


def scan(
    v_BTK: Float[Tensor, "B T K"],
    decay_K: Float[Tensor, " K"],
    start_BK: Float[Tensor, "B K"],
    idle_BT: Bool[Tensor, "B T"] | None,
) -> Float[Tensor, "B T K"]:
    """Return x[t] = decay * x[t-1] + v[t] of complex numbers from the start on; an idle x[t] is x[t-1]."""
    num_rows, num_steps, width = v_BTK.shape
    shapes = [(width,), (num_rows, width), (num_rows, num_steps)]
    parts = [decay_K, start_BK, *([] if idle_BT is None else [idle_BT])]
    # The kernel follows addresses and would read beyond the end.
    if width % 2 or any(part.shape != shape for part, shape in zip(parts, shapes, strict=False)):
        raise ValueError(f"a scan of {list(v_BTK.shape)} does not fit {[list(part.shape) for part in parts]}")
    x_BTK: Tensor = torch.ops.auxrnn.scan(v_BTK, decay_K, start_BK, idle_BT)
    return x_BTK


def _scan(v: Tensor, decay: Tensor, start: Tensor, idle: Tensor | None) -> Tensor:
    v, x, call = v.contiguous(), v.new_empty(v.shape), _Call(decay, start, idle)
    library.check(library.get_kernel().c.auxrnn_scan(call.describe(v), v.data_ptr(), x.data_ptr()))
    return x


def _scan_backward(x: Tensor, grad_x: Tensor, decay: Tensor, start: Tensor, idle: Tensor | None) -> list[Tensor]:
    """Return the gradients of v, decay and start."""
    grad_x, call = grad_x.contiguous(), _Call(decay, start, idle)
    grad_v, grad_decay, grad_start = grads = _allocate_backward(x, grad_x, decay, start)
    pointers = [tensor.data_ptr() for tensor in (x, grad_x, grad_v, grad_start, grad_decay)]
    library.check(library.get_kernel().c.auxrnn_scan_backward(call.describe(x), *pointers))
    return grads


def _allocate_backward(x: Tensor, grad_x: Tensor, decay: Tensor, start: Tensor, *_: Any) -> list[Tensor]:
    return [x.new_empty(part.shape) for part in (grad_x, decay, start)]


class _Call:
    """What both passes tell the kernel, and the tensors that this points at, kept alive."""

    def __init__(self, decay: Tensor, start: Tensor, idle: Tensor | None) -> None:
        self.decay, self.start = decay.contiguous(), start.contiguous()
        self.idle = None if idle is None else idle.contiguous()

    def describe(self, v: Tensor) -> Any:
        rows, steps, width = v.shape
        threads = torch.get_num_threads() if v.numel() >= WORTH_A_THREAD else 1
        idle = None if self.idle is None else self.idle.data_ptr()
        sizes = (rows, steps, width // 2, threads)
        return ctypes.byref(library.ScanCall(*sizes, self.decay.data_ptr(), self.start.data_ptr(), idle))


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, *inputs[1:])


def _backward(ctx: Any, grad_x: Tensor) -> tuple[Tensor | None, ...]:
    x, *rest = ctx.saved_tensors
    grad_v, grad_decay, grad_start = torch.ops.auxrnn.scan_backward(x, grad_x, *rest)
    return grad_v, grad_decay, grad_start, None


_OPERATIONS = torch.library.Library("auxrnn", "FRAGMENT")
_OPERATIONS.define("scan(Tensor v, Tensor decay, Tensor start, Tensor? idle) -> Tensor")
_OPERATIONS.define("scan_backward(Tensor x, Tensor grad_x, Tensor decay, Tensor start, Tensor? idle) -> Tensor[]")
_OPERATIONS.impl("scan", _scan, "CPU")
_OPERATIONS.impl("scan_backward", _scan_backward, "CPU")
torch.library.register_fake("auxrnn::scan", lambda v, *_: v.new_empty(v.shape), lib=_OPERATIONS)
torch.library.register_fake("auxrnn::scan_backward", _allocate_backward, lib=_OPERATIONS)
torch.library.register_autograd("auxrnn::scan", _backward, setup_context=_save_for_backward, lib=_OPERATIONS)
torch.library.register_autograd("auxrnn::scan_backward", gated.refuse_second_gradient, lib=_OPERATIONS)
