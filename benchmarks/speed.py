"""Speed beside torch, JAX, Keras and onnxruntime, beside a busy core, and of whole training steps as sequences grow."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial

import torch
from torch import Tensor, nn

from auxrnn import bptt
from auxrnn.bench import (
    Call,
    Comparison,
    build_lstm,
    check_agreement,
    compare_forward,
    compare_single_steps,
    compare_window,
    draw_inputs,
    make_comparison,
    recurrent_gradient,
    time_in_turns,
)
from auxrnn.models.encoder import Encoder
from auxrnn.presets import ModelName
from auxrnn.structs import Draws
from benchmarks.frameworks import OURS_AND_TORCH, Builders, find_builders, make_problem
from benchmarks.processes import busy_core, own_process
from benchmarks.training_steps import FULL_BPTT, TITLES, StepSizes, points, take_step

# A process that keeps what it freed: taking gigabytes anew from the system in every step would take full
# back-propagation longer than its arithmetic.
KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}

GATED: dict[ModelName, str] = {"lstm": "auxrnn LSTM", "gru": "auxrnn GRU", "ur_lstm": "auxrnn UR-LSTM"}
TORCH_GRU = "nn.Linear + nn.GRU"


def measure_all_speeds(sizes: StepSizes) -> dict[str, Comparison]:
    """Take all measurements one after another: two at a time would disturb each other."""
    torch.set_flush_denormal(True)
    builders = find_builders()
    forward = time_forward(sizes, builders) | {"limit": time_matrix_product(sizes)}
    with busy_core():
        busy = time_forward(sizes, OURS_AND_TORCH)
    cases = {
        "reading": with_rates(forward, sizes, sizes.reading_length),
        "reading_busy": busy | {"title": f"{busy['title']}, one core busy"},
        # The backward pass has two products of the size of the forward pass's one.
        "window": with_rates(time_window(sizes, builders), sizes, 3 * sizes.window_length),
    }
    cases |= time_cells(sizes)
    cases["streaming"] = compare_single_steps(sizes)
    for num_steps in sizes.lengths:
        cases[f"step_{num_steps}"] = compare_training_steps(num_steps, sizes)
    return cases


def time_forward(sizes: StepSizes, builders: Builders) -> Comparison:
    """Time a forward pass of some implementations."""
    problem = make_problem(sizes, sizes.reading_length)
    return compare_forward({name: build(problem).forward for name, build in builders.items()}, sizes)


def time_window(sizes: StepSizes, builders: Builders) -> Comparison:
    """Time a forward and a backward pass of the implementations that have one."""
    problem = make_problem(sizes, sizes.window_length)
    built = {name: build(problem).backward for name, build in builders.items()}
    return compare_window({name: call for name, call in built.items() if call is not None}, sizes)


def time_cells(sizes: StepSizes) -> dict[str, Comparison]:
    """Time a forward and a backward pass of the gated cells beside the LSTM, and of the GRU beside torch's."""
    x_BTD, gradient_BH = draw_inputs(sizes, sizes.window_length)
    encoders = {model: build_lstm(sizes, model).encoder for model in GATED}
    modules, x_TBD = nn.Sequential(*torch_gru(encoders["gru"])), x_BTD.transpose(0, 1).contiguous()

    def train(encoder: Encoder) -> Tensor:
        return recurrent_gradient(bptt.final_states(encoder, x_BTD, window="full").h_LBH[-1], encoder, gradient_BH)

    calls: dict[str, Call] = {GATED[model]: partial(train, encoder) for model, encoder in encoders.items()}
    calls[TORCH_GRU] = lambda: recurrent_gradient(modules(x_TBD)[1][0], modules, gradient_BH)
    check_agreement({name: calls[name]() for name in (GATED["gru"], TORCH_GRU)}, of="the gradients of the weights")
    seconds, title = time_in_turns(calls, rounds=sizes.rounds), f"Forward and backward, {sizes.window_length:,} steps"
    return {
        "gru": make_comparison(
            f"{title}: GRU", {name: seconds[name] for name in (GATED["gru"], TORCH_GRU)}, baseline=TORCH_GRU
        ),
        "cells": make_comparison(
            f"{title}: our cells", {name: seconds[name] for name in GATED.values()}, baseline=GATED["lstm"]
        ),
    }


def torch_gru(encoder: Encoder) -> tuple[nn.Linear, nn.GRU]:
    """Return torch's linear map and GRU with the weights of an encoder of one layer."""
    state, size = encoder.state_dict(), encoder.cell.hidden_size
    weight_ED = state["embedding.weight_ED"]
    embedding, gru = nn.Linear(weight_ED.shape[1], len(weight_ED)), nn.GRU(len(weight_ED), size)
    embedding.load_state_dict({"weight": weight_ED, "bias": state["embedding.bias_E"]})
    names = {"weight_ih": "weight_ih", "weight_hh": "weight_hh", "bias_ih": "bias", "bias_hh": "bias_hh"}
    gru.load_state_dict({f"{theirs}_l0": state[f"cell.{ours}.0"] for theirs, ours in names.items()})
    return embedding, gru


def compare_training_steps(num_steps: int, sizes: StepSizes) -> Comparison:
    """Time whole training steps of all systems that fit into memory, each in a process of its own."""
    systems = [system for system, length in points(sizes) if length == num_steps]
    with ExitStack() as stack:
        processes = {system: stack.enter_context(own_process(**KEPT_MEMORY)) for system in systems}
        calls = {TITLES[system]: _step_in(process, system, num_steps, sizes) for system, process in processes.items()}
        seconds = time_in_turns(calls, rounds=sizes.step_rounds)
    return make_comparison(f"A training step, {num_steps:,} steps", seconds, baseline=TITLES[FULL_BPTT])


def time_matrix_product(sizes: StepSizes) -> dict[str, object]:
    """Time a product of large matrices, which no LSTM can outrun."""
    size, rng = sizes.product_size, Draws(0, "bench", 0).rng("matrices")
    left, right = torch.rand(size, size, generator=rng), torch.rand(size, size, generator=rng)
    name = f"{size:,}-cubed matrix product"
    seconds = time_in_turns({name: lambda: torch.mm(left, right)}, rounds=sizes.rounds)[name]
    return {"contender": name, "seconds": seconds, "gflops": 2 * size**3 / seconds / 1e9}


def with_rates(comparison: Comparison, sizes: StepSizes, num_products: int) -> Comparison:
    """Add GFLOP/s, counting the products of states with recurrent weights alone."""
    flop = 2 * sizes.hidden_size * 4 * sizes.hidden_size * sizes.batch_size * num_products
    contenders = [row | {"gflops": flop / row["seconds"] / 1e9} for row in comparison["contenders"]]
    return comparison | {"contenders": contenders}


def format_comparison(comparison: Comparison) -> str:
    """Return a comparison as lines of text; entries of older records may lack a time."""
    lines = [comparison["title"]]
    limit = comparison.get("limit")
    for row in [*comparison["contenders"], *([limit] if limit else [])]:
        time = "-" if row["seconds"] is None else f"{1e3 * row['seconds']:,.3f} ms"
        speed_up = f"{row['speed_up']:.2f}x" if row.get("speed_up") else ""
        rate = f"{row['gflops']:.0f} GFLOP/s" if row.get("gflops") else ""
        lines.append(f"  {row['contender']:28}{time:>16}{speed_up:>9}{rate:>14}".rstrip())
    return "\n".join(lines)


def _step_in(process: ProcessPoolExecutor, system: str, num_steps: int, sizes: StepSizes) -> Callable[[], None]:
    return lambda: process.submit(take_step, system, num_steps, sizes).result()
