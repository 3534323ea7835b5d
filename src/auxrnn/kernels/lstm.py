"""A stack of LSTM layers as a torch operation with autograd, on the fused kernel. Single precision on CPUs.

Weights stand as input weights, recurrent weights and bias of each layer, from the bottom up. The readable reference is
the torch path in `models/cells/lstm.py`.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from auxrnn.kernels import library
from auxrnn.kernels.calls import Call, get_kernel, point_at_layers
from auxrnn.kernels.library import Backward, check
from auxrnn.structs import Places, RNNState, Steps

# Rules of feedback, as the kernel numbers them.
FEED_VECTOR, FEED_SAMPLED, FEED_ARGMAX = range(3)

# Not `torch.library.custom_op`: on its first call that imports torch's compiler, which takes seconds.
_OPERATIONS = torch.library.Library("auxrnn", "DEF")
_SHARED = (
    "Tensor x, Tensor[] weights, Tensor start_h, Tensor start_c, Tensor? begin, Tensor place_row, Tensor place_steps"
)
_OPERATIONS.define(
    f"lstm({_SHARED}, bool wants_outputs, bool keeps, Tensor[] head, Tensor? own, Tensor? uniform, int rule)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
_OPERATIONS.define(
    f"lstm_backward({_SHARED}, Tensor saved, Tensor? grad_all_h, Tensor? grad_place_h, Tensor? grad_place_c,"
    " bool wants_x) -> Tensor[]"
)


class Feeding(NamedTuple):
    """Input steps that are replaced by what a head (its two weights and biases) makes of the output before them."""

    head: Sequence[Tensor]
    is_own_BT: Bool[Tensor, "B T"]
    uniform_BT: Float[Tensor, "B T"]
    rule: int


class Outputs(NamedTuple):
    """What a pass gives: outputs of the top layer, the states at the places, and the input as it was read."""

    h_BTH: Float[Tensor, "B T H"]
    at_places: RNNState
    x_BT: Steps


def can_run(x_BT: Tensor, weight: Tensor) -> bool:
    """Say whether the kernel is there and takes these tensors: single precision, on the CPU."""
    is_input_fit = x_BT.dtype == torch.float32 or not x_BT.is_floating_point()
    return (
        is_input_fit
        and weight.dtype == torch.float32
        and weight.device.type == "cpu"
        and library.find_kernel() is not None
    )


def run_stack(
    x_BT: Steps,
    weights: Sequence[Tensor],
    start: RNNState,
    places: Places,
    *,
    begin_B: Int[Tensor, " B"] | None = None,
    wants_outputs: bool = False,
    feeding: Feeding | None = None,
) -> Outputs:
    """Read vectors or tokens; row b stays at its start until step `begin_B[b]`.

    Outputs are empty unless wanted. Memory for activations is taken only if gradients are being recorded.
    """
    x_BT = x_BT if x_BT.is_floating_point() else x_BT.long()
    places = Places(places.row_P.long(), places.steps_P.long())
    begin_B = None if begin_B is None else begin_B.long()
    _check_shapes(x_BT, weights, start, places, begin_B)
    if feeding is not None:
        _check_feeding(x_BT, weights, feeding, begin_B)
    # The head too: what comes out would ask for a backward pass on its behalf, though it gets no gradient from here.
    needed = [x_BT, *weights, *start, *(feeding.head if feeding else ())]
    is_recording = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in needed)
    h_BTH, h_LPH, c_LPH, fed_BT, _ = torch.ops.auxrnn.lstm(
        x_BT,
        list(weights),
        start.h_LBH,
        start.c_LBH,
        begin_B,
        places.row_P,
        places.steps_P,
        wants_outputs,
        is_recording,
        list(feeding.head) if feeding else [],
        feeding.is_own_BT if feeding else None,
        feeding.uniform_BT if feeding else None,
        feeding.rule if feeding else FEED_VECTOR,
    )
    return Outputs(h_BTH, RNNState(h_LPH, c_LPH), fed_BT if feeding else x_BT)


def _lstm(
    x: Tensor,
    weights: Sequence[Tensor],
    start_h: Tensor,
    start_c: Tensor,
    begin: Tensor | None,
    place_row: Tensor,
    place_steps: Tensor,
    wants_outputs: bool,
    keeps: bool,
    head: Sequence[Tensor],
    own: Tensor | None,
    uniform: Tensor | None,
    rule: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Give all outputs, h and c at the places, the input as it was read if the head fed it, and what is saved."""
    results = _allocate(x, start_h, place_row, wants_outputs=wants_outputs, keeps=keeps, is_fed=bool(head))
    all_h, place_h, place_c, fed, saved = results
    if head:
        fed.copy_(x)
    call = Call(fed if head else x, weights, start_h, start_c, begin, place_row, place_steps)
    call.give(place_h=place_h, place_c=place_c)
    call.give(all_h=all_h if wants_outputs else None, saved=saved if keeps else None)
    if head:
        assert own is not None
        assert uniform is not None
        call.feed(head, own, uniform, rule)
    check(get_kernel().c.auxrnn_forward(ctypes.byref(call.forward)))
    return results


def _allocate(
    x: Tensor, start_h: Tensor, place_row: Tensor, *, wants_outputs: bool, keeps: bool, is_fed: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    rows, steps = x.shape[:2]
    layers, _, hidden_size = start_h.shape
    return (
        start_h.new_empty((rows, steps, hidden_size) if wants_outputs else (0, 0, 0)),
        start_h.new_empty(layers, len(place_row), hidden_size),
        start_h.new_empty(layers, len(place_row), hidden_size),
        x.new_empty(x.shape if is_fed else 0),
        start_h.new_empty(get_kernel().c.auxrnn_saved_size(rows, steps, hidden_size, layers) if keeps else 0),
    )


def _allocate_lstm(
    x: Tensor,
    weights: Sequence[Tensor],
    start_h: Tensor,
    start_c: Tensor,
    begin: Tensor | None,
    place_row: Tensor,
    place_steps: Tensor,
    wants_outputs: bool,
    keeps: bool,
    head: Sequence[Tensor],
    own: Tensor | None,
    uniform: Tensor | None,
    rule: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _allocate(x, start_h, place_row, wants_outputs=wants_outputs, keeps=keeps, is_fed=bool(head))


def _lstm_backward(
    x: Tensor,
    weights: Sequence[Tensor],
    start_h: Tensor,
    start_c: Tensor,
    begin: Tensor | None,
    place_row: Tensor,
    place_steps: Tensor,
    saved: Tensor,
    grad_all_h: Tensor | None,
    grad_place_h: Tensor | None,
    grad_place_c: Tensor | None,
    wants_x: bool,
) -> list[Tensor]:
    """Give the gradients of the start's h and c, of x (empty unless wanted), and of all weights."""
    rows, steps = x.shape[:2]
    layers, _, hidden_size = start_h.shape
    assert saved.numel() == get_kernel().c.auxrnn_saved_size(rows, steps, hidden_size, layers), "the pass kept nothing"
    call = Call(x, weights, start_h, start_c, begin, place_row, place_steps)
    call.give(saved=saved)
    backward = Backward(forward=ctypes.pointer(call.forward))
    backward.grad_all_h = call.keep(grad_all_h)
    backward.grad_place_h, backward.grad_place_c = call.keep(grad_place_h), call.keep(grad_place_c)
    grads = _allocate_gradients(x, weights, start_h, wants_x)
    grad_h, grad_c, grad_x, *grad_weights = grads
    backward.grad_start_h, backward.grad_start_c = grad_h.data_ptr(), grad_c.data_ptr()
    backward.grad_x = grad_x.zero_().data_ptr() if wants_x else None
    backward.grad_layer = point_at_layers(grad_weights)
    check(get_kernel().c.auxrnn_backward(ctypes.byref(backward)))
    return grads


def _allocate_gradients(x: Tensor, weights: Sequence[Tensor], start_h: Tensor, wants_x: bool) -> list[Tensor]:
    states = [start_h.new_empty(start_h.shape), start_h.new_empty(start_h.shape)]
    return [*states, start_h.new_empty(x.shape if wants_x else 0), *(start_h.new_empty(w.shape) for w in weights)]


def _allocate_backward(
    x: Tensor,
    weights: Sequence[Tensor],
    start_h: Tensor,
    start_c: Tensor,
    begin: Tensor | None,
    place_row: Tensor,
    place_steps: Tensor,
    saved: Tensor,
    grad_all_h: Tensor | None,
    grad_place_h: Tensor | None,
    grad_place_c: Tensor | None,
    wants_x: bool,
) -> list[Tensor]:
    return _allocate_gradients(x, weights, start_h, wants_x)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weights, start_h, start_c, begin, place_row, place_steps, _, _, head, own, *_ = inputs
    read = output[3] if head else x
    ctx.save_for_backward(read, start_h, start_c, begin, place_row, place_steps, own, output[4], *weights)
    ctx.mark_non_differentiable(output[3], output[4])
    ctx.set_materialize_grads(False)  # or zeros as large as all that is saved would be written


def _differentiate(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
    x, start_h, start_c, begin, place_row, place_steps, own, saved, *weights = ctx.saved_tensors
    grad_all_h, grad_place_h, grad_place_c = grads[:3]
    wants_x = ctx.needs_input_grad[0]
    grad_h, grad_c, grad_x, *grad_weights = torch.ops.auxrnn.lstm_backward(
        x,
        weights,
        start_h,
        start_c,
        begin,
        place_row,
        place_steps,
        saved,
        grad_all_h,
        grad_place_h,
        grad_place_c,
        wants_x,
    )
    if wants_x and own is not None:
        grad_x = grad_x.masked_fill(own[:, :, None], 0.0)  # what was fed back carries no gradient
    before_head, after_head, head = [None] * 5, [None] * 3, [None] * (0 if own is None else 4)
    return grad_x if wants_x else None, grad_weights, grad_h, grad_c, *before_head, head, *after_head


def _refuse_second_gradient(ctx: Any, *grads: Any) -> tuple[Any, ...]:
    raise NotImplementedError("the fused LSTM has no second gradient; use double precision, or AUXRNN_KERNEL=none")


_OPERATIONS.impl("lstm", _lstm, "CPU")
_OPERATIONS.impl("lstm_backward", _lstm_backward, "CPU")
torch.library.register_fake("auxrnn::lstm", _allocate_lstm, lib=_OPERATIONS)
torch.library.register_fake("auxrnn::lstm_backward", _allocate_backward, lib=_OPERATIONS)
torch.library.register_autograd("auxrnn::lstm", _differentiate, setup_context=_remember, lib=_OPERATIONS)
torch.library.register_autograd("auxrnn::lstm_backward", _refuse_second_gradient, lib=_OPERATIONS)


def _check_shapes(
    x_BT: Tensor, weights: Sequence[Tensor], start: RNNState, places: Places, begin_B: Tensor | None
) -> None:
    """Refuse what does not fit together: the kernel follows addresses and would read beyond the end."""
    (num_rows, num_steps), (num_layers, _, hidden_size) = x_BT.shape[:2], start.h_LBH.shape
    sizes = [weights[0].shape[1]] + [hidden_size] * (num_layers - 1)
    gates = 4 * hidden_size
    wanted = [shape for size in sizes for shape in ((gates, size), (gates, hidden_size), (gates,))]
    step_shape = (sizes[0],) if x_BT.is_floating_point() else ()
    state_shape = (num_layers, num_rows, hidden_size)
    _require(x_BT.shape == (num_rows, num_steps, *step_shape), "steps", x_BT, (num_rows, num_steps, *step_shape))
    _require(len(weights) == len(wanted), "the list of weights", start.h_LBH, state_shape)
    for weight, shape in zip(weights, wanted, strict=True):
        _require(weight.shape == shape and weight.dtype == torch.float32, "a weight", weight, shape)
    for tensor_LBH in start:
        _require(
            tensor_LBH.shape == state_shape and tensor_LBH.dtype == torch.float32, "a state", tensor_LBH, state_shape
        )
    if begin_B is not None:
        _require(begin_B.shape == (num_rows,), "the list of first steps", begin_B, (num_rows,))
    _require(places.row_P.shape == places.steps_P.shape, "places", places.row_P, tuple(places.steps_P.shape))


def _check_feeding(x_BT: Tensor, weights: Sequence[Tensor], feeding: Feeding, begin_B: Tensor | None) -> None:
    if begin_B is not None:
        raise ValueError("rows that begin late cannot be fed back to; leave out begin_B")
    hidden_weight, hidden_bias, output_weight, output_bias = feeding.head
    head_size, output_size, hidden_size = len(hidden_bias), weights[0].shape[1], weights[1].shape[1]
    pairs = [
        (hidden_weight, (head_size, hidden_size)),
        (hidden_bias, (head_size,)),
        (output_weight, (output_size, head_size)),
        (output_bias, (output_size,)),
        (feeding.is_own_BT, tuple(x_BT.shape[:2])),
        (feeding.uniform_BT, tuple(x_BT.shape[:2])),
    ]
    for tensor, shape in pairs:
        is_fit = tensor.dtype == (torch.bool if tensor is feeding.is_own_BT else torch.float32)
        _require(is_fit and tensor.shape == shape, "what feeds back", tensor, shape)


def _require(is_fit: bool, what: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if not is_fit:
        raise ValueError(f"{what} of shape {list(tensor.shape)} ({tensor.dtype}) does not fit; {list(shape)} would")
