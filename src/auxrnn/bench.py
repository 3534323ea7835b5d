"""Speed of the library's LSTM beside torch's own on this machine: what `auxrnn bench` runs.

All implementations get the same weights and sequences and must agree before they are timed. They take turns, and the
fastest of several rounds counts: a disturbance only ever adds time. `benchmarks/` adds further implementations.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from auxrnn import bptt
from auxrnn.build import InputSpec, build_network
from auxrnn.config import Window, unflatten
from auxrnn.errors import RunError
from auxrnn.models.encoder import Encoder
from auxrnn.models.network import Network
from auxrnn.streaming import Stream
from auxrnn.structs import Draws

Call = Callable[[], Any]
Comparison = dict[str, Any]
"""Plain JSON values: title, baseline, and the contenders with seconds and speed-up."""
OURS, TORCH_LSTM, TORCH_CELL = "auxrnn", "nn.Linear + nn.LSTM", "nn.Linear + nn.LSTMCell"
# Single precision, summed in another order over some hundred steps: observed differences stay below a tenth of this.
TOLERANCE = 1e-4
NUM_CLASSES = 120


@dataclass(frozen=True, kw_only=True)
class SpeedSizes:
    """Sizes of the published figures; tests run the same code with smaller ones."""

    batch_size: int = 128
    hidden_size: int = 128
    reading_length: int = 784
    window_length: int = 300
    stream_steps: int = 500
    """Single steps that are timed together, since a clock is too coarse for one."""
    rounds: int = 15


class Problem(NamedTuple):
    """What every implementation gets: an encoder to take the weights of, sequences, a gradient at the last outputs."""

    encoder: Encoder
    x_BTD: Float[Tensor, "B T D"]
    gradient_BH: Float[Tensor, "B H"]


class Implementation(NamedTuple):
    """An LSTM: `forward` returns the last outputs [B, H], `backward` the gradient of the recurrent weights [4 H, H]."""

    forward: Call
    backward: Call | None


Builders = Mapping[str, Callable[[Problem], Implementation]]


def run_ours(problem: Problem) -> Implementation:
    """Return the library's own forward and backward pass."""
    encoder, x_BTD, gradient_BH = problem

    def forward(window: Window) -> Tensor:
        return bptt.final_states(encoder, x_BTD, window=window).h_LBH[-1]

    return Implementation(lambda: forward(0), lambda: recurrent_gradient(forward("full"), encoder, gradient_BH))


def run_torch(problem: Problem) -> Implementation:
    """Return what a user of torch would write: a linear embedding, then torch's LSTM, time-major."""
    return run_torch_modules(*torch_modules(problem.encoder), problem)


def run_torch_modules(embedding: nn.Module, lstm: nn.LSTM, problem: Problem) -> Implementation:
    """Return the passes of torch's LSTM over embedded steps."""
    modules, x_TBD = nn.ModuleList([embedding, lstm]), problem.x_BTD.transpose(0, 1).contiguous()

    def forward() -> Tensor:
        # Without a graph the LSTM need not keep anything for one.
        lstm.train(torch.is_grad_enabled())
        last_BH: Tensor = lstm(embedding(x_TBD))[1][0][0]
        return last_BH

    return Implementation(forward, lambda: recurrent_gradient(forward(), modules, problem.gradient_BH))


OURS_AND_TORCH: Builders = {OURS: run_ours, TORCH_LSTM: run_torch}


def recurrent_gradient(h_BH: Tensor, module: nn.Module, gradient_BH: Tensor) -> Tensor:
    """Compute the gradients of all parameters, and return that of the recurrent weights."""
    weights = dict(module.named_parameters())
    gradients = torch.autograd.grad(h_BH, [*weights.values()], gradient_BH)
    return next(gradient for name, gradient in zip(weights, gradients, strict=True) if "weight_hh" in name)


def torch_modules(encoder: Encoder) -> tuple[nn.Linear, nn.LSTM]:
    """Return torch's linear map and LSTM with the weights of an encoder of one layer; the second bias is zero."""
    state = encoder.state_dict()
    weight_ED, bias_G = state["embedding.weight_ED"], state["cell.bias.0"]
    embedding, lstm = nn.Linear(weight_ED.shape[1], len(weight_ED)), nn.LSTM(len(weight_ED), len(bias_G) // 4)
    embedding.load_state_dict({"weight": weight_ED, "bias": state["embedding.bias_E"]})
    weights = {"weight_ih_l0": state["cell.weight_ih.0"], "weight_hh_l0": state["cell.weight_hh.0"]}
    lstm.load_state_dict(weights | {"bias_ih_l0": bias_G, "bias_hh_l0": torch.zeros_like(bias_G)})
    return embedding, lstm


def torch_cell(lstm: nn.LSTM) -> nn.LSTMCell:
    """Return torch's LSTM cell with the weights of torch's LSTM."""
    cell = nn.LSTMCell(lstm.input_size, lstm.hidden_size)
    cell.load_state_dict({name.removesuffix("_l0"): weight for name, weight in lstm.state_dict().items()})
    return cell


def measure_speed(sizes: SpeedSizes) -> dict[str, Comparison]:
    """Compare a forward pass, a training window and single steps with torch's, denormal numbers taken as zero.

    Vanishing gradients become denormal and made torch's backward pass up to twenty times slower. Nobody would accept
    that in training, so no comparison may profit from it.
    """
    torch.set_flush_denormal(True)
    try:
        cases = {"reading": compare_forward, "window": compare_window, "streaming": compare_single_steps}
        return {name: compare(sizes) for name, compare in cases.items()}
    finally:
        torch.set_flush_denormal(False)


def compare_forward(sizes: SpeedSizes, builders: Builders = OURS_AND_TORCH) -> Comparison:
    """Time a forward pass without a graph."""
    problem = make_problem(sizes, sizes.reading_length)
    calls = {name: build(problem).forward for name, build in builders.items()}
    title = f"Forward pass over {sizes.reading_length:,} steps, no graph"
    with torch.no_grad():
        check_agreement({name: call() for name, call in calls.items()}, of="the last outputs")
        return make_comparison(title, time_in_turns(calls, rounds=sizes.rounds), baseline=TORCH_LSTM)


def compare_window(sizes: SpeedSizes, builders: Builders = OURS_AND_TORCH) -> Comparison:
    """Time a forward and a backward pass over a window."""
    problem = make_problem(sizes, sizes.window_length)
    built = {name: build(problem).backward for name, build in builders.items()}
    calls = {name: call for name, call in built.items() if call is not None}
    title = f"Forward and backward pass over {sizes.window_length:,} steps"
    check_agreement({name: call() for name, call in calls.items()}, of="the gradients of the recurrent weights")
    return make_comparison(title, time_in_turns(calls, rounds=sizes.rounds), baseline=TORCH_LSTM)


def compare_single_steps(sizes: SpeedSizes) -> Comparison:
    """Time one step of one sequence: ours with classifier and softmax, torch's cell without."""
    network = build_lstm(sizes)
    stream, (embedding, lstm) = Stream(network), torch_modules(network.encoder)
    cell, state = torch_cell(lstm), [torch.zeros(1, sizes.hidden_size)] * 2
    x_1D = torch.rand(1, 1, generator=Draws(0, "bench", 0).rng("pixel"))

    def push() -> Tensor:
        state[:] = cell(embedding(x_1D), tuple(state))
        return state[0]

    with torch.inference_mode():
        expected_1C = network.classifier(push()).softmax(dim=1)
        check_agreement({OURS: stream.step(x_1D), TORCH_CELL: expected_1C}, of="the probabilities after a step")
        steps = {OURS: lambda: stream.step(x_1D), TORCH_CELL: push}
        seconds = time_in_turns(steps, rounds=sizes.rounds, repeats=sizes.stream_steps)
    return make_comparison("One step of one sequence", seconds, baseline=TORCH_CELL)


def build_lstm(sizes: SpeedSizes) -> Network:
    """Return an LSTM for sequences of gray pixels, with the library's own classifier."""
    widths = {"hidden_size": sizes.hidden_size, "embedding_size": sizes.hidden_size}
    config = unflatten({"data": "noise", "objective": "none"} | widths)
    network = build_network(config, InputSpec(1, None, NUM_CLASSES, sizes.reading_length))
    assert isinstance(network, Network)
    return network


def make_problem(sizes: SpeedSizes, num_steps: int) -> Problem:
    """Return random weights and sequences."""
    rng = Draws(0, "bench", 0).rng("pixels and gradients")
    x_BTD = torch.rand(sizes.batch_size, num_steps, 1, generator=rng)
    gradient_BH = torch.randn(sizes.batch_size, sizes.hidden_size, generator=rng)
    return Problem(build_lstm(sizes).encoder, x_BTD, gradient_BH)


def time_in_turns(
    calls: Mapping[str, Call], *, rounds: int, repeats: int = 1, clock: Call = time.perf_counter
) -> dict[str, float]:
    """Return the least seconds of each call over several rounds, in each of which every one runs `repeats` times."""
    least = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            for _ in range(repeats):
                call()
            least[name] = min(least[name], (clock() - start) / repeats)
    return least


def check_agreement(answers: Mapping[str, Any], *, of: str) -> None:
    """Refuse answers that differ from the first by more than rounding, relative to its largest magnitude."""
    reference, *others = answers
    expected = np.asarray(answers[reference])
    for name in others:
        difference = np.abs(np.asarray(answers[name]) - expected).max() / np.abs(expected).max()
        if not difference <= TOLERANCE:
            raise RunError(f"{name} and {reference} differ by {difference:.1e} in {of}; please report this as a bug")


def make_comparison(title: str, seconds: Mapping[str, float], *, baseline: str) -> Comparison:
    """Return the seconds of each contender and its speed-up over the baseline; None where that was not measured."""
    contenders = [
        {"contender": name, "seconds": value, "speed_up": seconds[baseline] / value if baseline in seconds else None}
        for name, value in seconds.items()
    ]
    return {"title": title, "baseline": baseline, "contenders": contenders}
