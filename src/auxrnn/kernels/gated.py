"""A stack of layers of a gated cell on the fused kernel: as a torch operation with autograd, and packed for streams.

Single precision on CPUs. Weights stand as input weights, recurrent weights and bias of each layer, from the bottom up.
The readable references are the torch paths of the cells in `models/cells/`.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from auxrnn.kernels import library
from auxrnn.kernels.library import BackwardCall, Call, ForwardCall, LayerPass
from auxrnn.structs import RNNState, StateQuery, Steps

# Rules of feedback, as the kernel numbers them.
FEED_VECTOR, FEED_SAMPLED, FEED_ARGMAX = range(3)


class Feedback(NamedTuple):
    """Input steps to replace by what a head (its two weights and biases) predicts from the output before them."""

    head: Sequence[Tensor]
    is_fed_back_BT: Bool[Tensor, "B T"]
    uniform_BT: Float[Tensor, "B T"]
    rule: int


class Outputs(NamedTuple):
    """Outputs of the top layer, the queried states, and the input as it was run."""

    h_BTH: Float[Tensor, "B T H"]
    states: RNNState
    x_BT: Steps


class ForwardOptions(NamedTuple):
    """What the forward operation takes beside a `LayerPass`."""

    wants_outputs: bool
    is_recording: bool
    head: list[Tensor]
    fed_back: Tensor | None
    uniform: Tensor | None
    rule: int


class BackwardOptions(NamedTuple):
    """What the backward operation takes beside a `LayerPass`."""

    saved: Tensor
    grad_all_h: Tensor | None
    grad_place_h: Tensor | None
    grad_place_c: Tensor | None
    wants_x: bool


def can_run(x_BT: Tensor, weight: Tensor) -> bool:
    """Return whether the kernel is there and takes these tensors: single precision, on the CPU."""
    is_input_fit = x_BT.dtype == torch.float32 or not x_BT.is_floating_point()
    is_weight_fit = weight.dtype == torch.float32 and weight.device.type == "cpu"
    return is_input_fit and is_weight_fit and library.find_kernel() is not None


def forward(
    x_BT: Steps,
    weights: Sequence[Tensor],
    start: RNNState,
    query: StateQuery,
    *,
    cell: str,
    begin_B: Int[Tensor, " B"] | None = None,
    wants_outputs: bool = False,
    feedback: Feedback | None = None,
) -> Outputs:
    """Run vectors or tokens through all layers of a cell; row b stays at its start until step `begin_B[b]`.

    Outputs are empty unless wanted. Memory for activations is taken only if gradients are being recorded.
    """
    x_BT = x_BT if x_BT.is_floating_point() else x_BT.long()
    query = StateQuery(query.row_P.long(), query.steps_P.long())
    begin_B = None if begin_B is None else begin_B.long()
    _check_shapes(x_BT, weights, start, query, begin_B)
    if feedback is not None:
        _check_feedback(x_BT, weights, feedback, begin_B)
    # The head too: the outputs would ask for a backward pass on its behalf, though it gets no gradient from here.
    needed = [x_BT, *weights, *start, *(feedback.head if feedback else ())]
    is_recording = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in needed)
    work = LayerPass(x_BT, list(weights), *start, begin_B, *query, cell)
    fed = ([], None, None, FEED_VECTOR) if feedback is None else (list(feedback.head), *feedback[1:])
    options = ForwardOptions(wants_outputs, is_recording, *fed)
    h_BTH, h_LPH, c_LPH, fed_BT, _ = torch.ops.auxrnn.gated(*work, *options)
    return Outputs(h_BTH, RNNState(h_LPH, c_LPH), fed_BT if feedback else x_BT)


def _gated(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return all outputs, h and c at the queried places, the input as it was run if fed back, and what is saved."""
    work, options = _unpack(arguments, ForwardOptions)
    results = _allocate_forward(*arguments)
    all_h, place_h, place_c, fed, saved = results
    if options.head:
        fed.copy_(work.x)
        work = work._replace(x=fed)
    call = Call(work)
    call.set(place_h=place_h, place_c=place_c)
    call.set(all_h=all_h if options.wants_outputs else None, saved=saved if options.is_recording else None)
    if options.head:
        call.set_feedback(options.head, options.fed_back, options.uniform, options.rule)
    library.check(library.get_kernel().c.auxrnn_forward(ctypes.byref(call.forward)))
    return results


def _allocate_forward(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return empty tensors for the results: all that tracing needs to know of the operation."""
    work, options = _unpack(arguments, ForwardOptions)
    (rows, steps), (layers, _, hidden_size) = work.x.shape[:2], work.start_h.shape
    new_empty, places = work.start_h.new_empty, len(work.place_row)
    return (
        new_empty((rows, steps, hidden_size) if options.wants_outputs else (0, 0, 0)),
        new_empty(layers, places, hidden_size),
        new_empty(layers, places, hidden_size),
        work.x.new_empty(work.x.shape if options.head else 0),
        new_empty(_saved_size(work) if options.is_recording else 0),
    )


def _saved_size(work: LayerPass) -> int:
    (rows, steps), (layers, _, hidden_size) = work.x.shape[:2], work.start_h.shape
    return int(library.get_kernel().c.auxrnn_saved_size(rows, steps, hidden_size, layers))


def _gated_backward(*arguments: Any) -> list[Tensor]:
    """Return the gradients of the start's h and c, of x (empty unless wanted), and of all weights."""
    work, options = _unpack(arguments, BackwardOptions)
    assert options.saved.numel() == _saved_size(work), "the forward pass saved nothing"
    call = Call(work)
    call.set(saved=options.saved)
    backward = BackwardCall(forward=ctypes.pointer(call.forward))
    backward.grad_all_h = call.keep(options.grad_all_h)
    backward.grad_place_h, backward.grad_place_c = call.keep(options.grad_place_h), call.keep(options.grad_place_c)
    grads = _allocate_backward(*arguments)
    grad_h, grad_c, grad_x, *grad_weights = grads
    backward.grad_start_h, backward.grad_start_c = grad_h.data_ptr(), grad_c.data_ptr()
    backward.grad_x = grad_x.zero_().data_ptr() if options.wants_x else None
    backward.grad_layer = library.point_at_layers(grad_weights)
    library.check(library.get_kernel().c.auxrnn_backward(ctypes.byref(backward)))
    return grads


def _allocate_backward(*arguments: Any) -> list[Tensor]:
    work, options = _unpack(arguments, BackwardOptions)
    new_empty = work.start_h.new_empty
    states = [new_empty(work.start_h.shape), new_empty(work.start_h.shape)]
    return [*states, new_empty(work.x.shape if options.wants_x else 0), *(new_empty(w.shape) for w in work.weights)]


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    work, options = _unpack(inputs, ForwardOptions)
    x = output[3] if options.head else work.x
    ctx.cell = work.cell
    ctx.save_for_backward(options.fed_back, output[4], x, *work[2:-1], *work.weights)
    ctx.mark_non_differentiable(output[3], output[4])
    ctx.set_materialize_grads(False)  # or zeros as large as all that is saved would be written


def _backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
    fed_back, saved, x, *rest = ctx.saved_tensors
    num_states = len(LayerPass._fields) - 3
    work = LayerPass._make([x, rest[num_states:], *rest[:num_states], ctx.cell])
    wants_x = ctx.needs_input_grad[0]
    grad_all_h, grad_place_h, grad_place_c = grads[:3]
    options = BackwardOptions(saved, grad_all_h, grad_place_h, grad_place_c, wants_x)
    grad_h, grad_c, grad_x, *grad_weights = torch.ops.auxrnn.gated_backward(*work, *options)
    if wants_x and fed_back is not None:
        grad_x = grad_x.masked_fill(fed_back[:, :, None], 0.0)  # what was fed back carries no gradient
    # In the order of LayerPass and ForwardOptions; the head gets its gradients elsewhere.
    head = [None] * (0 if fed_back is None else 4)
    return (grad_x if wants_x else None, grad_weights, grad_h, grad_c, *[None] * 6, head, *[None] * 3)


def refuse_second_gradient(ctx: Any, *grads: Any) -> tuple[Any, ...]:
    """Say that gradients of gradients need torch's own operations."""
    raise NotImplementedError("the fused cells have no second gradient; use double precision, or AUXRNN_KERNEL=none")


def _unpack(arguments: Sequence[Any], options: type[Any]) -> tuple[LayerPass, Any]:
    num_shared = len(LayerPass._fields)
    return LayerPass(*arguments[:num_shared]), options(*arguments[num_shared:])


def _describe_arguments(options: type[Any]) -> str:
    """Return an operation's arguments in torch's schema language."""
    words = {Tensor: "Tensor", list[Tensor]: "Tensor[]", Tensor | None: "Tensor?", bool: "bool", int: "int", str: "str"}
    fields = LayerPass.__annotations__ | options.__annotations__
    return ", ".join(f"{words[kind]} {name}" for name, kind in fields.items())


# Not `torch.library.custom_op`: on its first call that imports torch's compiler, which takes seconds.
_OPERATIONS = torch.library.Library("auxrnn", "DEF")
_OPERATIONS.define(f"gated({_describe_arguments(ForwardOptions)}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
_OPERATIONS.define(f"gated_backward({_describe_arguments(BackwardOptions)}) -> Tensor[]")
_OPERATIONS.impl("gated", _gated, "CPU")
_OPERATIONS.impl("gated_backward", _gated_backward, "CPU")
torch.library.register_fake("auxrnn::gated", _allocate_forward, lib=_OPERATIONS)
torch.library.register_fake("auxrnn::gated_backward", _allocate_backward, lib=_OPERATIONS)
torch.library.register_autograd("auxrnn::gated", _backward, setup_context=_save_for_backward, lib=_OPERATIONS)
torch.library.register_autograd("auxrnn::gated_backward", refuse_second_gradient, lib=_OPERATIONS)


def _check_shapes(
    x_BT: Tensor, weights: Sequence[Tensor], start: RNNState, query: StateQuery, begin_B: Tensor | None
) -> None:
    """Refuse what does not fit together: the kernel follows addresses and would read beyond the end."""
    (num_rows, num_steps), (num_layers, _, hidden_size) = x_BT.shape[:2], start.h_LBH.shape
    sizes = [weights[0].shape[1]] + [hidden_size] * (num_layers - 1)
    gates = 4 * hidden_size
    wanted = [shape for size in sizes for shape in ((gates, size), (gates, hidden_size), (gates,))]
    step_shape = (sizes[0],) if x_BT.is_floating_point() else ()
    _require("steps", x_BT, (num_rows, num_steps, *step_shape), x_BT.dtype)
    for weight, shape in zip(weights, wanted, strict=True):
        _require("a weight", weight, shape)
    for part in start:
        _require("a state", part, (num_layers, num_rows, hidden_size))
    if begin_B is not None:
        _require("the list of first steps", begin_B, (num_rows,), begin_B.dtype)
    _require("the query", query.row_P, query.steps_P.shape, query.row_P.dtype)


def _check_feedback(x_BT: Tensor, weights: Sequence[Tensor], feedback: Feedback, begin_B: Tensor | None) -> None:
    if begin_B is not None:
        raise ValueError("feedback is not supported for rows that begin late; leave out begin_B")
    head_size, output_size, hidden_size = len(feedback.head[1]), weights[0].shape[1], weights[1].shape[1]
    wanted = ((head_size, hidden_size), (head_size,), (output_size, head_size), (output_size,))
    for weight, shape in zip(feedback.head, wanted, strict=True):
        _require("feedback", weight, shape)
    _require("feedback", feedback.is_fed_back_BT, x_BT.shape[:2], torch.bool)
    _require("feedback", feedback.uniform_BT, x_BT.shape[:2])


def _require(what: str, tensor: Tensor, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> None:
    if tuple(tensor.shape) != tuple(shape) or tensor.dtype != dtype:
        raise ValueError(f"{what} of shape {list(tensor.shape)} ({tensor.dtype}) does not fit; {list(shape)} would")


class Packed:
    """A network with its weights laid out once and its states kept, for many short calls.

    A registered torch operation would cost more than the arithmetic of a single step.
    """

    def __init__(
        self, cell: str, weights: Sequence[Tensor], head: Sequence[Tensor], state: RNNState, *, is_token: bool
    ) -> None:
        weights, head = [weight.contiguous() for weight in weights], [weight.contiguous() for weight in head]
        assert all(tensor.dtype == torch.float32 for tensor in [*weights, *head, *state]), "the kernel reads floats"
        layers, self._rows, self._hidden_size = state.h_LBH.shape
        sizes = {"hidden_size": self._hidden_size, "layers": layers, "input_size": weights[0].shape[1]}
        shape = ForwardCall(cell=cell.encode(), **sizes)
        shape.layer, shape.head = library.point_at_layers(weights), ctypes.pointer(library.point_at_head(head))
        shape.token = 1 if is_token else None  # never followed: says what the input will be
        self._is_token = is_token
        self._state, self._h, self._c = state, state.h_LBH.data_ptr(), state.c_LBH.data_ptr()
        self._library = library.get_kernel().c
        self._network = self._library.auxrnn_open(ctypes.byref(shape))
        if self._network is None:
            library.check(library.OUT_OF_MEMORY)

    def step(self, x_BS: Steps, num_steps: int, probability_BC: Float[Tensor, "B C"]) -> None:
        """Run so many further steps, update the state in place, and write the softmax of the head.

        The tensors must be contiguous; their shapes are not checked.
        """
        x, token = (None, x_BS.data_ptr()) if self._is_token else (x_BS.data_ptr(), None)
        threads = library.count_threads(self._rows, num_steps, self._hidden_size)
        status = self._library.auxrnn_push(
            self._network, x, token, self._rows, num_steps, threads, self._h, self._c, probability_BC.data_ptr()
        )
        library.check(status)

    def __del__(self) -> None:
        if getattr(self, "_network", None) is not None:
            self._library.auxrnn_close(self._network)
