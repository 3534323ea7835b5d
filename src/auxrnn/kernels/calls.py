"""Tensors as the kernel is told of them: sizes and addresses."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from auxrnn.kernels import library
from auxrnn.kernels.library import Forward, Head, Kernel, Layer

# Work below so many multiply-adds is done before a second thread has started.
WORTH_A_THREAD = 1_000_000


class Call:
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
        plain_weights = [as_plain(weight) for weight in weights]
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
            threads=count_threads(rows, steps, hidden_size),
            layer=point_at_layers(plain_weights),
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
        self._kept.append(as_plain(tensor))
        return int(self._kept[-1].data_ptr())

    def feed(self, head: Sequence[Tensor], own: Tensor, uniform: Tensor, rule: int) -> None:
        """Let the head's predictions replace input steps."""
        plain = [as_plain(weight) for weight in head]
        self._kept.append(plain)
        self.forward.head = ctypes.pointer(point_at_head(plain))
        self.give(own=own, uniform=uniform)
        self.forward.feed = rule


def get_kernel() -> Kernel:
    """Give the kernel where it is known to be there."""
    kernel = library.find_kernel()
    assert kernel is not None, "callers ask `can_run` first"
    return kernel


def count_threads(rows: int, steps: int, hidden_size: int) -> int:
    """Give torch's number of threads, or one where more would not be worth it."""
    return torch.get_num_threads() if 4 * rows * steps * hidden_size**2 >= WORTH_A_THREAD else 1


def as_plain(tensor: Tensor) -> Tensor:
    """Give the same values in the order of their indices."""
    return tensor.contiguous()


def point_at_layers(weights: Sequence[Tensor]) -> Any:
    """Give the addresses of input weights, recurrent weights and bias of each layer."""
    pointers = [weight.data_ptr() for weight in weights]
    layers = [Layer(*pointers[at : at + 3]) for at in range(0, len(pointers), 3)]
    return (Layer * len(layers))(*layers)


def point_at_head(head: Sequence[Tensor]) -> Head:
    """Give the sizes of a head, and the addresses of its two weights and biases."""
    hidden_weight, _, output_weight, _ = head
    return Head(hidden_weight.shape[0], output_weight.shape[0], *[weight.data_ptr() for weight in head])
