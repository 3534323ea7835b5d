"""Pure functions from a step to a rate or a probability (section 4.1; the warm-up is tensor2tensor's)."""

import math


def pretrain_lr(step: int, *, num_steps: int, lr: float) -> float:
    """Give the rate of pretraining: halved once, halfway."""
    return lr if 2 * step < num_steps else lr / 2


def train_lr(step: int, *, halving_steps: float, lr: float) -> float:
    """Give the rate of training with labels: halved after every `halving_steps`."""
    return float(lr * 0.5 ** (step // halving_steps))


def cosine_lr(step: int, *, num_steps: int, warmup_steps: int, lr: float) -> float:
    """Return a rate that rises to `lr` in a warm-up of at most a tenth of the phase, then falls to zero on a cosine."""
    warmup = min(warmup_steps, num_steps // 10)
    if step < warmup:
        return lr * (step + 1) / warmup
    return lr * (1 + math.cos(math.pi * (step - warmup) / max(num_steps - warmup, 1))) / 2


def warmup_lr(step: int, *, warmup_steps: int, lr: float) -> float:
    """Give a rate that rises in a line to `lr` within the warm-up and falls with the root of the step from there on."""
    return float(lr * min((step + 1) / warmup_steps, (warmup_steps / (step + 1)) ** 0.5))


def true_token_probability(step: int, *, sampling_steps: int) -> float:
    """Give the probability that the decoder is fed a true token: from 1 down to 0 in a line over `sampling_steps`.

    `step` counts the updates of both phases; with 0 `sampling_steps` tokens are always true.
    """
    return max(0.0, 1 - step / sampling_steps) if sampling_steps else 1.0
