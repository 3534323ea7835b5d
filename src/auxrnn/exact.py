"""The gradient of a whole sequence for one linear recurrent layer, without keeping the sequence (docs/exact.md).

What enters the recurrence of the first block is linear in the input: v[t] = M x[t], where x[t] ends in a constant 1.
So the state is a product of weights and of what was read, summed over the inputs i:

    c = sum_i M_i trace_i,  trace[t] = lambda trace[t-1] + x[t]

The traces, and their slopes in lambda, are all that a gradient must know of the past. They are carried forward beside
the state (Williams and Zipser, 1989; for diagonal recurrences Zucchet et al., 2023), and do not grow with it. `U`
counts complex units, `K` = 2 U real numbers, `I` the inputs and the constant, `Q` a trace and its slope.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float, Int
from torch import Tensor

from auxrnn import bptt
from auxrnn.bptt import CHUNK
from auxrnn.models.cells.lru import LRU, Block, to_complex
from auxrnn.models.encoder import Encoder
from auxrnn.structs import RNNState, Steps

Past = Complex[Tensor, "Q B U I"]
"""The traces of what was read, and their derivatives in lambda."""


def final_states(encoder: Encoder, x_BT: Steps, *, first_B: Int[Tensor, " B"] | None = None) -> RNNState:
    """Return the states after whole sequences, whose gradient in the weights is that of full back-propagation.

    Memory does not grow with T: the graph holds the last step alone. The input gets no gradient.
    """
    first_B, last = _find_first(x_BT, first_B), x_BT.shape[1] - 1
    for past in follow(encoder, x_BT, first_B, [*range(0, last, CHUNK), last]):
        before = past
    state: RNNState = encoder(x_BT[:, last:], state_after(encoder, before), begin_B=(first_B - last).clamp(min=0)).state
    return state


def final_states_and_mean(
    encoder: Encoder, x_BT: Steps, *, first_B: Int[Tensor, " B"] | None = None
) -> tuple[RNNState, Float[Tensor, "B H"]]:
    """Return the states as `final_states` does, and the mean of the outputs over all steps of each row.

    How much an output counts is known when everything has been read. So the backward pass reads once more, forward, and
    holds the graph of one chunk at a time. Of the states, the outputs alone have a gradient.
    """
    c_BK, h_BH, mean_BH = _ReadTwice.apply(encoder, x_BT, _find_first(x_BT, first_B), *encoder.parameters())  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return RNNState(h_BH[None], c_BK[None]), mean_BH


def follow(encoder: Encoder, x_BT: Steps, first_B: Int[Tensor, " B"], stops: Sequence[int]) -> Iterator[Past]:
    """Yield the past at each of the columns `stops`, which begin with 0 and are at most CHUNK apart."""
    with torch.no_grad():
        weight_UI = _find_weights(encoder)
        lambda_U1 = to_complex(_find_block(encoder).decay().double())[:, None]
        # Each power from the number of steps itself: repeated products would round again and again.
        exponent_S = torch.arange(CHUNK, -1, -1, dtype=torch.float64, device=x_BT.device)
        powers = lambda_U1**exponent_S, exponent_S * lambda_U1 ** (exponent_S - 1).clamp(min=0)
        power_QUS = torch.stack(powers).to(weight_UI.dtype)
        past = weight_UI.new_zeros(2, len(x_BT), *weight_UI.shape)
    yield past
    for start, stop in itertools.pairwise(stops):
        with torch.no_grad():
            x_BSI = _list_inputs(encoder, x_BT[:, start:stop], first_B - start)
            past = _advance(past, x_BSI, power_QUS[:, :, start - stop - 1 :])
        yield past


def state_after(encoder: Encoder, past: Past) -> RNNState:
    """Return the state after what was read, with its gradient in all weights."""
    lambda_U = to_complex(_find_block(encoder).decay())
    trace_BUI, slope_BUI = past
    # The value is that of the trace; the gradient in lambda is that of the slope.
    trace_BUI = trace_BUI + slope_BUI * (lambda_U - lambda_U.detach())[:, None]
    c_BU = (_find_weights(encoder) * trace_BUI).sum(dim=2)
    return encoder.initial_state(len(c_BU))._replace(c_LBH=torch.cat([c_BU.real, c_BU.imag], dim=1)[None])


def _advance(past: Past, x_BSI: Float[Tensor, "B S I"], power_QUS: Complex[Tensor, "Q U S1"]) -> Past:
    """Return the past after S more steps, given lambda ** S, ..., lambda ** 0 and the derivatives of these."""
    whole_QU1, power_QUS = power_QUS[:, :, :1], power_QUS[:, :, 1:]
    sums_QUPBI = torch.einsum("qusp,bsi->qupbi", torch.view_as_real(power_QUS), x_BSI)
    read = torch.view_as_complex(sums_QUPBI.permute(0, 3, 1, 4, 2).contiguous())
    trace_BUI, slope_BUI = past
    fading_BUI = whole_QU1[0] * slope_BUI + whole_QU1[1] * trace_BUI
    return torch.stack([whole_QU1[0] * trace_BUI, fading_BUI]) + read


def _list_inputs(encoder: Encoder, x_BS: Steps, first_B: Int[Tensor, " B"]) -> Float[Tensor, "B S I"]:
    """Return what the folded weights read: vectors or one-hot tokens, and a constant; zeros before a row begins."""
    weight_HI, bias_H = _fold(encoder)
    x_BSI = x_BS if x_BS.is_floating_point() else F.one_hot(x_BS, weight_HI.shape[1]).to(bias_H)
    is_read_BS = torch.arange(x_BS.shape[1], device=x_BS.device) >= first_B[:, None]
    return F.pad(x_BSI, (0, 1), value=1.0).masked_fill(~is_read_BS[:, :, None], 0)


def _find_weights(encoder: Encoder) -> Complex[Tensor, "U I"]:
    """Return M: how the inputs and the constant enter the recurrence."""
    weight_HI, bias_H = _fold(encoder)
    weight_KI = _find_block(encoder).input_weight() @ torch.cat([weight_HI, bias_H[:, None]], dim=1)
    return to_complex(weight_KI.T).T


def _fold(encoder: Encoder) -> tuple[Tensor, Tensor]:
    return encoder.embedding.fold(encoder.cell.input_maps()[0])


def _find_block(encoder: Encoder) -> Block:
    cell = encoder.cell
    if not isinstance(cell, LRU) or cell.num_layers > 1:
        raise ValueError("an exact window is for an lru of one layer; give another window, or such a network")
    return cell.get_submodule("blocks.0")  # type: ignore[return-value]  # it is a block


def _find_first(x_BT: Steps, first_B: Int[Tensor, " B"] | None) -> Int[Tensor, " B"]:
    return torch.zeros(len(x_BT), dtype=torch.long, device=x_BT.device) if first_B is None else first_B


class _ReadTwice(torch.autograd.Function):
    """State and output after the last step, and the mean of all outputs."""

    @staticmethod
    def forward(ctx: Any, encoder: Encoder, x_BT: Tensor, first_B: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
        """Read without a graph, and note what dropout will draw."""
        ctx.encoder, ctx.is_training, ctx.rng_state = encoder, encoder.training, torch.get_rng_state()
        ctx.save_for_backward(x_BT, first_B)
        state, mean_BH = bptt.final_states_and_mean(encoder, x_BT, window=0, first_B=first_B)
        ctx.mark_non_differentiable(state.c_LBH[0])
        return state.c_LBH[0], state.h_LBH[0], mean_BH

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Read again, and add up the gradients of the chunks."""
        encoder, (x_BT, first_B) = ctx.encoder, ctx.saved_tensors
        weights = list(encoder.parameters())
        total = [torch.zeros_like(weight) for weight in weights]
        is_training_now = encoder.training
        encoder.train(ctx.is_training)
        with torch.random.fork_rng(), torch.enable_grad():
            torch.set_rng_state(ctx.rng_state)
            for measure in _measure_chunks(encoder, x_BT, first_B, *grads[1:]):
                found = torch.autograd.grad(measure, weights, materialize_grads=True)
                total = [one + more for one, more in zip(total, found, strict=True)]
        encoder.train(is_training_now)
        return None, None, None, *total


def _measure_chunks(
    encoder: Encoder,
    x_BT: Steps,
    first_B: Int[Tensor, " B"],
    grad_h_BH: Float[Tensor, "B H"],
    grad_mean_BH: Float[Tensor, "B H"],
) -> Iterator[Float[Tensor, ""]]:
    """Yield, chunk by chunk, a number whose gradient is the part of the loss's that comes through outputs there."""
    num_columns = x_BT.shape[1]
    stops = [*range(0, num_columns, CHUNK), num_columns]
    grad_each_B1H = (grad_mean_BH / (num_columns - first_B)[:, None])[:, None]
    for past, (start, stop) in zip(follow(encoder, x_BT, first_B, stops), itertools.pairwise(stops), strict=False):
        begin_B = (first_B - start).clamp(0, stop - start)
        h_BSH, state = encoder(x_BT[:, start:stop], state_after(encoder, past), begin_B=begin_B)
        is_read_BS = torch.arange(stop - start, device=x_BT.device) >= begin_B[:, None]
        measure = torch.where(is_read_BS[:, :, None], h_BSH * grad_each_B1H, 0.0).sum()
        yield measure + (state.h_LBH[0] * grad_h_BH).sum() if stop == num_columns else measure
