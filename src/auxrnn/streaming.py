"""A trained network that reads step by step, as the steps come in, in constant memory."""

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor
from torch.linalg import vector_norm

from auxrnn.bptt import CHUNK
from auxrnn.data.formats import (
    Format,
    SymbolFormat,
    TextFormat,
    count_values,
    find_bad,
    has_mask,
    make_encoding,
    to_numbers,
    to_symbols,
)
from auxrnn.data.images import ImageFormat, to_pixels, to_unit
from auxrnn.data.sequences import Array
from auxrnn.errors import RunError, UsageError
from auxrnn.kernels.gated import Packed, can_run
from auxrnn.models.cells.gated import Gated
from auxrnn.models.encoder import TokenEmbedding
from auxrnn.models.network import Network, Trainable
from auxrnn.structs import LARGEST_INPUT, RNNState, Steps


class Stream:
    """Sequences that are classified while they arrive, step by step.

    Memory and the time of a step do not depend on how many steps came before, and the probabilities are those of
    reading all steps at once. The weights are copied when the stream is created. Not safe for use by several threads.
    """

    def __init__(self, network: Trainable, num_sequences: int = 1) -> None:
        if not isinstance(network, Network):
            raise UsageError("this model reads whole sequences, not step by step; choose a recurrent one")
        self._network = copy.deepcopy(network).eval().requires_grad_(False)
        self._device = network.device
        self._num_sequences = num_sequences
        embedding = network.encoder.embedding
        self._is_token = isinstance(embedding, TokenEmbedding)
        self._step_shape: tuple[int, ...] = () if isinstance(embedding, TokenEmbedding) else (embedding.input_size,)
        self._dtype = torch.long if self._is_token else network.classifier.output.weight.dtype
        self._num_classes = network.classifier.output.out_features
        # Each its own tensor: they are updated in place.
        self._state = RNNState(*(zeros.clone() for zeros in self._network.encoder.initial_state(num_sequences)))
        self._total_BH = self._state.h_LBH.new_zeros(num_sequences, self._state.h_LBH.shape[2])
        self._num_steps_B = torch.zeros(num_sequences, dtype=torch.long, device=self._device)
        self._packed = self._pack()

    def step(self, x_BS: Steps | ArrayLike) -> Float[Tensor, "B C"]:
        """Read one or more further steps of each sequence; return the class probabilities after the last of them.

        Takes vectors `[B, S, D]` or tokens `[B, S]`; for a single step, `[B, D]` or `[B]`. Arrays will do. Numbers that
        are not finite, or so large that sums of them might not be, are refused: the state would be lost for good.
        """
        try:
            steps_BS = torch.as_tensor(x_BS, dtype=self._dtype, device=self._device).contiguous()
        except (RuntimeError, TypeError, ValueError) as error:
            raise UsageError("a step is not numbers that this network can read; give an array of them") from error
        num_steps = self._count_steps(steps_BS)
        if not self._is_token and steps_BS.numel() and not float(vector_norm(steps_BS, math.inf)) <= LARGEST_INPUT:
            raise UsageError(f"a step holds NaN, or a number beyond {LARGEST_INPUT:g}; leave it out")
        if self._packed is None:
            return self._step_in_torch(steps_BS.reshape(self._num_sequences, num_steps, *self._step_shape))
        probability_BC = self._state.h_LBH.new_empty(self._num_sequences, self._num_classes)
        self._packed.step(steps_BS, num_steps, probability_BC)
        return probability_BC

    @torch.inference_mode()
    def restart(self, row: int | None = None) -> None:
        """Begin new sequences, in one row or in all."""
        rows = slice(None) if row is None else row
        fresh = self._network.encoder.initial_state(self._num_sequences)
        for tensor_LBH, fresh_LBH in zip(self._state, fresh, strict=True):
            tensor_LBH[:, rows] = fresh_LBH[:, rows]
        self._total_BH[rows] = 0
        self._num_steps_B[rows] = 0

    def _pack(self) -> Packed | None:
        """Return the network laid out for the kernel; None where the kernel does not run such networks."""
        cell, embedding, head = self._network.encoder.cell, self._network.encoder.embedding, self._network.classifier
        if self._network.readout == "mean" or not isinstance(cell, Gated) or head.hidden is None:
            return None
        if not embedding.is_foldable or not can_run(head.output.weight, cell.bias[0]):
            return None
        head_weights = [head.hidden.weight, head.hidden.bias, head.output.weight, head.output.bias]
        weights = cell.kernel_weights(embedding.fold(cell.input_maps()[0]))
        state = cell.kernel_state(self._state)
        return Packed(cell.cell_name, weights, head_weights, state, is_token=self._is_token)

    def _count_steps(self, x_BS: Tensor) -> int:
        shape = tuple(x_BS.shape)
        if shape == (self._num_sequences, *self._step_shape):
            return 1
        if len(shape) > 1 and shape == (self._num_sequences, shape[1], *self._step_shape):
            return shape[1]
        wanted = ", ".join(str(size) for size in (self._num_sequences, "steps", *self._step_shape))
        raise ValueError(f"a step of shape {list(shape)} does not fit this stream; give [{wanted}]")

    @torch.inference_mode()
    def _step_in_torch(self, x_BS: Tensor) -> Float[Tensor, "B C"]:
        for part_BS in torch.split(x_BS, CHUNK, dim=1):
            h_BSH, state = self._network.encoder(part_BS, self._state)
            self._total_BH += h_BSH.sum(dim=1)
            for tensor_LBH, moved_LBH in zip(self._state, state, strict=True):
                tensor_LBH.copy_(moved_LBH)
        self._num_steps_B += x_BS.shape[1]
        mean_BH = self._total_BH / self._num_steps_B.clamp(min=1)[:, None]
        has_mean = self._network.readout == "mean"
        return self._network.classify(self._state, mean_BH=mean_BH if has_mean else None).softmax(dim=1)


class RawStream:
    """A `Stream` of raw values as in the data: it scales them, joins steps into inputs, and marks what is missing.

    Not safe for use by several threads.
    """

    def __init__(
        self, network: Trainable, form: Format, class_names: tuple[str, ...] = (), num_sequences: int = 1
    ) -> None:
        if isinstance(form, TextFormat) and form.is_backward:
            raise UsageError("this network reads texts from their end, which a stream does not have; give whole texts")
        self.class_names = class_names
        """What each probability is of."""
        self._stream, self._form, self._num_sequences = Stream(network, num_sequences), form, num_sequences
        self._encoding, self._num_read = make_encoding(form), 0
        self._pending_BS: Array = np.zeros((num_sequences, 0), np.int64)
        if not isinstance(form, TextFormat | SymbolFormat):
            self._pending_BS = np.zeros((num_sequences, 0, count_values(form)), np.float32)
        self._answer_BC: Float[Tensor, "B C"] | None = None

    def step(self, values: ArrayLike | Sequence[str]) -> Float[Tensor, "B C"] | None:
        """Read one or more further steps of each sequence; return the class probabilities after their last input.

        None where they complete no input; beyond `--max-length` nothing is read, and the answer stays. A step of one
        sequence is its channels `[D]` (or a number, of one channel), several are `[S, D]`; of several sequences a step
        is `[B, D]`, and several are `[B, S, D]`; symbols have no `D`. NaN is missing. Of a text, give a piece; of
        several, one of equal length for each. Pixels are whole numbers from 0 to 255 or floats from 0 to 1, as read.
        """
        value_BS, longest = to_steps(values, self._form, self._num_sequences), self._encoding.max_length
        if longest is not None:
            value_BS = value_BS[:, : longest - self._num_read]
            if not value_BS.shape[1]:
                return self._answer_BC
        self._num_read += value_BS.shape[1]
        self._pending_BS = np.concatenate([self._pending_BS, self._encoding.encode(value_BS)], axis=1)
        return self._read(is_end=self._num_read == longest)

    def finish(self) -> Float[Tensor, "B C"] | None:
        """Begin new sequences; return the answer for those that ended inside an input, None if it was given already."""
        answer_BC = self._read(is_end=True)
        self.restart()
        return answer_BC

    def restart(self, row: int | None = None) -> None:
        """Begin new sequences, in one row or in all."""
        if row is not None and (self._pending_BS.shape[1] or self._encoding.max_length is not None):
            raise UsageError("one row cannot restart inside an input or with a max_length; use a stream for each")
        self._stream.restart(row)
        if row is None:
            self._num_read, self._pending_BS, self._answer_BC = 0, self._pending_BS[:, :0], None

    def _read(self, *, is_end: bool) -> Float[Tensor, "B C"] | None:
        """Read the inputs that are complete; at the end of a sequence the last one is filled up."""
        size = self._encoding.steps_per_input
        if is_end and (num_more := -self._pending_BS.shape[1] % size):
            self._pending_BS = np.pad(self._pending_BS, ((0, 0), (0, num_more), (0, 0)), constant_values=np.nan)
        num_whole = self._pending_BS.shape[1] // size
        if not num_whole:
            return None
        x_BS, self._pending_BS = np.split(self._pending_BS, [num_whole * size], axis=1)
        if x_BS.ndim == 3:
            x_BS, _ = self._encoding.fill(x_BS.reshape(len(x_BS), num_whole, -1))
        self._answer_BC = self._stream.step(x_BS)
        return self._answer_BC


def to_steps(values: ArrayLike | Sequence[str], form: Format, num_rows: int) -> Array:
    """Return raw values as `[B, S]` of texts and symbols and `[B, S, D]` of anything else, see `RawStream.step`."""
    if isinstance(form, TextFormat):
        return _to_characters(values, form, num_rows)
    if isinstance(form, SymbolFormat):
        symbol = to_symbols(values)
        return _arrange(symbol if symbol.ndim == 3 else symbol[..., None], num_rows, 1)[:, :, 0]
    size = count_values(form)
    is_image = isinstance(form, ImageFormat)
    step_BSD = _arrange(to_unit(to_pixels(values)) if is_image else to_numbers(values), num_rows, size)
    if is_image and not ((step_BSD >= 0) & (step_BSD <= 1)).all():
        raise UsageError("a pixel is a whole number from 0 to 255 or a float from 0 to 1; scale them")
    if len(found_I := find_bad(step_BSD.reshape(-1, size), may_miss=has_mask(form))):
        cure = "fill it in; networks trained on gaps read NaN, but never infinity"
        raise UsageError(f"a step holds {step_BSD.reshape(-1, size)[tuple(found_I)]:.3g}; {cure}")
    return step_BSD


def _arrange(values: Array, num_rows: int, size: int) -> Array:
    """Return steps as `[B, S, D]`."""
    step_BSD = values
    if step_BSD.ndim < 2:
        step_BSD = step_BSD.reshape((-1, 1) if size == 1 else (1, -1))
    if step_BSD.ndim == 2:
        step_BSD = step_BSD[None] if num_rows == 1 else step_BSD[:, None]
    if step_BSD.ndim != 3 or step_BSD.shape[::2] != (num_rows, size):
        found = f"steps of shape {list(values.shape)} do not fit this stream"
        raise UsageError(f"{found}; give [{num_rows}, steps, {size}]")
    return step_BSD


def _to_characters(values: Any, form: TextFormat, num_rows: int) -> Array:
    pieces = [values] if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) else values
    rows = [form.to_values(piece) if isinstance(piece, str) else np.asarray(piece) for piece in pieces]
    if len(rows) != num_rows or len({row.shape for row in rows}) > 1 or any(row.dtype.kind != "u" for row in rows):
        raise UsageError(f"a step of this stream is characters; give {num_rows} texts of equal length")
    return np.stack(rows)


def read_steps(lines: Iterable[str], form: Format) -> Iterator[list[float] | None]:
    """Yield the values that lines of text hold, and None where an empty line ends a sequence.

    Where values may be missing, nan and ? stand for them. Symbols stay whole numbers.
    """
    input_size, may_miss = count_values(form), has_mask(form)
    kind: Any = np.int64 if isinstance(form, SymbolFormat) else float
    for number, line in enumerate(lines, start=1):
        words = line.replace(",", " ").split()
        try:
            values = [math.nan if may_miss and word == "?" else kind(word) for word in words]
        except (ValueError, OverflowError):
            values = [math.inf]
        if not all(math.isfinite(value) or (may_miss and math.isnan(value)) for value in values):
            what = "numbers" if kind is float else "a whole number, as in the training data"
            raise RunError(f"line {number} is not {what}: {line.strip()[:40]!r}")
        if any(abs(value) > LARGEST_INPUT for value in values):
            raise RunError(f"line {number} holds a number beyond {LARGEST_INPUT:g}: {line.strip()[:40]!r}")
        if values and len(values) != input_size:
            raise RunError(f"line {number} has {len(values)} values; a step of this network has {input_size}")
        yield values or None
