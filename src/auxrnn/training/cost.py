"""What a training costs here: its time, measured on a few rows, and its memory, estimated before it is needed.

What a step holds at its peak is mostly what autograd keeps for the backward pass. That is counted on one or two short
rows; it grows in proportion to the rows, and with the steps as far as gradients reach.
"""

import bisect
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import psutil
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from auxrnn.config import Window, decided
from auxrnn.data.sequences import by_length, in_order, to_batch
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.network import Network, Trainable
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.evaluate import evaluate
from auxrnn.training.loop import EVALUATIONS_A_PHASE, Session
from auxrnn.training.optimizers import KINDS, Phase, back_propagate, make_optimizer, true_token_probability

SMALL_LR = 1e-12
LONGEST_TRIAL = 2.0
"""Seconds; a step that takes longer is timed on fewer rows."""
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
    """Return the least seconds of an update with a batch of average length, tried on `most_rows` of it at most."""
    batches = session.batches_of(phase)
    batch = batches.at(0, phase=phase.name).to(session.network.device)
    probability = true_token_probability(total_step, sampling_steps=decided(session.config.loss.sampling_steps))
    with _on_trial(session.network):
        seconds = _time_rows(lambda rows: _update(session, phase, rows, true_probability=probability), batch, most_rows)
    return seconds * batches.average_columns(phase.name) / batch.x_BT.shape[1]


def time_evaluation(session: Session) -> float:
    """Return the least seconds that it takes to classify one sequence."""
    batch = next(in_order(session.splits.train, session.batches.batch_size))
    return _time_rows(lambda rows: evaluate(session.network, [rows]), batch) / len(batch.label_B)


def _evaluation_seconds(session: Session) -> float:
    size = {name: 0 if split is None else split.num_examples for name, split in session.splits._asdict().items()}
    every = session.config.evaluate_every
    count = sum(count_evaluations(phase, evaluate_every=every) for phase in session.phases)
    while_training = sum(size.values()) if session.config.evaluate_all else size["validation"]
    at_end = 0 if session.config.evaluate_all else size["test"]
    return time_evaluation(session) * (count * while_training + at_end)


def count_evaluations(phase: Phase, *, evaluate_every: int | None) -> int:
    """Count the evaluations of a phase: its last update always, and before the first one with labels."""
    every = evaluate_every or max(1, phase.num_steps // EVALUATIONS_A_PHASE)
    return math.ceil(phase.num_steps / every) + phase.is_supervised


def _time_rows(use: Callable[[SequenceBatch], object], batch: SequenceBatch, most_rows: int | None = None) -> float:
    """Return the seconds of a batch, tried on one row, then on more until that takes long.

    A batch that would take minutes is not waited for: its other rows take as long as those that were tried. Each size
    is tried twice, since the first use of anything takes time of its own.
    """

    def time_once(num_rows: int) -> float:
        start = time.perf_counter()
        use(batch.head(num_rows))
        return time.perf_counter() - start

    num_rows, tried = len(batch.label_B), 1
    seconds = min(time_once(tried) for _ in range(2))
    while tried < (most_rows or num_rows) and seconds < LONGEST_TRIAL:
        tried = min(4 * tried, num_rows)
        seconds = time_once(tried)
        seconds = seconds if seconds > LONGEST_TRIAL else min(seconds, time_once(tried))
    return seconds * num_rows / tried


def _update(session: Session, phase: Phase, batch: SequenceBatch, *, true_probability: float) -> None:
    """Do an update, with a fresh optimizer and a rate so small that hardly anything moves."""
    network, schedule = session.network, session.config.schedule
    draws, terms = Draws(0, "trial", 0), session.terms_of(phase)
    losses = network.losses(batch, terms=terms, draws=draws, true_probability=true_probability)
    total = losses.combine(session.config.loss.auxiliary_weight)
    back_propagate(network, total, clip_norm=schedule.clip_norm).item()
    make_optimizer(schedule.optimizer, network, lr=SMALL_LR).step()


@contextmanager
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


def estimate_growth(session: Session) -> Growth:
    """Estimate what the hungriest phase of a training holds, from a few short rows."""
    return find_hungriest(session)[1]


def estimate_unfused(session: Session) -> Growth:
    """Estimate the same with attention that keeps its whole matrix of steps by steps, as the paper had it."""
    with sdpa_kernel(SDPBackend.MATH):
        return estimate_growth(session)


def find_hungriest(session: Session) -> tuple[Phase, Growth]:
    """Return the phase that needs most memory, and how it grows."""
    with _on_trial(session.network):
        growths = [(phase, _estimate_phase(session, phase)) for phase in session.phases]
    rows, steps = session.batches.batch_size, find_longest(session)
    return max(growths, key=lambda pair: pair[1].bytes_for(rows, steps))


def find_longest(session: Session) -> int:
    """Return the length of the longest sequence that any phase trains on."""
    return max(int(session.batches_of(phase).split.length_N.max()) for phase in session.phases)


def _estimate_phase(session: Session, phase: Phase) -> Growth:
    network, is_recurrent = session.network, isinstance(session.network, Network)
    batch = _take_longest(session, phase, 2)
    reach = _find_reach(session, phase) if is_recurrent else None
    lengths = _choose_lengths(batch.x_BT.shape[1], reach, is_recurrent=is_recurrent)
    kept = [_count_kept(session, phase, _cut(batch, 1, length)) for length in lengths]
    shared = 2 * kept[-1] - _count_kept(session, phase, _cut(batch, 2, lengths[-1]))
    factor = _backward_factor(network)
    counts = [factor * (count - shared) for count in kept]
    per_row, per_step, per_pair = _fit(counts, lengths, may_curve=not is_recurrent)
    num_kept = sum(name != "step" for name in KINDS[session.config.schedule.optimizer].kept)
    weights = sum(parameter.numel() * parameter.element_size() for parameter in network.parameters())
    input_bytes = batch.x_BT[0, 0].numel() * batch.x_BT.element_size()
    return Growth(shared + (1 + num_kept) * weights, per_row, per_step, per_pair, 2.0 * input_bytes, reach)


def _take_longest(session: Session, phase: Phase, num_rows: int) -> SequenceBatch:
    split = session.batches_of(phase).split
    return to_batch(split.select(by_length(split)[-num_rows:])).to(session.network.device)


def _find_reach(session: Session, phase: Phase) -> int | None:
    """Return the steps that gradients of a phase reach at most; None where that is all, however many there are."""
    loss = session.config.loss
    length: Window = decided(session.config.segments.segment_length)
    windows: list[Window] = [decided(loss.supervised_window)] if phase.is_supervised else []
    if phase.is_auxiliary:
        windows += [decided(loss.auxiliary_window), length if length == "full" else length + 1]
    steps = [window for window in windows if window != "full"]
    return None if len(steps) < len(windows) or max(steps) > LONGEST_REACH else max(1, *steps)


def _choose_lengths(num_steps: int, reach: int | None, *, is_recurrent: bool) -> list[int]:
    """Choose three lengths to count at; the same three times where gradients are cut: nothing grows from there on."""
    if reach is not None and num_steps > reach:
        # One step more than any window: what just fits a window is read whole, which keeps less than windows apart.
        return [reach + 1] * 3
    longest = min(num_steps, LONGEST_RECURRENT_PROBE if is_recurrent else LONGEST_PROBE)
    return [max(1, longest * quarters // 4) for quarters in (2, 3, 4)]


def _cut(batch: SequenceBatch, num_rows: int, num_steps: int) -> SequenceBatch:
    """Return the ends of the first rows; where there are too few, they are repeated."""
    row_R = torch.arange(num_rows, device=batch.label_B.device) % len(batch.label_B)
    num_dropped = batch.x_BT.shape[1] - num_steps
    first_R = None if batch.first_B is None else (batch.first_B[row_R] - num_dropped).clamp(min=0)
    return SequenceBatch(batch.x_BT[row_R, num_dropped:], batch.label_B[row_R], first_R)


def _count_kept(session: Session, phase: Phase, batch: SequenceBatch) -> int:
    """Count the bytes that autograd keeps of a batch: each piece of memory once, and no weights."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in session.network.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        session.network.losses(batch, terms=session.terms_of(phase), draws=Draws(0, "trial", 0), true_probability=0.5)
    return sum(kept.values())


def _backward_factor(network: Trainable) -> float:
    """Return the ratio of the peak to what autograd keeps: gradients in flight, and gaps between pieces of memory.

    Measured at 1.0 to 1.4 for the LSTM and all models that take whole sequences, and at 1.6 to 1.75 for the recurrences
    that torch runs step by step, whose gradients wait in pieces until all steps are done.
    """
    is_stepwise = isinstance(network, Network) and not isinstance(network.encoder.cell, LSTM)
    return 1.75 if is_stepwise else 1.3


def _fit(counts: Sequence[float], lengths: Sequence[int], *, may_curve: bool) -> tuple[float, float, float]:
    """Return a, b, c of the parabola `a + b * t + c * t^2` through three points; a line or less where they coincide.

    Only attention grows with pairs of steps; that of a recurrence comes from windows that begin between the points.
    """
    if len(set(lengths)) < len(lengths):
        return counts[-1], 0.0, 0.0
    c, b, a = np.polyfit(lengths, counts, 2).tolist()
    # A small curvature comes from rounding to whole blocks; extrapolated it would dominate.
    if not may_curve or abs(c) * lengths[-1] < 0.05 * abs(b + c * (lengths[-2] + lengths[-1])):
        b, a = np.polyfit(lengths, counts, 1).tolist()
        c = 0.0
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
    return read_memory("VmHWM") - before


def read_memory(name: Literal["VmRSS", "VmHWM"]) -> int:
    """Return the bytes that this process holds, or held at most since `reset_peak`; an OSError where Linux is not."""
    # psutil knows no peak that can be reset.
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields[name].split()[0]) * 1024


def reset_peak() -> None:
    """Let the peak of `read_memory` start from what is held now."""
    Path("/proc/self/clear_refs").write_bytes(b"5")


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
