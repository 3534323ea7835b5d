"""Time and memory of one training step."""

import os
import time
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.batches import in_order
from auxrnn.structs import Draws
from auxrnn.training.evaluate import evaluate
from auxrnn.training.loop import EVALUATIONS_A_PHASE, Session
from auxrnn.training.phases import Phase
from auxrnn.training.schedules import true_token_probability
from auxrnn.training.step import Task, back_propagate, compute_losses

NUM_TRIED = 2


class Estimate(NamedTuple):
    """How long a training takes here, measured on a few batches."""

    seconds_per_update: float
    seconds: float


def estimate_time(session: Session) -> Estimate:
    """Try each phase on a few batches, without an update, and extrapolate to the whole training.

    Scheduled sampling is tried at the middle of what the run will see of it.
    """
    num_updates = sum(phase.num_steps for phase in session.phases)
    seconds = sum(phase.num_steps * time_step(session, phase, total_step=num_updates // 2) for phase in session.phases)
    seconds_per_update = seconds / max(num_updates, 1)
    return Estimate(seconds_per_update, seconds + _evaluation_seconds(session))


def time_step(session: Session, phase: Phase, *, total_step: int) -> float:
    """Give the least seconds that losses and gradients of a batch of average length took."""
    settings, batches = session.settings, session.batches_of(phase)
    task = Task(phase.is_supervised, phase.is_auxiliary, settings.supervised_window)
    probability = true_token_probability(total_step, sampling_steps=settings.sampling_steps)
    least = float("inf")
    for step in range(NUM_TRIED):
        start = time.perf_counter()
        batch = batches.at(step, phase=phase.name).to(session.network.device)
        losses = compute_losses(
            session.network, batch, task=task, draws=Draws(0, "trial", step), true_probability=probability
        )
        back_propagate(session.network, losses.combine(settings.auxiliary_weight), clip_norm=settings.clip_norm).item()
        share = batches.average_columns(phase.name) / batch.x_BT.shape[1]
        least = min(least, share * (time.perf_counter() - start))
    session.network.zero_grad(set_to_none=True)
    return least


def _evaluation_seconds(session: Session) -> float:
    splits = [split for split in session.splits if split is not None]
    batch = next(in_order(splits[0], session.batches.batch_size))
    start = time.perf_counter()
    evaluate(session.network, [batch])
    seconds = (time.perf_counter() - start) / len(batch.label_B) * sum(split.num_examples for split in splits)
    every = session.settings.evaluate_every
    num_evaluations = sum(
        phase.num_steps // every if every else min(EVALUATIONS_A_PHASE, phase.num_steps) for phase in session.phases
    )
    return seconds * num_evaluations


class Memory(NamedTuple):
    """Bytes that a process holds: now, and at most since `reset_peak`."""

    now: int
    peak: int


def measure_memory() -> Memory:
    """Read the memory of this process from Linux; elsewhere this raises an OSError."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now, peak = (int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return Memory(now, peak)


def reset_peak() -> None:
    """Let the peak of `measure_memory` start from what is held now (Linux)."""
    handle = os.open("/proc/self/clear_refs", os.O_WRONLY)
    try:
        os.write(handle, b"5")
    finally:
        os.close(handle)
