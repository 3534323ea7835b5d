"""Finds the compiled kernel that suits the processor, and describes its C interface (`lstm.h`) to Python.

The same source is compiled once for each instruction set. A package built without a compiler has none of them; the
networks then run on torch's own LSTM.
"""

import ctypes
import functools
import importlib.machinery
import importlib.resources
import logging
import os
from pathlib import Path
from typing import NamedTuple

from auxrnn.errors import RunError, UsageError

LOG = logging.getLogger(__name__)

INSTRUCTION_SETS = ("avx512", "avx2", "portable")
"""The builds, best first. All but the last may be missing or unfit for the processor."""

CHOICE = "AUXRNN_KERNEL"
"""The environment variable that names a build, or says `none` for torch's own LSTM."""

DONE, OUT_OF_MEMORY, OUT_OF_RANGE = range(3)

_Floats = ctypes.c_void_p
_Integers = ctypes.c_void_p


class LayerPointers(ctypes.Structure):
    """The weights of a layer, or where their gradients go: `AuxrnnLayer`, `AuxrnnLayerGradient`."""

    _fields_ = (("weight_ih", _Floats), ("weight_hh", _Floats), ("bias", _Floats))


class HeadPointers(ctypes.Structure):
    """Linear, ReLU, linear: `AuxrnnHead`."""

    _fields_ = (
        ("head_size", ctypes.c_int64),
        ("output_size", ctypes.c_int64),
        ("hidden_weight", _Floats),
        ("hidden_bias", _Floats),
        ("output_weight", _Floats),
        ("output_bias", _Floats),
    )


class ForwardCall(ctypes.Structure):
    """A forward pass over a batch: `AuxrnnForward`."""

    _fields_ = (
        ("rows", ctypes.c_int64),
        ("steps", ctypes.c_int64),
        ("hidden_size", ctypes.c_int64),
        ("layers", ctypes.c_int64),
        ("input_size", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        ("layer", ctypes.POINTER(LayerPointers)),
        ("x", _Floats),
        ("token", _Integers),
        ("x_row", ctypes.c_int64),
        ("x_step", ctypes.c_int64),
        ("start_h", _Floats),
        ("start_c", _Floats),
        ("begin", _Integers),
        ("places", ctypes.c_int64),
        ("place_row", _Integers),
        ("place_steps", _Integers),
        ("place_h", _Floats),
        ("place_c", _Floats),
        ("all_h", _Floats),
        ("saved", _Floats),
        ("head", ctypes.POINTER(HeadPointers)),
        ("fed_back", ctypes.c_void_p),
        ("uniform", _Floats),
        ("feed", ctypes.c_int64),
    )


class BackwardCall(ctypes.Structure):
    """The backward pass over the same batch: `AuxrnnBackward`."""

    _fields_ = (
        ("forward", ctypes.POINTER(ForwardCall)),
        ("grad_place_h", _Floats),
        ("grad_place_c", _Floats),
        ("grad_all_h", _Floats),
        ("grad_layer", ctypes.POINTER(LayerPointers)),
        ("grad_x", _Floats),
        ("grad_start_h", _Floats),
        ("grad_start_c", _Floats),
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
        allowed = ", ".join([*INSTRUCTION_SETS, "none"])
        raise UsageError(f"{CHOICE} is {choice!r}; set it to one of {allowed}, or unset it")
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
        if portable.auxrnn_supports(candidate.encode()):
            library = _load_build(candidate)
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


def _why_missing(choice: str) -> str:
    if choice == "none":
        return f"{CHOICE} is none"
    if choice and _load_build("portable") is not None:
        return f"the {choice} build of the kernel is missing, or this processor cannot run it"
    return "the kernel was not compiled; install a C++ compiler, then auxrnn again"


def _load_build(name: str) -> ctypes.CDLL | None:
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(str(importlib.resources.files(__package__))) / f"_lstm_{name}{suffix}"
        if path.exists():
            try:
                return _declare(ctypes.CDLL(str(path)))
            except OSError as error:
                raise RunError(f"the compiled LSTM kernel cannot be loaded ({error}); install auxrnn again") from error
    return None


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the signatures to ctypes; refuse a build with another interface."""
    library.auxrnn_interface.restype = ctypes.c_int64
    expected = ctypes.sizeof(ForwardCall) + 1000 * ctypes.sizeof(BackwardCall) + 1_000_000 * ctypes.sizeof(HeadPointers)
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
    return library
