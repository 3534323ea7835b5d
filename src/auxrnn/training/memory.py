"""Memory of one training step: estimated before it is needed, and measured.

What a step holds at its peak is mostly what autograd keeps for the backward pass. That is counted on one or two short
rows; it grows in proportion to the rows, and with the steps as far as gradients reach.
"""

import bisect
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from auxrnn.auxiliary.predict import Predict
from auxrnn.auxiliary.reconstruct import Reconstruct
from auxrnn.config import Window, decided
from auxrnn.data.batches import by_length, to_batch
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.network import Baseline, Network, Trainable
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.cost import on_trial, update_once
from auxrnn.training.loop import Session
from auxrnn.training.optimizers import KINDS
from auxrnn.training.phases import Phase
from auxrnn.training.process_memory import read_peak, start_measuring

LONGEST_PROBE, LONGEST_RECURRENT_PROBE = 1024, 256
"""Probe lengths long enough to fit the growth curve: several blocks of local attention; for recurrences, a line."""
LONGEST_REACH = 4096
"""A longer reach than this is not probed, but taken as unlimited."""


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


def find_hungriest(session: Session) -> tuple[Phase, Growth]:
    """Return the phase that needs most memory, and how it grows."""
    with on_trial(session.network):
        growths = [(phase, _estimate_phase(session, phase)) for phase in session.phases]
    rows, steps = session.batches.batch_size, find_longest(session)
    return max(growths, key=lambda pair: pair[1].bytes_for(rows, steps))


def estimate_unfused(session: Session) -> Growth:
    """Estimate the same with attention that keeps its whole matrix of steps by steps, as the paper had it."""
    with sdpa_kernel(SDPBackend.MATH):
        return estimate_growth(session)


def find_longest(session: Session) -> int:
    """Return the length of the longest sequence that any phase trains on."""
    return max(int(session.batches_of(phase).split.length_N.max()) for phase in session.phases)


def _estimate_phase(session: Session, phase: Phase) -> Growth:
    network, split = session.network, session.batches_of(phase).split
    batch = to_batch(split.select(by_length(split)[-2:])).to(network.device)
    reach = _find_reach(session, phase)
    lengths = _choose_lengths(batch.x_BT.shape[1], reach, is_recurrent=isinstance(network, Network))
    kept = [_count_kept(session, phase, _cut(batch, 1, length)) for length in lengths]
    pair = _count_kept(session, phase, _cut(batch, 2, lengths[-1]))
    shared, factor = 2 * kept[-1] - pair, _backward_factor(network)
    counts = [factor * (count - shared) for count in kept]
    per_row, per_step, per_pair = _fit(counts, lengths, may_curve=isinstance(network, Baseline))
    num_kept = sum(name != "step" for name in KINDS[session.config.schedule.optimizer].kept)
    weights = sum(parameter.numel() * parameter.element_size() for parameter in network.parameters())
    input_bytes = batch.x_BT[0, 0].numel() * batch.x_BT.element_size()
    return Growth(shared + (1 + num_kept) * weights, per_row, per_step, per_pair, 2.0 * input_bytes, reach)


def _choose_lengths(num_steps: int, reach: int | None, *, is_recurrent: bool) -> list[int]:
    """Choose three lengths to count at; one alone where gradients are cut, since nothing grows from there on."""
    if reach is not None and num_steps > reach:
        # One step more than any window: what just fits a window is read whole, which keeps less than windows apart.
        return [reach + 1] * 3
    longest = min(num_steps, LONGEST_RECURRENT_PROBE if is_recurrent else LONGEST_PROBE)
    return [max(1, longest * quarters // 4) for quarters in (2, 3, 4)]


def _backward_factor(network: Trainable) -> float:
    """Return the ratio of the peak to what autograd keeps: gradients in flight, and gaps between pieces of memory.

    Measured at 1.0 to 1.4 for the LSTM and all models that take whole sequences, and at 1.6 to 1.75 for the recurrences
    that torch runs step by step, whose gradients wait in pieces until all steps are done.
    """
    is_stepwise = isinstance(network, Network) and not isinstance(network.encoder.cell, LSTM)
    return 1.75 if is_stepwise else 1.3


def _find_reach(session: Session, phase: Phase) -> int | None:
    """Return the steps that gradients of a phase reach at most; None where that is all, however many there are."""
    if not isinstance(session.network, Network):
        return None
    objective = session.network.objective
    windows: list[Window] = [decided(session.config.loss.supervised_window)] if phase.is_supervised else []
    if phase.is_auxiliary:
        assert isinstance(objective, Reconstruct | Predict)
        windows += [objective.window, objective.geometry.segment_length + 1]
    steps = [window for window in windows if window != "full"]
    return None if len(steps) < len(windows) or max(steps) > LONGEST_REACH else max(1, *steps)


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


def _fit(counts: Sequence[float], lengths: Sequence[int], *, may_curve: bool) -> tuple[float, float, float]:
    """Return a, b, c of the parabola `a + b * t + c * t^2` through three points; a line or less where they coincide.

    Only attention grows with pairs of steps; that of a recurrence comes from windows that begin between the points.
    """
    (y0, y1, y2), (t0, t1, t2) = counts, lengths
    if len({t0, t1, t2}) < 3:
        return y2, 0.0, 0.0
    slope, next_slope = (y1 - y0) / (t1 - t0), (y2 - y1) / (t2 - t1)
    c = (next_slope - slope) / (t2 - t0)
    # A small curvature comes from rounding to whole blocks; extrapolated it would dominate.
    if not may_curve or abs(c) * t2 < 0.05 * abs(next_slope):
        b = (y2 - y0) / (t2 - t0)
        return y2 - b * t2, b, 0.0
    b = slope - c * (t0 + t1)
    return y0 - b * t0 - c * t0**2, b, c


def measure_step(session: Session, phase: Phase) -> int | None:
    """Do one update on the longest sequences and return its peak of memory; None where the system does not tell.

    To be done before anything larger: memory that was held and freed is used again unseen.
    """
    split = session.batches_of(phase).split
    batch = to_batch(split.select(by_length(split)[-session.batches.batch_size :])).to(session.network.device)
    try:
        before = start_measuring(session.network.device)
    except OSError:
        return None
    update_once(session, phase, batch, true_probability=0.5)
    return read_peak(session.network.device) - before
