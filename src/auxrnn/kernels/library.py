"""Finds the compiled kernel that suits the processor, and describes tensors to its C interface (`gated.h`).

The same source is compiled once for each instruction set. A package built without a compiler has none of them; the
networks then run on torch's own LSTM.
"""

import ctypes
import functools
import importlib.machinery
import importlib.resources
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from auxrnn.errors import RunError, UsageError

LOG = logging.getLogger(__name__)

INSTRUCTION_SETS = ("avx512", "avx2", "portable")
"""The builds, best first. All but the last may be missing or unfit for the processor."""

CHOICE = "AUXRNN_KERNEL"
"""The environment variable that names a build, or says `none` for torch's own LSTM."""

DONE, OUT_OF_MEMORY, OUT_OF_RANGE, NO_SUCH_CELL = range(4)


def _fields(kind: Any, names: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, kind) for name in names.split())


class LayerPointers(ctypes.Structure):
    """The weights of a layer, or where their gradients go: `AuxrnnLayer`, `AuxrnnLayerGradient`."""

    _fields_ = _fields(ctypes.c_void_p, "weight_ih weight_hh bias")


class HeadPointers(ctypes.Structure):
    """Linear, ReLU, linear: `AuxrnnHead`."""

    _fields_ = (
        *_fields(ctypes.c_int64, "head_size output_size"),
        *_fields(ctypes.c_void_p, "hidden_weight hidden_bias output_weight output_bias"),
    )


class ForwardCall(ctypes.Structure):
    """A forward pass over a batch: `AuxrnnForward`."""

    _fields_ = (
        ("cell", ctypes.c_char_p),
        *_fields(ctypes.c_int64, "rows steps hidden_size layers input_size threads"),
        ("layer", ctypes.POINTER(LayerPointers)),
        *_fields(ctypes.c_void_p, "x token"),
        *_fields(ctypes.c_int64, "x_row x_step"),
        *_fields(ctypes.c_void_p, "start_h start_c begin"),
        ("places", ctypes.c_int64),
        *_fields(ctypes.c_void_p, "place_row place_steps place_h place_c all_h saved"),
        ("head", ctypes.POINTER(HeadPointers)),
        *_fields(ctypes.c_void_p, "fed_back uniform"),
        ("feed", ctypes.c_int64),
    )


class BackwardCall(ctypes.Structure):
    """The backward pass over the same batch: `AuxrnnBackward`."""

    _fields_ = (
        ("forward", ctypes.POINTER(ForwardCall)),
        *_fields(ctypes.c_void_p, "grad_place_h grad_place_c grad_all_h"),
        ("grad_layer", ctypes.POINTER(LayerPointers)),
        *_fields(ctypes.c_void_p, "grad_x grad_start_h grad_start_c"),
    )


class ScanCall(ctypes.Structure):
    """A linear recurrence over a batch: `AuxrnnScan`."""

    _fields_ = (
        *_fields(ctypes.c_int64, "rows steps units threads"),
        *_fields(ctypes.c_void_p, "decay start idle"),
    )


class Kernel(NamedTuple):
    """A loaded build and the name of its instruction set."""

    name: str
    c: ctypes.CDLL


@functools.cache
def find_kernel() -> Kernel | None:
    """Return the best build that this processor can run, or the one that AUXRNN_KERNEL names; None without any.

    Logs a warning, once, if networks will run on torch's own LSTM instead.
    """
    choice = os.environ.get(CHOICE, "")
    if choice not in ("", "none", *INSTRUCTION_SETS):
        raise UsageError(f"{CHOICE} is {choice!r}; set it to one of {', '.join(INSTRUCTION_SETS)}, none, or unset it")
    kernel = None if choice == "none" else load_kernel(choice)
    if kernel is None:
        LOG.warning("auxrnn runs on torch's own LSTM, which is slower on CPUs: %s", _why_missing(choice))
    return kernel


def load_kernel(name: str = "") -> Kernel | None:
    """Load one build, or the best; None if it is missing or the processor cannot run it."""
    portable = _load_build("portable")
    if portable is None:
        return None
    for candidate in [name] if name else INSTRUCTION_SETS:
        library = _load_build(candidate) if portable.auxrnn_supports(candidate.encode()) else None
        if library is not None:
            return Kernel(candidate, library)
    return None


def describe() -> str:
    """Return in a few words which LSTM the networks run on."""
    kernel = find_kernel()
    if kernel is None:
        return f"torch's own LSTM ({_why_missing(os.environ.get(CHOICE, ''))})"
    return f"fused kernel ({kernel.name})"


def check(status: int) -> None:
    """Raise the error that a call of the kernel reported, if any."""
    if status == OUT_OF_MEMORY:
        raise MemoryError("out of memory in the LSTM kernel; use a smaller batch or window")
    if status == OUT_OF_RANGE:
        raise IndexError("a token is not in the vocabulary, or a state was asked for outside of the sequences")
    if status == NO_SUCH_CELL:
        raise ValueError("the kernel has no such cell; give it a file in kernels/cells and a line in kernels/gated.cpp")


def _why_missing(choice: str) -> str:
    if choice == "none":
        return f"{CHOICE} is none"
    if choice and _load_build("portable") is not None:
        return f"the {choice} build of the kernel is missing, or this processor cannot run it"
    return "the kernel was not compiled; install a C++ compiler, then auxrnn again"


def _load_build(name: str) -> ctypes.CDLL | None:
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(str(importlib.resources.files(__package__))) / f"_gated_{name}{suffix}"
        if path.exists():
            try:
                return _declare(ctypes.CDLL(str(path)))
            except OSError as error:
                raise RunError(f"the compiled LSTM kernel cannot be loaded ({error}); install auxrnn again") from error
    return None


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the signatures to ctypes; refuse a build with another interface."""
    library.auxrnn_interface.restype = ctypes.c_int64
    calls = (ForwardCall, BackwardCall, HeadPointers, ScanCall)
    expected = sum(1000**place * ctypes.sizeof(call) for place, call in enumerate(calls))
    if library.auxrnn_interface() != expected:
        raise RunError("the compiled LSTM kernel is out of date; install auxrnn again to build it anew")
    library.auxrnn_supports.argtypes = [ctypes.c_char_p]
    library.auxrnn_forward.argtypes = [ctypes.POINTER(ForwardCall)]
    library.auxrnn_backward.argtypes = [ctypes.POINTER(BackwardCall)]
    library.auxrnn_saved_size.argtypes = [ctypes.c_int64] * 4
    library.auxrnn_saved_size.restype = ctypes.c_int64
    library.auxrnn_open.argtypes = [ctypes.POINTER(ForwardCall)]
    library.auxrnn_open.restype = ctypes.c_void_p
    library.auxrnn_close.argtypes = [ctypes.c_void_p]
    library.auxrnn_close.restype = None
    library.auxrnn_push.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 3 + [ctypes.c_void_p] * 3
    library.auxrnn_scan.argtypes = [ctypes.POINTER(ScanCall)] + [ctypes.c_void_p] * 2
    library.auxrnn_scan_backward.argtypes = [ctypes.POINTER(ScanCall)] + [ctypes.c_void_p] * 5
    return library


# Work below so many multiply-adds is done before a second thread has started.
WORTH_A_THREAD = 1_000_000


class LayerPass(NamedTuple):
    """What forward and backward pass share: input, weights, start, first steps, queried states, and the cell's name."""

    x: Tensor
    weights: list[Tensor]
    start_h: Tensor
    start_c: Tensor
    begin: Tensor | None
    place_row: Tensor
    place_steps: Tensor
    cell: str


class Call:
    """The description of a pass for the kernel, and the tensors it points at, kept alive."""

    def __init__(self, work: LayerPass) -> None:
        self._kept: list[Any] = []
        x, weights = work.x, [weight.contiguous() for weight in work.weights]
        rows, steps = x.shape[:2]
        layers, _, hidden_size = work.start_h.shape
        is_token = not x.is_floating_point()
        if not is_token and x.shape[2] > 1 and x.stride(2) != 1:
            x = x.contiguous()
        self._kept += [weights, x]
        self.forward = ForwardCall(
            cell=work.cell.encode(),
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
        self._kept.append(tensor.contiguous())
        return int(self._kept[-1].data_ptr())

    def set_feedback(self, head: Sequence[Tensor], fed_back: Tensor | None, uniform: Tensor | None, rule: int) -> None:
        """Let the head's predictions replace the input steps that are marked `fed_back`."""
        self._kept.append([weight.contiguous() for weight in head])
        self.forward.head = ctypes.pointer(point_at_head(self._kept[-1]))
        self.forward.feed = rule
        self.set(fed_back=fed_back, uniform=uniform)


def get_kernel() -> Kernel:
    """Return the kernel, for callers that know from `can_run` that there is one."""
    kernel = find_kernel()
    assert kernel is not None, "callers ask `can_run` first"
    return kernel


def count_threads(rows: int, steps: int, hidden_size: int) -> int:
    """Return torch's number of threads, or one where more would not be worth it."""
    return torch.get_num_threads() if 4 * rows * steps * hidden_size**2 >= WORTH_A_THREAD else 1


def point_at_layers(weights: Sequence[Tensor]) -> Any:
    """Return the addresses of input weights, recurrent weights and bias of each layer."""
    pointers = [weight.data_ptr() for weight in weights]
    layers = [LayerPointers(*pointers[at : at + 3]) for at in range(0, len(pointers), 3)]
    return (LayerPointers * len(layers))(*layers)


def point_at_head(head: Sequence[Tensor]) -> HeadPointers:
    """Return the sizes of a head, and the addresses of its two weights and biases."""
    hidden_weight, _, output_weight, _ = head
    return HeadPointers(hidden_weight.shape[0], output_weight.shape[0], *[weight.data_ptr() for weight in head])
