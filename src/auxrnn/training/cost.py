"""Time of one training step, and of a whole training."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from auxrnn.config import decided
from auxrnn.data.batches import in_order
from auxrnn.models.network import Trainable
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.evaluate import evaluate
from auxrnn.training.loop import EVALUATIONS_A_PHASE, Session
from auxrnn.training.optimizers import back_propagate, make_optimizer
from auxrnn.training.phases import Phase, true_token_probability

SMALL_LR = 1e-12
LONGEST_TRIAL = 2.0
"""Seconds; a step that takes longer is tried on fewer rows."""


class Estimate(NamedTuple):
    """How long a training takes here, measured on a few batches."""

    seconds_per_update: dict[str, float]
    """Of each phase by name."""
    seconds: float
    """Of the whole training, with its evaluations."""


def estimate_time(session: Session) -> Estimate:
    """Time each phase on a few rows or batches, and extrapolate to the whole training; nothing is changed.

    Scheduled sampling is timed halfway through the run.
    """
    halfway = sum(phase.num_steps for phase in session.phases) // 2
    per_update = {phase.name: time_step(session, phase, total_step=halfway) for phase in session.phases}
    seconds = sum(phase.num_steps * per_update[phase.name] for phase in session.phases)
    return Estimate(per_update, seconds + _evaluation_seconds(session))


def time_step(session: Session, phase: Phase, *, total_step: int) -> float:
    """Return the least seconds that an update with a batch of average length takes."""
    batches = session.batches_of(phase)
    batch = batches.at(0, phase=phase.name).to(session.network.device)
    probability = true_token_probability(total_step, sampling_steps=decided(session.config.loss.sampling_steps))
    with on_trial(session.network):
        seconds = _time_rows(lambda some: update_once(session, phase, some, true_probability=probability), batch)
    return seconds * batches.average_columns(phase.name) / batch.x_BT.shape[1]


def time_row(session: Session, phase: Phase) -> float:
    """Return the least seconds of a single row: more than its share of a batch, but soon known."""
    batch = session.batches_of(phase).at(0, phase=phase.name).to(session.network.device).head(1)
    with on_trial(session.network):
        return _time_rows(lambda some: update_once(session, phase, some, true_probability=1.0), batch)


def count_evaluations(phase: Phase, *, evaluate_every: int | None) -> int:
    """Count the evaluations of a phase: its last update always, and before the first one with labels."""
    every = evaluate_every or max(1, phase.num_steps // EVALUATIONS_A_PHASE)
    return math.ceil(phase.num_steps / every) + phase.is_supervised


def update_once(session: Session, phase: Phase, batch: SequenceBatch, *, true_probability: float) -> None:
    """Do an update, with a fresh optimizer and a rate so small that hardly anything moves."""
    config, terms = session.config, session.terms_of(phase)
    losses = session.network.losses(batch, terms=terms, draws=Draws(0, "trial", 0), true_probability=true_probability)
    back_propagate(
        session.network, losses.combine(config.loss.auxiliary_weight), clip_norm=config.schedule.clip_norm
    ).item()
    make_optimizer(config.schedule.optimizer, session.network, lr=SMALL_LR).step()


@contextmanager
def on_trial(network: Trainable) -> Iterator[None]:
    """Restore the weights, and the statistics of batch normalization, after a trial."""
    before = {name: value.clone() for name, value in network.state_dict().items()}
    try:
        yield
    finally:
        network.zero_grad(set_to_none=True)
        network.load_state_dict(before)


def _time_rows(use: Callable[[SequenceBatch], object], batch: SequenceBatch) -> float:
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
    while tried < num_rows and seconds < LONGEST_TRIAL:
        tried = min(4 * tried, num_rows)
        seconds = time_once(tried)
        seconds = seconds if seconds > LONGEST_TRIAL else min(seconds, time_once(tried))
    return seconds * num_rows / tried


def time_evaluation(session: Session) -> float:
    """Return the least seconds that it takes to classify one sequence."""
    batch = next(in_order(session.splits.train, session.batches.batch_size))
    return _time_rows(lambda some: evaluate(session.network, [some]), batch) / len(batch.label_B)


def _evaluation_seconds(session: Session) -> float:
    size = {name: 0 if split is None else split.num_examples for name, split in session.splits._asdict().items()}
    every = session.config.evaluate_every
    count = sum(count_evaluations(phase, evaluate_every=every) for phase in session.phases)
    while_training = sum(size.values()) if session.config.evaluate_all else size["validation"]
    at_end = 0 if session.config.evaluate_all else size["test"]
    return time_evaluation(session) * (count * while_training + at_end)
