"""Tiny whole networks, as `build_network` makes them, that the tests of training share."""

import torch

from auxrnn.build import InputSpec, build_network
from auxrnn.config import DataConfig, ModelConfig, ObjectiveConfig, RunConfig, SegmentConfig
from auxrnn.structs import SequenceBatch

NUM_FEATURES, NUM_CLASSES = 2, 3


def make_network(objective="reconstruct", *, seed=0, segments=None, **loss):
    """Build a network of 5 units in double precision; `loss` are fields of `ObjectiveConfig`."""
    config = RunConfig(
        data=DataConfig(data="synthetic"),
        model=ModelConfig(hidden_size=5, embedding_size=3, head_size=6),
        segments=segments or SegmentConfig(num_segments=2, segment_length=6),
        loss=ObjectiveConfig(**{"auxiliary_window": 4} | loss, objective=objective),
        seed=seed,
    )
    return build_network(config, InputSpec(NUM_FEATURES, None, NUM_CLASSES, 20)).double()


def make_batch(num_rows=4, num_steps=20, *, first_B=None, seed=1):
    """Draw random sequences with random classes."""
    rng = torch.Generator().manual_seed(seed)
    x_BTD = torch.randn(num_rows, num_steps, NUM_FEATURES, dtype=torch.float64, generator=rng)
    return SequenceBatch(x_BTD, torch.randint(NUM_CLASSES, (num_rows,), generator=rng), first_B)
