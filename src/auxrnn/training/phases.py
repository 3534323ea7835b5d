"""Pretraining, joint, supervised: which losses count, how long, and at what rate (sections 3.3 and 4.1)."""

import math
from typing import NamedTuple

from auxrnn.config import LRSchedule


class Phase(NamedTuple):
    """A stretch of updates with the same losses; each phase starts with a fresh optimizer."""

    name: str
    num_steps: int
    is_supervised: bool
    is_auxiliary: bool
    lr: float
    halving_steps: float
    warmup_steps: int = 0
    lr_schedule: LRSchedule = "halving"

    def lr_at(self, step: int) -> float:
        """Return the learning rate of update `step` (0-based) of this phase."""
        if self.lr_schedule == "cosine":
            return cosine_lr(step, num_steps=self.num_steps, warmup_steps=self.warmup_steps, lr=self.lr)
        if self.lr_schedule == "inverse-sqrt":
            return warmup_lr(step, warmup_steps=self.warmup_steps, lr=self.lr)
        if self.is_supervised:
            return train_lr(step, halving_steps=self.halving_steps, lr=self.lr)
        return pretrain_lr(step, num_steps=self.num_steps, lr=self.lr)


class Rates(NamedTuple):
    """How every phase learns: the rate it starts from or rises to, and what becomes of it."""

    lr: float
    halving_steps: float
    warmup_steps: int = 0
    lr_schedule: LRSchedule = "halving"


def plan_phases(
    *, pretrain_steps: int, train_steps: int, has_objective: bool, is_joint: bool, rates: Rates
) -> list[Phase]:
    """Return the phases in order, without those of zero updates."""
    is_joint = is_joint and has_objective
    phases = [
        Phase("pretrain", pretrain_steps, False, True, *rates),
        Phase("joint" if is_joint else "supervised", train_steps, True, is_joint, *rates),
    ]
    return [phase for phase in phases if phase.num_steps > 0]


def pretrain_lr(step: int, *, num_steps: int, lr: float) -> float:
    """Return the rate of pretraining: halved once, halfway."""
    return lr if 2 * step < num_steps else lr / 2


def train_lr(step: int, *, halving_steps: float, lr: float) -> float:
    """Return the rate of training with labels: halved after every `halving_steps`."""
    return float(lr * 0.5 ** (step // halving_steps))


def cosine_lr(step: int, *, num_steps: int, warmup_steps: int, lr: float) -> float:
    """Return a rate that rises to `lr` in a warm-up of at most a tenth of the phase, then falls to zero on a cosine."""
    warmup = min(warmup_steps, num_steps // 10)
    if step < warmup:
        return lr * (step + 1) / warmup
    return lr * (1 + math.cos(math.pi * (step - warmup) / max(num_steps - warmup, 1))) / 2


def warmup_lr(step: int, *, warmup_steps: int, lr: float) -> float:
    """Return a rate that rises linearly to `lr` in the warm-up, then falls with the root of the step."""
    return float(lr * min((step + 1) / warmup_steps, (warmup_steps / (step + 1)) ** 0.5))


def true_token_probability(step: int, *, sampling_steps: int) -> float:
    """Return the probability that the decoder is fed a true token: from 1 down to 0, linearly over `sampling_steps`.

    `step` counts the updates of both phases; with 0 `sampling_steps` tokens are always true.
    """
    return max(0.0, 1 - step / sampling_steps) if sampling_steps else 1.0
