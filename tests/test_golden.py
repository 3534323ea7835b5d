"""The first losses of one tiny run per phase and objective do not move. `make golden` records them again."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from auxrnn.build import InputSpec, build_network, build_session
from auxrnn.config import DataConfig, ModelConfig, ObjectiveConfig, RunConfig, ScheduleConfig, SegmentConfig
from auxrnn.data.sequences import Splits, from_array
from auxrnn.training.loop import train
from auxrnn.training.record import ListRecorder

PATH = Path(__file__).parent / "golden" / "losses.json"
NUM_STEPS, NUM_CLASSES = 49, 10
CASES = [
    "none/supervised",
    *(f"{kind}/{phase}" for kind in ("reconstruct", "predict") for phase in ("pretrain", "joint", "supervised")),
]


def make_split():
    """Make sequences of bytes that look a little like digits: each class a bright bar of its own, and noise."""
    rng = np.random.default_rng(0)
    label_N = np.arange(40, dtype=np.int64) % NUM_CLASSES
    x_NTD = rng.integers(0, 60, (40, NUM_STEPS, 1), dtype=np.uint8)
    for row, label in enumerate(label_N):
        x_NTD[row, 3 * label : 3 * label + 9] += np.uint8(180)
    return from_array(x_NTD, label_N)


def first_losses(case):
    """Give the losses of the first three updates of a phase, each before its update."""
    objective, phase = case.split("/")
    config = RunConfig(
        data=DataConfig(data="synthetic"),
        model=ModelConfig(hidden_size=8, embedding_size=6, head_size=12),
        segments=SegmentConfig(num_segments=2, segment_length=12),
        loss=ObjectiveConfig(objective=objective, supervised_window=10, auxiliary_window=5, sampling_steps=8),
        schedule=ScheduleConfig(
            pretrain_steps=0 if objective == "none" else 3,
            train_steps=0 if phase == "pretrain" else 3,
            joint=phase == "joint",
            batch_size=16,
            lr=1e-2,
        ),
        log_every=1,
    )
    network, recorder = build_network(config, InputSpec(1, None, NUM_CLASSES, NUM_STEPS)), ListRecorder()
    train(build_session(config, network, Splits(make_split(), None, None), recorder=recorder, folder=None))
    events = [event for event in recorder.events if event["event"] == "train" and event["phase"] == phase]
    names = ("supervised_loss", "auxiliary_loss")
    return {name: [event[name] for event in events] for name in names if name in events[0]}


@pytest.fixture(scope="module")
def golden():
    """Give the recorded losses; with AUXRNN_REWRITE_GOLDEN=1 record them first."""
    if os.environ.get("AUXRNN_REWRITE_GOLDEN") == "1":
        PATH.parent.mkdir(exist_ok=True)
        PATH.write_text(json.dumps({case: first_losses(case) for case in CASES}, indent=1) + "\n")
    return json.loads(PATH.read_text())


@pytest.mark.parametrize("case", CASES)
def test_the_first_losses_are_the_recorded_ones(golden, case):
    losses = first_losses(case)
    assert losses.keys() == golden[case].keys()
    for name, values in losses.items():
        assert len(values) == 3
        assert values == pytest.approx(golden[case][name], rel=1e-5, abs=0)


def test_nothing_else_is_recorded(golden):
    assert list(golden) == CASES
