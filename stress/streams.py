"""Compare streams with reading at once, for every network that can stream, on every build of the kernel and on torch.

One stream takes a million steps, one by one (a tenth of that where torch computes, which is slower). At several places
its probabilities must be those of reading all steps so far at once, and in the first tenth those of torch in double
precision: a difference of 1e-5 or more is a failure. Then 64 threads begin at the same moment, each with its own
stream, and 64 more read whole sequences with one network that they share: a single bit that differs from one after the
other is a failure.
"""

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import NamedTuple
from unittest import mock

import torch
from torch import Tensor

from auxrnn.build import InputSpec, build_network
from auxrnn.config import unflatten
from auxrnn.kernels import library
from auxrnn.kernels.library import INSTRUCTION_SETS, Kernel, load_kernel
from auxrnn.models.network import Trainable
from auxrnn.streaming import Stream
from auxrnn.structs import SequenceBatch
from stress.progress import Report

COUNT, NUM_STREAMS = 1_000_000, 64
MOST_DRIFT = 1e-5
PLACES = (0.001, 0.01, 0.1, 0.5, 1.0)
"""Where a stream is compared, as parts of its length."""
NUM_CLASSES, NUM_CHANNELS, VOCABULARY = 5, 3, 40
STEPS_IN_THREADS = 200


class Case(NamedTuple):
    """A network, and what it runs on."""

    model: str
    readout: str
    is_token: bool
    kernel: Kernel | None

    @property
    def is_fused(self) -> bool:
        """Whether the kernel runs its streams."""
        return self.kernel is not None and self.readout == "last"

    def describe(self) -> str:
        """Return what it is in words."""
        inputs = "tokens" if self.is_token else "vectors"
        return f"{self.model} ({self.readout}, {inputs}) on {self.kernel.name if self.kernel else 'torch'}"


def main(*, count: int | None = None, seed: int = 0) -> int:
    """Compare streams of so many steps, and return the number of failures."""
    torch.set_num_threads(1)
    num_steps, cases = count or COUNT, list(_list_cases())
    report = Report("streams", total=len(cases), seed=seed)
    worst = 0.0
    for number, case in enumerate(cases):
        with _running_on(case.kernel):
            report.show(number)
            network, x_BT = _make(case, num_steps if case.is_fused else num_steps // 10, seed)
            drift = _measure_drift(network, x_BT)
            worst = max(worst, drift)
            if not drift < MOST_DRIFT:
                report.fail(f"{case.describe()} drifts by {drift:.1e} in {x_BT.shape[1]} steps", folder=report.folder)
            for what, read in (("streams", _read_stream), ("sequences", _read_at_once)):
                if not _is_same_in_threads(network, x_BT, read):
                    report.fail(f"{case.describe()}: {NUM_STREAMS} {what} in threads differ", folder=report.folder)
    what = f"streams of {num_steps:,} steps, and {NUM_STREAMS} at once in threads, of {len(cases)} networks and builds"
    return report.end(what, f"drift {worst:.0e}, {report.num_failures} failures")


def _list_cases() -> Iterator[Case]:
    builds = [kernel for name in INSTRUCTION_SETS if (kernel := load_kernel(name)) is not None]
    for kernel in [*builds, None]:
        for model in ("lstm", "gru", "ur_lstm"):
            yield from (Case(model, "last", is_token, kernel) for is_token in (False, True))
    yield Case("lstm", "mean", False, builds[0] if builds else None)
    for model in ("lru", "legendre", "irnn", "urnn"):
        yield Case(model, "last", False, None)


@contextmanager
def _running_on(kernel: Kernel | None) -> Iterator[None]:
    def find_kernel() -> Kernel | None:
        return kernel

    with mock.patch.object(library, "find_kernel", find_kernel):
        yield


def _make(case: Case, num_steps: int, seed: int) -> tuple[Trainable, Tensor]:
    """Return a network with weights as at the start of a training, and a long sequence for it."""
    sizes = {"hidden_size": 32, "embedding_size": 16, "head_size": 32, "objective": "none"}
    config = unflatten({"data": "", "model": case.model, "readout": case.readout, "seed": seed} | sizes)
    spec = InputSpec(NUM_CHANNELS, VOCABULARY if case.is_token else None, NUM_CLASSES, num_steps, 1.0)
    rng = torch.Generator().manual_seed(seed)
    if case.is_token:
        return build_network(config, spec), torch.randint(VOCABULARY, (1, num_steps), generator=rng)
    return build_network(config, spec), torch.randn(1, num_steps, NUM_CHANNELS, generator=rng)


def _measure_drift(network: Trainable, x_BT: Tensor) -> float:
    """Return the largest difference between a stream and reading at once; the first tenth also in double precision."""
    num_steps = x_BT.shape[1]
    stream, places = Stream(network), {max(1, int(part * num_steps)) for part in PLACES}
    double, worst = copy.deepcopy(network).double(), 0.0
    for step in range(num_steps):
        probability_BC = stream.step(x_BT[:, step])
        if step + 1 in places:
            readers = [network, double] if step < num_steps // 10 else [network]
            for reader in readers:
                difference_BC = (_read_at_once(reader, x_BT[:, : step + 1]) - probability_BC).abs()
                worst = max(worst, float(difference_BC.max()))
    return worst


def _is_same_in_threads(network: Trainable, x_BT: Tensor, read: Callable[[Trainable, Tensor], Tensor]) -> bool:
    """Read different pieces of a sequence in threads that begin together, and one after the other; compare the bits."""
    starts = [number * max(0, x_BT.shape[1] - STEPS_IN_THREADS) // NUM_STREAMS for number in range(NUM_STREAMS)]
    pieces = [x_BT[:, start : start + STEPS_IN_THREADS] for start in starts]
    barrier = Barrier(NUM_STREAMS)

    def begin(piece_BT: Tensor) -> Tensor:
        barrier.wait()
        return read(network, piece_BT)

    with ThreadPoolExecutor(NUM_STREAMS) as pool:
        together = list(pool.map(begin, pieces))
    return all(torch.equal(read(network, piece_BT), found) for piece_BT, found in zip(pieces, together, strict=True))


def _read_stream(network: Trainable, x_BT: Tensor) -> Tensor:
    """Return the probabilities after each step of a stream."""
    stream = Stream(network)
    return torch.stack([stream.step(x_BT[:, step]) for step in range(x_BT.shape[1])])


def _read_at_once(network: Trainable, x_BT: Tensor) -> Tensor:
    x_BT = x_BT.to(next(network.parameters()).dtype) if x_BT.is_floating_point() else x_BT
    with torch.inference_mode():
        return network.eval().logits(SequenceBatch(x_BT, torch.zeros(1, dtype=torch.long))).softmax(dim=1)
