"""Pretraining, joint, supervised: which losses count, how long, and at what rate (section 3.3)."""

from typing import NamedTuple

from auxrnn.config import LRSchedule
from auxrnn.training.schedules import cosine_lr, pretrain_lr, train_lr, warmup_lr


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
    """Give the phases that really happen, in order; one of zero updates is left out."""
    is_joint = is_joint and has_objective
    phases = [
        Phase("pretrain", pretrain_steps, False, True, *rates),
        Phase("joint" if is_joint else "supervised", train_steps, True, is_joint, *rates),
    ]
    return [phase for phase in phases if phase.num_steps > 0]
