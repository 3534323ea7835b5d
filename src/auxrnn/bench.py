"""Speed of the library's LSTM next to torch's own on this machine: what `auxrnn bench` runs.

All contenders get the same weights and sequences and must agree before they are timed. They take turns, and the fastest
of several rounds counts: a disturbance only ever adds time. `benchmarks/` compares more of them in the same way.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from timeit import timeit
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from auxrnn import bptt
from auxrnn.build import InputSpec, build_network
from auxrnn.config import unflatten
from auxrnn.errors import RunError
from auxrnn.models.encoder import Encoder
from auxrnn.models.network import Network
from auxrnn.presets import ModelName
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


def measure_speed(sizes: SpeedSizes) -> dict[str, Comparison]:
    """Compare a forward pass, a training window and single steps with torch's, denormal numbers taken as zero.

    Vanishing gradients become denormal and made torch's backward pass up to twenty times slower. Nobody would accept
    that in training, so no comparison may profit from it.
    """
    encoder = build_lstm(sizes).encoder
    lstm = nn.Sequential(*torch_modules(encoder))
    x_BTD, gradient_BH = draw_inputs(sizes, sizes.reading_length)
    part_BTD, x_TBD = x_BTD[:, : sizes.window_length].contiguous(), x_BTD.transpose(0, 1).contiguous()

    def read_ours() -> Tensor:
        return bptt.final_states(encoder, x_BTD, window=0).h_LBH[-1]

    def read_torch() -> Any:
        return lstm.eval()(x_TBD)[1][0][0]

    def train_ours() -> Tensor:
        return recurrent_gradient(bptt.final_states(encoder, part_BTD, window="full").h_LBH[-1], encoder, gradient_BH)

    def train_torch() -> Tensor:
        return recurrent_gradient(lstm.train()(x_TBD[: sizes.window_length])[1][0][0], lstm, gradient_BH)

    torch.set_flush_denormal(True)
    try:
        return {
            "reading": compare_forward({OURS: read_ours, TORCH_LSTM: read_torch}, sizes),
            "window": compare_window({OURS: train_ours, TORCH_LSTM: train_torch}, sizes),
            "streaming": compare_single_steps(sizes),
        }
    finally:
        torch.set_flush_denormal(False)


def compare_forward(calls: Mapping[str, Call], sizes: SpeedSizes) -> Comparison:
    """Time forward passes without a graph; each returns the last outputs [B, H]."""
    title = f"Forward pass over {sizes.reading_length:,} steps, no graph"
    with torch.no_grad():
        check_agreement({name: call() for name, call in calls.items()}, of="the last outputs")
        return make_comparison(title, time_in_turns(calls, rounds=sizes.rounds), baseline=TORCH_LSTM)


def compare_window(calls: Mapping[str, Call], sizes: SpeedSizes) -> Comparison:
    """Time forward and backward passes; each returns the gradient of the recurrent weights [4 H, H]."""
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


def build_lstm(sizes: SpeedSizes, model: ModelName = "lstm") -> Network:
    """Return an LSTM, or another gated cell, for sequences of gray pixels, with the library's own classifier."""
    widths = {"hidden_size": sizes.hidden_size, "embedding_size": sizes.hidden_size}
    config = unflatten({"data": "noise", "model": model, "objective": "none"} | widths)
    network = build_network(config, InputSpec(1, None, NUM_CLASSES, sizes.reading_length))
    assert isinstance(network, Network)
    return network


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


def draw_inputs(sizes: SpeedSizes, num_steps: int) -> tuple[Tensor, Tensor]:
    """Return random sequences [B, T, D], and a gradient at their last outputs [B, H]."""
    rng = Draws(0, "bench", 0).rng("pixels and gradients")
    x_BTD = torch.rand(sizes.batch_size, num_steps, 1, generator=rng)
    return x_BTD, torch.randn(sizes.batch_size, sizes.hidden_size, generator=rng)


def time_in_turns(
    calls: Mapping[str, Call], *, rounds: int, repeats: int = 1, clock: Call = time.perf_counter
) -> dict[str, float]:
    """Return the least seconds of each call over several rounds, in each of which every one runs `repeats` times."""
    least = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            least[name] = min(least[name], timeit(call, timer=clock, number=repeats) / repeats)
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
