"""Tensors as the kernel is told of them: sizes and addresses."""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from auxrnn.kernels import library
from auxrnn.kernels.library import ForwardCall, HeadPointers, Kernel, LayerPointers

# Work below so many multiply-adds is done before a second thread has started.
WORTH_A_THREAD = 1_000_000


class LayerPass(NamedTuple):
    """What forward and backward pass share: input, weights, start, first steps of rows, and the queried states."""

    x: Tensor
    weights: list[Tensor]
    start_h: Tensor
    start_c: Tensor
    begin: Tensor | None
    place_row: Tensor
    place_steps: Tensor


class Call:
    """The description of a pass for the kernel, and the tensors it points at, kept alive."""

    def __init__(self, work: LayerPass) -> None:
        self._kept: list[Any] = []
        x, weights = work.x, [as_plain(weight) for weight in work.weights]
        rows, steps = x.shape[:2]
        layers, _, hidden_size = work.start_h.shape
        is_token = not x.is_floating_point()
        if not is_token and x.shape[2] > 1 and x.stride(2) != 1:
            x = x.contiguous()
        self._kept += [weights, x]
        self.forward = ForwardCall(
            rows=rows,
            steps=steps,
            hidden_size=hidden_size,
            layers=layers,
            input_size=weights[0].shape[1],
            threads=count_threads(rows, steps, hidden_size),
            layer=point_at_layers(weights),
            x_row=x.stride(0),
            x_step=x.stride(1),
            places=len(work.place_row),
        )
        setattr(self.forward, "token" if is_token else "x", x.data_ptr())
        self.set(start_h=work.start_h, start_c=work.start_c, begin=work.begin)
        self.set(place_row=work.place_row, place_steps=work.place_steps)

    def set(self, **tensors: Tensor | None) -> None:
        """Point fields of the description at tensors."""
        for name, tensor in tensors.items():
            setattr(self.forward, name, self.keep(tensor))

    def keep(self, tensor: Tensor | None) -> int | None:
        """Return the address of a tensor's values, contiguous, and keep them alive."""
        if tensor is None:
            return None
        self._kept.append(as_plain(tensor))
        return int(self._kept[-1].data_ptr())

    def set_feedback(
        self, head: Sequence[Tensor], *, fed_back: Tensor | None, uniform: Tensor | None, rule: int
    ) -> None:
        """Let the head's predictions replace the input steps that are marked `fed_back`."""
        assert fed_back is not None
        assert uniform is not None
        plain = [as_plain(weight) for weight in head]
        self._kept.append(plain)
        self.forward.head = ctypes.pointer(point_at_head(plain))
        self.set(fed_back=fed_back, uniform=uniform)
        self.forward.feed = rule


def get_kernel() -> Kernel:
    """Return the kernel where it is known to be there."""
    kernel = library.find_kernel()
    assert kernel is not None, "callers ask `can_run` first"
    return kernel


def count_threads(rows: int, steps: int, hidden_size: int) -> int:
    """Return torch's number of threads, or one where more would not be worth it."""
    return torch.get_num_threads() if 4 * rows * steps * hidden_size**2 >= WORTH_A_THREAD else 1


def as_plain(tensor: Tensor) -> Tensor:
    """Return the same values in the order of their indices."""
    return tensor.contiguous()


def point_at_layers(weights: Sequence[Tensor]) -> Any:
    """Return the addresses of input weights, recurrent weights and bias of each layer."""
    pointers = [weight.data_ptr() for weight in weights]
    layers = [LayerPointers(*pointers[at : at + 3]) for at in range(0, len(pointers), 3)]
    return (LayerPointers * len(layers))(*layers)


def point_at_head(head: Sequence[Tensor]) -> HeadPointers:
    """Return the sizes of a head, and the addresses of its two weights and biases."""
    hidden_weight, _, output_weight, _ = head
    return HeadPointers(hidden_weight.shape[0], output_weight.shape[0], *[weight.data_ptr() for weight in head])
