"""What a training costs here: its time, measured on a few rows, and its memory, estimated before it is needed.

What a step holds at its peak is mostly what autograd keeps for the backward pass. That is counted on one or two short
rows; it grows in proportion to the rows, and with the steps as far as gradients reach.
"""

import bisect
import contextlib
import functools
import math
import timeit
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import psutil
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from auxrnn.bptt import CHUNK
from auxrnn.config import SupervisedWindow, Window, decided
from auxrnn.data.sequences import by_length, in_order, to_batch
from auxrnn.models.cells.gated import Gated
from auxrnn.models.network import Network, Trainable
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.evaluate import evaluate
from auxrnn.training.loop import EVALUATIONS_PER_PHASE, Session, compute_gradients
from auxrnn.training.optimizers import KINDS, Phase, make_optimizer

SMALL_LR = 1e-12
LONGEST_REPEATED, LONGEST_ROW, LONGEST_TRIALS = 20.0, 10.0, 3.0
"""Seconds: a faster step is timed twice; after longer trials of one row, or of several, no larger batch is tried."""
GROWTH_OF_TRIALS = 8
WARM_UP_STEPS = 64
"""Of one row, before anything is timed: the first use of anything takes time of its own."""
LONGEST_PROBE, LONGEST_RECURRENT_PROBE = 1024, 256
"""Probe lengths long enough to fit the growth curve: several blocks of local attention; for recurrences, a line."""
LONGEST_REACH = 4096
"""A longer reach than this is not probed, but taken as unlimited."""


class Estimate(NamedTuple):
    """How long a training takes here: an update of each phase, and the whole with its evaluations."""

    seconds_per_update: dict[str, float]
    seconds: float


def estimate_time(session: Session) -> Estimate:
    """Time each phase on a few rows or batches, and extrapolate to the whole training; nothing is changed.

    Scheduled sampling is timed halfway through the run.
    """
    halfway = sum(phase.num_steps for phase in session.phases) // 2
    per_update = {phase.name: time_step(session, phase, total_step=halfway) for phase in session.phases}
    seconds = sum(phase.num_steps * per_update[phase.name] for phase in session.phases)
    return Estimate(per_update, seconds + _evaluation_seconds(session))


def time_step(session: Session, phase: Phase, *, total_step: int, most_rows: int | None = None) -> float:
    """Return the least seconds of an update with a batch of average size, tried on `most_rows` of it at most."""
    typical, scale = session.batches_of(phase).find_typical(phase.name)
    batch, probability = typical.to(session.network.device), session.true_probability(total_step)
    with _on_trial(session.network):
        seconds = _time_rows(lambda rows: _update(session, phase, rows, true_probability=probability), batch, most_rows)
    exchange = session.processes.time_sum(sum(weight.numel() for weight in session.network.parameters()))
    return session.processes.agree(seconds * scale) + exchange


def time_evaluation(session: Session) -> float:
    """Return the least seconds that it takes to classify one sequence."""
    batch = next(in_order(session.splits.train, session.batches.batch_size))
    seconds = _time_rows(lambda rows: evaluate(session.network, [rows]), batch) / len(batch.label_B)
    return session.processes.agree(seconds) / session.processes.turn.num_processes


def _evaluation_seconds(session: Session) -> float:
    size = {name: 0 if split is None else split.num_examples for name, split in session.splits._asdict().items()}
    count = sum(count_evaluations(phase, evaluate_every=session.config.evaluate_every) for phase in session.phases)
    while_training = sum(size.values()) if session.config.evaluate_all else size["validation"]
    at_end = 0 if session.config.evaluate_all else size["test"]
    at_end += 0 if session.held_out is None else session.held_out.num_examples
    return time_evaluation(session) * (count * while_training + at_end)


def count_evaluations(phase: Phase, *, evaluate_every: int | None) -> int:
    """Count the evaluations of a phase: its last update always, and before the first one with labels."""
    every = evaluate_every or max(1, phase.num_steps // EVALUATIONS_PER_PHASE)
    return math.ceil(phase.num_steps / every) + phase.is_supervised


def _time_rows(use: Callable[[SequenceBatch], object], batch: SequenceBatch, most_rows: int | None = None) -> float:
    """Return the seconds of a batch, tried on one row, then on more until that takes long.

    A batch that would take minutes is not waited for: its other rows take as long as those that the largest trial had
    beyond the one before. Most of a step of one row is no work of the row: a recurrence takes as long for eight.
    """
    use(batch.head(1).tail(WARM_UP_STEPS))
    num_rows, tried, seconds, spent = len(batch.label_B), 0, 0.0, 0.0
    limit = min(most_rows or num_rows, num_rows)
    while tried < limit and spent < (LONGEST_ROW if tried == 1 else LONGEST_TRIALS):
        before = (tried, seconds)
        tried = min(max(1, GROWTH_OF_TRIALS * tried), limit)
        once = functools.partial(use, batch.head(tried))
        first = timeit.timeit(once, number=1)
        # The first use of so much memory takes time of its own.
        seconds = min(first, timeit.timeit(once, number=1)) if first < LONGEST_REPEATED else first
        spent += first + seconds
        # No row takes longer than all together, nor less than nothing, however the machine is busy.
        a_row = min(max(seconds - before[1], 0.0) / (tried - before[0]), seconds / tried)
    return seconds + a_row * (num_rows - tried)


def _update(session: Session, phase: Phase, batch: SequenceBatch, *, true_probability: float) -> None:
    """Do an update, with a fresh optimizer and a rate so small that hardly anything moves."""
    found = compute_gradients(session, phase, batch, draws=Draws(0, "trial", 0), true_probability=true_probability)
    found.norm.item()  # a GPU has finished when this arrives
    make_optimizer(session.config.schedule.optimizer, session.network, lr=SMALL_LR).step()


@contextlib.contextmanager
def _on_trial(network: Trainable) -> Iterator[None]:
    """Restore the weights, and the statistics of batch normalization, after a trial."""
    before = {name: value.clone() for name, value in network.state_dict().items()}
    try:
        yield
    finally:
        network.zero_grad(set_to_none=True)
        network.load_state_dict(before)


class Growth(NamedTuple):
    """How the bytes of a step grow with rows and steps; the process itself and its weights are not counted."""

    fixed: float
    """Gradients, what the optimizer keeps, what all rows share."""
    per_row: float
    per_step: float
    per_pair: float
    """For each pair of steps: 0 unless attention keeps its matrix."""
    per_input: float
    """For each step of the batch itself, which is read whole however short gradients are."""
    reach: int | None
    """Steps after which only the batch itself grows; None where all does."""
    phase: str = ""
    """The phase that needs the most memory."""

    def bytes_for(self, num_rows: int, num_steps: int) -> int:
        """Return the bytes of a batch."""
        steps = num_steps if self.reach is None else min(num_steps, self.reach)
        a_row = self.per_row + self.per_step * steps + self.per_pair * steps**2 + self.per_input * num_steps
        return int(self.fixed + num_rows * a_row)

    def most_rows(self, num_bytes: int, num_steps: int) -> int:
        """Return the size of the largest batch that fits, perhaps 0."""
        return max(0, int((num_bytes - self.fixed) / max(self.bytes_for(1, num_steps) - self.fixed, 1)))

    def longest(self, num_bytes: int, num_rows: int) -> int:
        """Return the largest number of steps that fits, perhaps 0."""
        too_long = bisect.bisect_right(range(2**50), num_bytes, key=lambda steps: self.bytes_for(num_rows, steps))
        return max(0, too_long - 1)


def estimate_growth(session: Session, *, is_fused: bool = True) -> Growth:
    """Estimate the memory of the phase that needs the most, from a few short rows.

    Not fused, attention keeps its whole matrix of steps by steps, as the paper had it.
    """
    with _on_trial(session.network), contextlib.nullcontext() if is_fused else sdpa_kernel(SDPBackend.MATH):
        growths = [_estimate_phase(session, phase) for phase in session.phases]
    rows, steps = session.batches.batch_size, find_longest(session)
    return max(growths, key=lambda growth: growth.bytes_for(rows, steps))


def find_longest(session: Session) -> int:
    """Return the length of the longest sequence that any phase trains on."""
    return max(int(session.batches_of(phase).split.length_N.max()) for phase in session.phases)


def _estimate_phase(session: Session, phase: Phase) -> Growth:
    network, x_BT = session.network, _take_longest(session, phase, 1).x_BT
    reach = _find_reach(session, phase)
    lengths = _choose_lengths(x_BT.shape[1], reach, is_recurrent=isinstance(network, Network))
    kept = [_count_kept(session, phase, x_BT[:, -length:]) for length in lengths]
    shared = 2 * kept[-1] - _count_kept(session, phase, x_BT[:, -lengths[-1] :].repeat_interleave(2, dim=0))
    # The peak is above what autograd keeps, by gradients in flight and gaps between pieces of memory: measured at 1.0
    # to 1.4 times for the gated cells and all models that take whole sequences, and at 1.6 to 1.75 for the recurrences
    # that torch runs step by step, whose gradients wait in pieces until all steps are done.
    is_stepwise = isinstance(network, Network) and not isinstance(network.encoder.cell, Gated)
    counts = [(1.75 if is_stepwise else 1.3) * (count - shared) for count in kept]
    # Only attention grows with pairs of steps; a recurrence seems to where windows begin between the lengths.
    per_row, per_step, per_pair = _fit(lengths, counts, degree=1 if isinstance(network, Network) else 2)
    num_kept = sum(name != "step" for name in KINDS[session.config.schedule.optimizer].kept)
    weights = sum(parameter.numel() * parameter.element_size() for parameter in network.parameters())
    per_input = 2.0 * x_BT[0, 0].numel() * x_BT.element_size()
    return Growth(shared + (1 + num_kept) * weights, per_row, per_step, per_pair, per_input, reach, phase.name)


def _take_longest(session: Session, phase: Phase, num_rows: int) -> SequenceBatch:
    split = session.batches_of(phase).split
    return to_batch(split.select(by_length(split)[-num_rows:])).to(session.network.device)


def _find_reach(session: Session, phase: Phase) -> int | None:
    """Return the steps that gradients of a phase reach at most; None where that is all, however many there are."""
    if not isinstance(session.network, Network):
        return None
    loss = session.config.loss
    length: Window = decided(session.config.segments.segment_length)
    supervised: SupervisedWindow = decided(loss.supervised_window)
    # An exact gradient is computed chunk by chunk.
    windows: list[Window] = [CHUNK if supervised == "exact" else supervised] if phase.is_supervised else []
    if phase.is_auxiliary:
        windows += [decided(loss.auxiliary_window), length if length == "full" else length + 1]
    steps = [window for window in windows if window != "full"]
    return None if len(steps) < len(windows) or max(steps) > LONGEST_REACH else max(1, *steps)


def _choose_lengths(num_steps: int, reach: int | None, *, is_recurrent: bool) -> list[int]:
    """Choose up to three lengths to count at; one alone where gradients are cut: nothing grows from there on."""
    if reach is not None and num_steps > reach:
        # One step more than any window: what just fits a window is read whole, which keeps less than windows apart.
        return [reach + 1]
    longest = min(num_steps, LONGEST_RECURRENT_PROBE if is_recurrent else LONGEST_PROBE)
    return sorted({max(1, longest * quarters // 4) for quarters in (2, 3, 4)})


def _count_kept(session: Session, phase: Phase, x_BT: Tensor) -> int:
    """Count the bytes that autograd keeps of some rows: each piece of memory once, and no weights."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in session.network.parameters()}
    batch = SequenceBatch(x_BT, torch.zeros(len(x_BT), dtype=torch.long, device=x_BT.device))
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    terms, draws = session.terms_of(phase), Draws(0, "trial", 0)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        losses = session.network.losses(batch, terms=terms, draws=draws, true_probability=0.5)
        if terms.supervised_window == "exact":
            # The graphs of chunks are made in the backward pass.
            losses.combine(1.0).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return sum(kept.values())


def _fit(lengths: Sequence[int], counts: Sequence[float], *, degree: int) -> tuple[float, float, float]:
    """Return a, b, c of the curve `a + b * t + c * t^2` of a degree, or of as many as the lengths allow."""
    found = np.polyfit(lengths, counts, min(degree, len(lengths) - 1)).tolist()
    a, b, c = (*reversed(found), 0.0, 0.0)[:3]
    # A small curvature comes from rounding to whole blocks; extrapolated it would dominate.
    if c and abs(c) * lengths[-1] < 0.05 * abs(b + c * (lengths[-2] + lengths[-1])):
        return _fit(lengths, counts, degree=1)
    return a, b, c


def measure_step(session: Session, phase: Phase) -> int | None:
    """Do one update on the longest sequences and return its peak of memory; None where the system does not tell.

    To be done before anything larger: memory that was held and freed is used again unseen.
    """
    device, batch = session.network.device, _take_longest(session, phase, session.batches.batch_size)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        _update(session, phase, batch, true_probability=0.5)
        return torch.cuda.max_memory_allocated(device) - before
    try:
        reset_peak()
    except OSError:
        return None
    before = read_memory("VmRSS")
    _update(session, phase, batch, true_probability=0.5)
    # Linux counts in lots of pages for each thread, so where nothing was added the peak may seem to be below.
    return max(0, read_memory("VmHWM") - before)


def read_memory(name: Literal["VmRSS", "VmHWM"]) -> int:
    """Return the bytes that this process holds, or held at most since `reset_peak`; an OSError unless on Linux."""
    # psutil knows no peak that can be reset.
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields[name].split()[0]) * 1024


def reset_peak() -> None:
    """Let the peak of `read_memory` start from what is held now."""
    Path("/proc/self/clear_refs").write_bytes(b"5")


def find_memory(session: Session) -> int:
    """Return the bytes that are free for this process, where several share a machine; the least of all processes."""
    free, processes = find_free_memory(session.network.device), session.processes
    return -int(processes.agree(-free / processes.num_here))


def find_free_memory(device: torch.device) -> int:
    """Return the bytes that are free for a training on a device, within the limit of a container if there is one."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    available, folder = int(psutil.virtual_memory().available), Path("/sys/fs/cgroup")
    try:
        limit = int((folder / "memory.max").read_text())
        used = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return min(available, max(0, limit - int(used["anon"])))
    except (OSError, KeyError, ValueError):
        # No container, or one whose limit is "max".
        return available
