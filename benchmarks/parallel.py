"""An update of one process with one thread, of two such processes, and of one process with two threads, in turns."""

import functools
import itertools
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from auxrnn.bench import NUM_CLASSES, SpeedSizes
from auxrnn.build import InputSpec, build_network, build_session
from auxrnn.config import change
from auxrnn.data.sequences import Splits, from_array
from auxrnn.structs import Draws
from auxrnn.training import processes
from auxrnn.training.loop import compute_gradients
from auxrnn.training.optimizers import make_optimizer
from auxrnn.training.record import ListRecorder
from benchmarks.processes import own_process
from benchmarks.training_steps import TITLES, configure

Point = dict[str, Any]
"""System, title, processes, threads; the least seconds of an update, and the processor seconds of all processes."""


@dataclass(frozen=True, kw_only=True)
class ParallelSizes(SpeedSizes):
    """Sizes of a batch, and what is trained on it."""

    batch_size: int = 64
    num_steps: int = 12_544
    systems: tuple[str, ...] = ("r_lstm_1x600", "r_lstm_20x30", "p_lstm")
    rounds: int = 5


class Arrangement(NamedTuple):
    """How many processes of how many threads share the work."""

    num_processes: int
    num_threads: int


ARRANGEMENTS = (Arrangement(1, 1), Arrangement(2, 1), Arrangement(1, 2))


def measure_parallel(sizes: ParallelSizes) -> list[Point]:
    """Measure all systems in all arrangements; these take turns, and the fastest of several rounds counts."""
    with ExitStack() as stack:
        crews = {each: _start(stack, each) for each in ARRANGEMENTS}
        found = []
        for system in sizes.systems:
            rounds = [
                {each: _time(crew, system, sizes) for each, crew in crews.items()} for _ in range(sizes.rounds + 1)
            ]
            for each in ARRANGEMENTS:
                # The first round builds and warms up.
                seconds, cpu_seconds = min(times[each] for times in rounds[1:])
                found.append({"system": system, "seconds": seconds, "cpu_seconds": cpu_seconds} | each._asdict())
    return found


def _start(stack: ExitStack, arrangement: Arrangement) -> list[ProcessPoolExecutor]:
    """Start the processes of an arrangement, which meet as those that torchrun starts."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port = asked.getsockname()[1]
    common = {"WORLD_SIZE": arrangement.num_processes, "LOCAL_WORLD_SIZE": arrangement.num_processes}
    common |= {"MASTER_PORT": port, "OMP_NUM_THREADS": arrangement.num_threads}
    crew = []
    for rank in range(arrangement.num_processes):
        own = {
            "MASTER_ADDR": "127.0.0.1",
            "TORCHELASTIC_RUN_ID": "benchmark",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
        }
        crew.append(stack.enter_context(own_process(**{name: str(value) for name, value in common.items()}, **own)))
        # It starts, with this environment, when it gets a task.
        crew[-1].submit(torch.set_num_threads, arrangement.num_threads)
    return crew


def _time(crew: Sequence[ProcessPoolExecutor], system: str, sizes: ParallelSizes) -> tuple[float, float]:
    """Return the seconds of an update of all processes together, and the sum of their processor seconds."""
    times = [future.result() for future in [process.submit(take_update, system, sizes) for process in crew]]
    return max(seconds for seconds, _ in times), sum(cpu_seconds for _, cpu_seconds in times)


def take_update(system: str, sizes: ParallelSizes) -> tuple[float, float]:
    """Train once, and return the seconds and the processor seconds that it took this process."""
    update = _build(system, sizes)
    _join().agree(0.0)  # all begin together
    start, cpu_start = time.perf_counter(), time.process_time()
    update()
    return time.perf_counter() - start, time.process_time() - cpu_start


@functools.cache
def _join() -> processes.Processes:
    return processes.join("cpu")


@functools.cache
def _build(system: str, sizes: ParallelSizes) -> Callable[[], object]:
    """Return one update, as in training, on the batches of a split of noise; built once in each process."""
    config = change(configure(system, sizes), threads=torch.get_num_threads(), train_steps=1)
    network = build_network(config, InputSpec(1, None, NUM_CLASSES, sizes.num_steps))
    rng = np.random.default_rng(0)
    x_NTD = rng.integers(256, size=(2 * sizes.batch_size, sizes.num_steps, 1), dtype=np.uint8)
    split = from_array(x_NTD, rng.integers(NUM_CLASSES, size=len(x_NTD)))
    recorder, crew = ListRecorder(), _join()
    session = build_session(config, network, Splits(split, None, None), recorder=recorder, folder=None, processes=crew)
    optimizer, phase = make_optimizer("rmsprop", network, lr=config.schedule.lr), session.phases[-1]
    numbers = itertools.count()

    def update() -> None:
        step = next(numbers)
        draws = Draws(config.seed, phase.name, step)
        batch = session.batches.at(step, phase=phase.name)
        compute_gradients(session, phase, batch, draws=draws, true_probability=0.5, processes=crew)
        optimizer.step()

    return update


def format_parallel(points: Sequence[Point]) -> str:
    """Return the points as a table, with the speed of each arrangement as a multiple of the first one's."""
    lines = ["An update", f"{'':<16}{'processes':>10}{'threads':>9}{'seconds':>10}{'processor':>11}{'speedup':>9}"]
    for point in points:
        first = next(each for each in points if each["system"] == point["system"])
        figures = f"{point['seconds']:>10.3f}{point['cpu_seconds']:>11.3f}{first['seconds'] / point['seconds']:>9.2f}"
        counts = f"{point['num_processes']:>10}{point['num_threads']:>9}"
        lines.append(f"{TITLES[point['system']]:<16}{counts}{figures}")
    return "\n".join(lines)
