"""What is timed: reading without a graph, a window with one, single steps, whole training steps."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import torch
from torch import Tensor

from auxrnn.bench.agreement import check_agreement
from auxrnn.bench.child import waiting_child
from auxrnn.bench.pages import VARIABLE
from auxrnn.bench.peers import EmbeddedCell, Problem, Reader, Trainer
from auxrnn.bench.results import OURS, Case, Entry
from auxrnn.bench.roster import BASELINE, READERS, TRAINERS, Contender
from auxrnn.bench.sizes import Sizes
from auxrnn.bench.systems import FULL_BPTT, TITLES, build, configure
from auxrnn.bench.timing import Call, time_side_by_side
from auxrnn.streaming import Stream
from auxrnn.structs import Draws

CELL = "nn.Linear + nn.LSTMCell"

# Each system in a process of its own that keeps what it freed: as new pages in every step, the gigabytes of full
# back-propagation take longer to hand out than its arithmetic takes.
KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), VARIABLE: ""}


class Field(NamedTuple):
    """Who takes part in a case, and who cannot."""

    calls: dict[str, Call]
    missing: list[Entry]


def compare_reading(sizes: Sizes, *, readers: Sequence[Contender] = READERS, circumstances: str = "no graph") -> Case:
    """Time reading without a graph, and beside it the product of two large matrices: what the processor can do."""
    problem = _make_problem(sizes, sizes.reading_length)
    product = _make_product(sizes.product_size)
    with torch.no_grad():
        field = _gather(readers, problem, lambda reader: reader.read)
        check_agreement({name: call() for name, call in field.calls.items()}, of="the outputs after the last step")
        least = time_side_by_side(field.calls | {product.contender: product.call}, rounds=sizes.rounds)
    flop = _recurrent_flop(sizes, sizes.reading_length)
    return Case(
        title=f"Reading {sizes.reading_length:,} pixels, {circumstances}",
        baseline=BASELINE,
        entries=[Entry(name, least[name], flop) for name in field.calls] + field.missing,
        limit=Entry(product.contender, least[product.contender], product.flop),
    )


def compare_windows(sizes: Sizes, *, trainers: Sequence[Contender] = TRAINERS) -> Case:
    """Time forward and backward over a window."""
    problem = _make_problem(sizes, sizes.window_length)
    field = _gather(trainers, problem, _choose_differentiate)
    check_agreement({name: call() for name, call in field.calls.items()}, of="the gradients of the recurrent weights")
    least = time_side_by_side(field.calls, rounds=sizes.rounds)
    # Back through a step there are two products of the size of the one that goes forward.
    flop = 3 * _recurrent_flop(sizes, sizes.window_length)
    return Case(
        title=f"Forward and backward over {sizes.window_length:,} pixels",
        baseline=BASELINE,
        entries=[Entry(name, least[name], flop) for name in field.calls] + field.missing,
    )


def compare_streaming(sizes: Sizes) -> Case:
    """Time one step of one sequence: ours with head and softmax, torch's cell without."""
    network = build(configure(FULL_BPTT, sizes), num_steps=1)
    stream, cell = Stream(network), EmbeddedCell(network.encoder)
    x_1D = torch.rand(1, 1, generator=Draws(0, "bench", 0).rng("pixel"))
    with torch.inference_mode():
        expected_1C = network.classifier(cell.push(x_1D)).softmax(dim=1)
        check_agreement({OURS: stream.push(x_1D), CELL: expected_1C}, of="the probabilities after a step")
        calls = {OURS: lambda: _push(stream.push, x_1D, sizes), CELL: lambda: _push(cell.push, x_1D, sizes)}
        least = time_side_by_side(calls, rounds=sizes.rounds)
    entries = [Entry(name, seconds / sizes.stream_steps) for name, seconds in least.items()]
    return Case("One step of one sequence", CELL, entries)


def compare_steps(sizes: Sizes, *, num_steps: int, lack: str) -> Case:
    """Time whole training steps of all systems; full back-propagation only where nothing is lacking for it."""
    systems = [system for system in TITLES if system != FULL_BPTT or not lack]
    numbers = [num_steps, sizes.batch_size, sizes.hidden_size, torch.get_num_threads()]
    with ExitStack() as running:
        steps = {
            system: running.enter_context(
                waiting_child(
                    "auxrnn.bench.step_point",
                    [system, *numbers],
                    environment=KEPT_MEMORY,
                    doing=f"training steps of {TITLES[system]} were timed",
                )
            )
            for system in systems
        }
        least = time_side_by_side(steps, rounds=sizes.step_rounds)
    entries = [
        Entry(title, least.get(system), note="" if system in least else lack) for system, title in TITLES.items()
    ]
    return Case(f"A training step, {num_steps:,} pixels", TITLES[FULL_BPTT], entries)


class Product(NamedTuple):
    """The product of two large square matrices: no LSTM can be faster than its own products."""

    contender: str
    call: Call
    flop: float


def _make_product(size: int) -> Product:
    rng = Draws(0, "bench", 0).rng("matrices")
    left, right = torch.rand(size, size, generator=rng), torch.rand(size, size, generator=rng)
    result = torch.empty_like(left)
    return Product(f"{size:,}-cubed matrix product", lambda: torch.mm(left, right, out=result), 2.0 * size**3)


def _make_problem(sizes: Sizes, num_steps: int) -> Problem:
    rng = Draws(0, "bench", 0).rng("pixels and gradients")
    return Problem(
        encoder=build(configure(FULL_BPTT, sizes), num_steps=num_steps).encoder,
        x_BTD=torch.rand(sizes.batch_size, num_steps, 1, generator=rng),
        pull_BH=torch.randn(sizes.batch_size, sizes.hidden_size, generator=rng),
    )


def _gather(contenders: Sequence[Contender], problem: Problem, choose: Callable[[Reader], Call]) -> Field:
    """Build the contenders that are installed, and note the others."""
    calls = {contender.name: choose(contender.build(problem)) for contender in contenders if contender.is_installed}
    names = [contender.name for contender in contenders if not contender.is_installed]
    return Field(calls, [Entry(name, None, note="not installed") for name in names])


def _choose_differentiate(reader: Reader) -> Call:
    assert isinstance(reader, Trainer), "only trainers take part in windows"
    return reader.differentiate


def _recurrent_flop(sizes: Sizes, num_steps: int) -> float:
    """Count the products of states with recurrent weights alone: what no LSTM of this size can do without."""
    return 2.0 * sizes.hidden_size * 4 * sizes.hidden_size * sizes.batch_size * num_steps


def _push(push: Callable[[Tensor], Tensor], x_1D: Tensor, sizes: Sizes) -> None:
    for _ in range(sizes.stream_steps):
        push(x_1D)
