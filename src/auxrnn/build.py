"""Turns a config, a network and data into one training, ready to start."""

import math
from pathlib import Path

from auxrnn.config import DESK_PRETRAIN_STEPS, DESK_TRAIN_STEPS, RunConfig, decided
from auxrnn.data.batches import Batches
from auxrnn.data.sequences import Split, Splits
from auxrnn.data.splits import draw_stratified
from auxrnn.models.network import Trainable
from auxrnn.structs import Draws
from auxrnn.training.loop import Session
from auxrnn.training.phases import Phase, Rates, plan_phases
from auxrnn.training.record import Recorder

NUM_EVALUATED = 1000


def build_session(
    config: RunConfig, network: Trainable, splits: Splits, *, recorder: Recorder, folder: Path | None
) -> Session:
    """Return one training of a network on a training split; the test split is used for evaluation only.

    Examples without a label count in pretraining, and are left out afterwards.
    """
    batch_size, seed = decided(config.schedule.batch_size), config.seed
    labeled = splits.train.labeled()
    pretrain_batches = Batches(splits.train, batch_size=batch_size, seed=seed)
    batches = Batches(labeled, batch_size=batch_size, seed=seed)
    return Session(
        network=network,
        batches=batches,
        pretrain_batches=pretrain_batches,
        splits=splits._replace(
            train=_draw_some(labeled, seed),
            validation=splits.validation
            if config.evaluate_all or splits.validation is None
            else _draw_some(splits.validation, seed),
        ),
        phases=build_phases(config, batches.steps_per_epoch, pretrain_steps_per_epoch=pretrain_batches.steps_per_epoch),
        config=config,
        recorder=recorder,
        folder=folder,
    )


def build_phases(config: RunConfig, steps_per_epoch: int, *, pretrain_steps_per_epoch: int) -> list[Phase]:
    """Turn steps or epochs into phases; without a length, one that fits a desk."""
    schedule, has_objective = config.schedule, config.loss.objective != "none"
    default = DESK_PRETRAIN_STEPS if has_objective else 0
    return plan_phases(
        pretrain_steps=_num_steps(schedule.pretrain_steps, schedule.pretrain_epochs, pretrain_steps_per_epoch, default),
        train_steps=_num_steps(schedule.train_steps, schedule.train_epochs, steps_per_epoch, DESK_TRAIN_STEPS),
        has_objective=has_objective,
        is_joint=schedule.joint,
        rates=Rates(
            schedule.lr,
            schedule.lr_halving_epochs * steps_per_epoch,
            schedule.warmup_steps,
            schedule.lr_schedule or ("inverse-sqrt" if schedule.warmup_steps else "halving"),
        ),
    )


def _draw_some(split: Split, seed: int) -> Split:
    """Draw the examples of a split that are evaluated while training, always the same."""
    rng = Draws(seed, "data", 0).rng("take_examples")
    num_examples = min(NUM_EVALUATED, split.num_examples)
    return split.select(draw_stratified(split.label_N, num_examples=num_examples, rng=rng))


def _num_steps(steps: int | None, epochs: float | None, steps_per_epoch: int, default: int) -> int:
    if steps is not None:
        return steps
    return default if epochs is None else math.ceil(epochs * steps_per_epoch)
