"""What an update and an evaluation of a training take, found in a second or two by trying less than all of it.

Fewer rows are tried where a batch takes long, and the ends of sequences where these are long. What is left out is
extrapolated: in a line for rows, and for the steps of a recurrence (steps that no gradient reaches take what reading
takes); with the square of the steps for attention.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from auxrnn.auxiliary.predict import Predict
from auxrnn.auxiliary.reconstruct import Reconstruct
from auxrnn.config import Window
from auxrnn.data.batches import by_length, to_batch
from auxrnn.data.sequences import Split
from auxrnn.models.baselines.dmca import DMCA
from auxrnn.models.baselines.transformer import Transformer
from auxrnn.models.network import Baseline, Trainable
from auxrnn.structs import SequenceBatch
from auxrnn.training.cost import learn, on_trial
from auxrnn.training.evaluate import evaluate, evaluate_auxiliary
from auxrnn.training.loop import Session
from auxrnn.training.phases import Phase

LONG_TRIAL, VERY_LONG_TRIAL = 0.1, 0.6
"""Seconds; after a long trial no more rows are tried, and a very long one is not repeated."""
SHORT_LENGTH, SHORT_ATTENTION = 352, 640
"""Steps that show what more of them take: gradients of a recurrence have faded to numbers too small for a processor to
be quick with, and then to nothing; local attention has had several blocks."""
STRETCH = 3
"""How much longer the second of two tried lengths is than the first."""
WARM_STEPS = 32

Use = Callable[[SequenceBatch], object]


class PhaseCost(NamedTuple):
    """Seconds of one update of a phase, and of one of its evaluations."""

    update: float
    evaluation: float


class Trial(NamedTuple):
    """Seconds that so many rows, or so many steps, took."""

    size: int
    seconds: float


def time_phase(session: Session, phase: Phase, *, total_step: int) -> PhaseCost:
    """Measure a phase on batches of average length; `total_step` is the clock of scheduled sampling.

    A step that holds more memory than was ever tried is slower than this says, by what the system takes to give it.
    """
    batches, evaluated = session.batches_of(phase), [split for split in session.splits if split is not None]
    length_N = np.concatenate([split.length_N for split in evaluated])
    batch = _take_typical(batches.split, batches.average_columns(phase.name), session)
    read = _take_typical(session.batches.split, float(length_N.mean()), session)
    with on_trial(session.network):
        reading = _time_reading(session, read)
        a_step = reading / math.prod(read.x_BT.shape[:2])
        update = _time_batch(
            session, phase, batch, lambda some: learn(session, phase, some, total_step=total_step), a_step=a_step
        )
        evaluation = reading if phase.is_supervised else _time_auxiliary(session, phase, read, a_step=a_step)
    return PhaseCost(update, evaluation * len(length_N) / len(read.label_B))


def has_shown(trials: Sequence[Trial]) -> bool:
    """Say whether trials have shown what more rows take: they take long, and no longer come nearly for nothing."""
    if len(trials) == 1 or trials[-1].seconds < LONG_TRIAL:
        return False
    first, last = trials[-2:]
    return _slope(first, last) * last.size > last.seconds / 3


def extrapolate_rows(trials: Sequence[Trial], num_rows: int) -> float:
    """Give the seconds of all rows: on the line through the last two trials."""
    return _extend_line(trials[-2:], num_rows)


def extrapolate_steps(trials: Sequence[Trial], num_steps: int, *, is_attention: bool) -> float:
    """Give the seconds of all steps: on the line through two trials, or on the parabola through them and zero."""
    if not is_attention:
        return _extend_line(trials, num_steps)
    return num_steps * _extend_line([Trial(trial.size, trial.seconds / trial.size) for trial in trials], num_steps)


def choose_lengths(num_steps: int, *, shortest: int) -> list[int]:
    """Choose how many steps to try: all if they are few, else two shorter lengths."""
    return [num_steps] if num_steps <= STRETCH * shortest else [shortest, STRETCH * shortest]


def _slope(first: Trial, last: Trial) -> float:
    return (last.seconds - first.seconds) / (last.size - first.size)


def _extend_line(trials: Sequence[Trial], size: int) -> float:
    """Extend the line through one or two trials; it neither falls nor begins below zero, as chance may have it."""
    last = trials[-1]
    steepest = last.seconds / last.size
    slope = _slope(trials[0], last) if len(trials) > 1 else steepest
    return last.seconds + (size - last.size) * min(max(slope, 0.0), steepest)


def _take_typical(split: Split, num_columns: float, session: Session) -> SequenceBatch:
    """Give a batch of about so many columns, of sequences about as long as each other, as batches are."""
    order_N = by_length(split)
    num_rows = min(session.batches.batch_size, len(order_N))
    end = max(num_rows, int(np.searchsorted(split.length_N[order_N], num_columns, side="right")))
    return to_batch(split.select(order_N[end - num_rows : end])).to(session.network.device)


def _time_reading(session: Session, batch: SequenceBatch) -> float:
    network = session.network
    return _time_lengths(
        network, batch, lambda some: evaluate(network, [some]), shortest=_find_shortest(network, [], batch)
    )


def _time_auxiliary(session: Session, phase: Phase, batch: SequenceBatch, *, a_step: float) -> float:
    network, seed = session.network, session.settings.seed
    return _time_batch(
        session, phase, batch, lambda some: evaluate_auxiliary(network, [some], seed=seed), a_step=a_step
    )


def _time_batch(session: Session, phase: Phase, batch: SequenceBatch, use: Use, *, a_step: float) -> float:
    """Give the seconds of a batch; where all windows end, steps beyond them are only read, which takes `a_step`."""
    network, windows = session.network, _find_windows(session, phase)
    num_rows, num_steps = batch.x_BT.shape[:2]
    within = [window for window in windows if window != "full" and window < num_steps]
    shortest = _find_shortest(network, within, batch)
    if isinstance(network, Baseline) or len(within) < len(windows) or num_steps <= shortest:
        return _time_lengths(network, batch, use, shortest=shortest)
    beyond = a_step * num_rows * (num_steps - shortest)
    return beyond + _time_lengths(network, _keep_end(batch, shortest), use, shortest=shortest)


def _time_lengths(network: Trainable, batch: SequenceBatch, use: Use, *, shortest: int) -> float:
    num_steps = batch.x_BT.shape[1]
    # The first use of anything takes seconds of its own.
    use(_keep_end(batch.head(2), WARM_STEPS))
    lengths, is_attention = choose_lengths(num_steps, shortest=shortest), _has_attention(network)
    trials = [Trial(length, _time_rows(use, _keep_end(batch, length), are_alike=is_attention)) for length in lengths]
    return extrapolate_steps(trials, num_steps, is_attention=is_attention)


def _has_attention(network: Trainable) -> bool:
    return isinstance(network, Baseline) and isinstance(network.reader, Transformer | DMCA)


def _find_windows(session: Session, phase: Phase) -> list[Window]:
    """Give how far back each loss of a phase reaches, and how long its segments are."""
    if isinstance(session.network, Baseline):
        return []
    objective = session.network.objective
    windows = [session.settings.supervised_window] if phase.is_supervised else []
    if phase.is_auxiliary:
        assert isinstance(objective, Reconstruct | Predict)
        windows += [objective.window, objective.geometry.segment_length]
    return windows


def _find_shortest(network: Trainable, windows: Sequence[int], batch: SequenceBatch) -> int:
    """Give a length from which on all grows evenly: no window ends beyond it."""
    if isinstance(network, Baseline):
        # The others read as many steps as they are made for, however few are given.
        return SHORT_ATTENTION if _has_attention(network) else batch.x_BT.shape[1]
    # Twice as long, since a window left of an anchor near the start is cut short.
    return max([SHORT_LENGTH, *(2 * window for window in windows)])


def _keep_end(batch: SequenceBatch, num_steps: int) -> SequenceBatch:
    num_dropped = max(0, batch.x_BT.shape[1] - num_steps)
    first_B = None if batch.first_B is None else (batch.first_B - num_dropped).clamp(min=0)
    return SequenceBatch(batch.x_BT[:, num_dropped:], batch.label_B, first_B)


def _time_rows(use: Use, batch: SequenceBatch, *, are_alike: bool) -> float:
    """Give the seconds of a batch, tried on one row, then on more, until that takes long.

    One long row is enough where rows `are_alike`: each takes what the first one does.
    """
    num_rows, tried = len(batch.label_B), 1
    trials = [Trial(tried, _time_least(use, batch.head(tried)))]
    if are_alike and trials[0].seconds > LONG_TRIAL:
        return extrapolate_rows(trials, num_rows)
    while tried < num_rows and not has_shown(trials):
        tried = min(4 * tried, num_rows)
        trials.append(Trial(tried, _time_least(use, batch.head(tried))))
    return extrapolate_rows(trials, num_rows)


def _time_least(use: Use, batch: SequenceBatch) -> float:
    """Give the lesser of two times, since memory is new to the first; that one alone if it is very long."""
    seconds = _time_once(use, batch)
    return seconds if seconds > VERY_LONG_TRIAL else min(seconds, _time_once(use, batch))


def _time_once(use: Use, batch: SequenceBatch) -> float:
    """Give the seconds of the processor where one thread does all, since it may be busy with other runs just now."""
    is_alone = torch.get_num_threads() == 1 and batch.x_BT.device.type == "cpu"
    read_clock = time.process_time if is_alone else time.perf_counter
    start = read_clock()
    use(batch)
    return read_clock() - start
