"""A network in the kernel's own layout, for streams."""

import ctypes
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from auxrnn.kernels.library import (
    OUT_OF_MEMORY,
    ForwardCall,
    as_plain,
    check,
    count_threads,
    get_kernel,
    point_at_head,
    point_at_layers,
)
from auxrnn.structs import RNNState, Steps


class Packed:
    """A network with its weights laid out once and its states kept, for many short calls.

    A registered torch operation would cost more than the arithmetic of a single step.
    """

    def __init__(self, weights: Sequence[Tensor], head: Sequence[Tensor], state: RNNState, *, is_token: bool) -> None:
        weights, head = [as_plain(weight) for weight in weights], [as_plain(weight) for weight in head]
        assert all(tensor.dtype == torch.float32 for tensor in [*weights, *head, *state]), "the kernel reads floats"
        layers, self._rows, self._hidden_size = state.h_LBH.shape
        shape = ForwardCall(hidden_size=self._hidden_size, layers=layers, input_size=weights[0].shape[1])
        shape.layer, shape.head = point_at_layers(weights), ctypes.pointer(point_at_head(head))
        shape.token = 1 if is_token else None  # never followed: says what the input will be
        self._is_token = is_token
        self._state, self._h, self._c = state, state.h_LBH.data_ptr(), state.c_LBH.data_ptr()
        self._library = get_kernel().c
        self._network = self._library.auxrnn_open(ctypes.byref(shape))
        if self._network is None:
            check(OUT_OF_MEMORY)

    def step(self, x_BS: Steps, num_steps: int, probability_BC: Float[Tensor, "B C"]) -> None:
        """Run so many further steps, update the state in place, and write the softmax of the head.

        The tensors must be contiguous; their shapes are not checked.
        """
        address = x_BS.data_ptr()
        x, token = (None, address) if self._is_token else (address, None)
        threads = count_threads(self._rows, num_steps, self._hidden_size)
        to = probability_BC.data_ptr()
        check(self._library.auxrnn_push(self._network, x, token, self._rows, num_steps, threads, self._h, self._c, to))

    def __del__(self) -> None:
        if getattr(self, "_network", None) is not None:
            self._library.auxrnn_close(self._network)
