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

from auxrnn.kernels.library import OUT_OF_MEMORY, Backward, Forward, Head, Kernel, Layer, check, find_kernel
from auxrnn.structs import Places, RNNState, Steps

# Rules of feedback, as the kernel numbers them.
FEED_VECTOR, FEED_SAMPLED, FEED_ARGMAX = range(3)

# Work below so many multiply-adds is done before a second thread has started.
WORTH_A_THREAD = 1_000_000

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
    return is_input_fit and weight.dtype == torch.float32 and weight.device.type == "cpu" and find_kernel() is not None


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
    needed = [x_BT, *weights, *start]
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


class Packed:
    """A network with its weights laid out once and its states kept, for many short calls.

    A registered torch operation would cost more than the arithmetic of a single step.
    """

    def __init__(self, weights: Sequence[Tensor], head: Sequence[Tensor], state: RNNState, *, is_token: bool) -> None:
        weights, head = [_as_plain(weight) for weight in weights], [_as_plain(weight) for weight in head]
        layers, self._rows, self._hidden_size = state.h_LBH.shape
        shape = Forward(hidden_size=self._hidden_size, layers=layers, input_size=weights[0].shape[1])
        shape.layer, shape.head = _point_at_layers(weights), ctypes.pointer(_point_at_head(head))
        shape.token = 1 if is_token else None  # never followed: says what the input will be
        self._is_token = is_token
        self._state, self._h, self._c = state, state.h_LBH.data_ptr(), state.c_LBH.data_ptr()
        self._library = _kernel().c
        self._network = self._library.auxrnn_open(ctypes.byref(shape))
        if self._network is None:
            check(OUT_OF_MEMORY)

    def push(self, x_BS: Steps, num_steps: int, probability_BC: Float[Tensor, "B C"]) -> None:
        """Read so many further steps, move the state on in place, and write the softmax of the head.

        The tensors must be contiguous; their shapes are not looked at.
        """
        address = x_BS.data_ptr()
        x, token = (None, address) if self._is_token else (address, None)
        threads = _count_threads(self._rows, num_steps, self._hidden_size)
        to = probability_BC.data_ptr()
        check(self._library.auxrnn_push(self._network, x, token, self._rows, num_steps, threads, self._h, self._c, to))

    def __del__(self) -> None:
        if getattr(self, "_network", None) is not None:
            self._library.auxrnn_close(self._network)


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
    call = _Call(fed if head else x, weights, start_h, start_c, begin, place_row, place_steps)
    call.give(place_h=place_h, place_c=place_c)
    call.give(all_h=all_h if wants_outputs else None, saved=saved if keeps else None)
    if head:
        assert own is not None
        assert uniform is not None
        call.feed(head, own, uniform, rule)
    check(_kernel().c.auxrnn_forward(ctypes.byref(call.forward)))
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
        start_h.new_empty(_kernel().c.auxrnn_saved_size(rows, steps, hidden_size, layers) if keeps else 0),
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
    call = _Call(x, weights, start_h, start_c, begin, place_row, place_steps)
    call.give(saved=saved)
    backward = Backward(forward=ctypes.pointer(call.forward))
    backward.grad_all_h = call.keep(grad_all_h)
    backward.grad_place_h, backward.grad_place_c = call.keep(grad_place_h), call.keep(grad_place_c)
    grads = _allocate_gradients(x, weights, start_h, wants_x)
    grad_h, grad_c, grad_x, *grad_weights = grads
    backward.grad_start_h, backward.grad_start_c = grad_h.data_ptr(), grad_c.data_ptr()
    backward.grad_x = grad_x.zero_().data_ptr() if wants_x else None
    backward.grad_layer = _point_at_layers(grad_weights)
    check(_kernel().c.auxrnn_backward(ctypes.byref(backward)))
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


_OPERATIONS.impl("lstm", _lstm, "CPU")
_OPERATIONS.impl("lstm_backward", _lstm_backward, "CPU")
torch.library.register_fake("auxrnn::lstm", _allocate_lstm, lib=_OPERATIONS)
torch.library.register_fake("auxrnn::lstm_backward", _allocate_backward, lib=_OPERATIONS)
torch.library.register_autograd("auxrnn::lstm", _differentiate, setup_context=_remember, lib=_OPERATIONS)


class _Call:
    """The description of a pass for the kernel, and the tensors it points at, kept alive."""

    def __init__(
        self,
        x: Tensor,
        weights: Sequence[Tensor],
        start_h: Tensor,
        start_c: Tensor,
        begin: Tensor | None,
        place_row: Tensor,
        place_steps: Tensor,
    ) -> None:
        self._kept: list[Any] = []
        rows, steps = x.shape[:2]
        layers, _, hidden_size = start_h.shape
        plain_weights = [_as_plain(weight) for weight in weights]
        is_token = not x.is_floating_point()
        if not is_token and x.shape[2] > 1 and x.stride(2) != 1:
            x = x.contiguous()
        self._kept += [plain_weights, x]
        self.forward = Forward(
            rows=rows,
            steps=steps,
            hidden_size=hidden_size,
            layers=layers,
            input_size=weights[0].shape[1],
            threads=_count_threads(rows, steps, hidden_size),
            layer=_point_at_layers(plain_weights),
            x_row=x.stride(0),
            x_step=x.stride(1),
            places=len(place_row),
        )
        setattr(self.forward, "token" if is_token else "x", x.data_ptr())
        self.give(start_h=start_h, start_c=start_c, begin=begin, place_row=place_row, place_steps=place_steps)

    def give(self, **tensors: Tensor | None) -> None:
        """Point fields of the description at tensors."""
        for name, tensor in tensors.items():
            setattr(self.forward, name, self.keep(tensor))

    def keep(self, tensor: Tensor | None) -> int | None:
        """Give the address of a tensor's values, in plain order, and keep them alive."""
        if tensor is None:
            return None
        self._kept.append(_as_plain(tensor))
        return int(self._kept[-1].data_ptr())

    def feed(self, head: Sequence[Tensor], own: Tensor, uniform: Tensor, rule: int) -> None:
        """Let the head's predictions replace input steps."""
        plain = [_as_plain(weight) for weight in head]
        self._kept.append(plain)
        self.forward.head = ctypes.pointer(_point_at_head(plain))
        self.give(own=own, uniform=uniform)
        self.forward.feed = rule


def _kernel() -> Kernel:
    kernel = find_kernel()
    assert kernel is not None, "callers ask `can_run` first"
    return kernel


def _count_threads(rows: int, steps: int, hidden_size: int) -> int:
    return torch.get_num_threads() if 4 * rows * steps * hidden_size**2 >= WORTH_A_THREAD else 1


def _as_plain(tensor: Tensor) -> Tensor:
    return tensor.contiguous()


def _point_at_layers(weights: Sequence[Tensor]) -> Any:
    pointers = [weight.data_ptr() for weight in weights]
    layers = [Layer(*pointers[at : at + 3]) for at in range(0, len(pointers), 3)]
    return (Layer * len(layers))(*layers)


def _point_at_head(head: Sequence[Tensor]) -> Head:
    hidden_weight, _, output_weight, _ = head
    return Head(hidden_weight.shape[0], output_weight.shape[0], *[weight.data_ptr() for weight in head])
