"""Both objectives teach a memory that labels alone cannot teach through the same window.

A cue, and right after it the class, are shown in the first two steps and again at random times of the first half; then
comes noise for four times the window. Labels alone never see a class inside their window. Rebuilding the past needs
the class, and so does predicting what follows the next cue; from there on the label has only to be read off.
"""

import numpy as np
import pytest

import learning_checks
from auxrnn.build import InputSpec, build_network, build_session
from auxrnn.config import DataConfig, ModelConfig, ObjectiveConfig, RunConfig, ScheduleConfig, SegmentConfig
from auxrnn.data.sequences import Splits, from_array
from auxrnn.training.loop import train
from auxrnn.training.record import ListRecorder
from learning_checks import CHECKS, DBPEDIA_PART

NUM_CLASSES, NUM_STEPS, NUM_TELLING, WINDOW = 4, 80, 40, 10
PRETRAIN_STEPS, TRAIN_STEPS, BATCH_SIZE, NUM_EXAMPLES = 800, 300, 32, 2000
CHANCE = 100 / NUM_CLASSES


def make_split(num_examples, seed):
    """Make sequences of noise with cues in channel 0, each followed by the class in the channel of its own."""
    rng = np.random.default_rng(seed)
    x_NTD = 0.1 * rng.standard_normal((num_examples, NUM_STEPS, 1 + NUM_CLASSES)).astype(np.float32)
    label_N = rng.integers(0, NUM_CLASSES, num_examples)
    for row, label in enumerate(label_N):
        step = 0
        while step < NUM_TELLING - 1:
            x_NTD[row, step, 0] += 1
            x_NTD[row, step + 1, 1 + label] += 1
            step += int(rng.integers(3, 24))
    return from_array(x_NTD, label_N)


def make_config(objective, model="lstm"):
    """Give every objective the same number of updates in all, and two halvings of the rate while labels count."""
    pretrain_steps = 0 if objective == "none" else PRETRAIN_STEPS
    train_steps = PRETRAIN_STEPS + TRAIN_STEPS - pretrain_steps
    return RunConfig(
        data=DataConfig(data="synthetic"),
        model=ModelConfig(model=model, hidden_size=32, embedding_size=16, head_size=32),
        segments=SegmentConfig(segment_length=30, order="forward", placement="past"),
        loss=ObjectiveConfig(objective=objective, supervised_window=WINDOW, auxiliary_window=WINDOW, sampling_steps=0),
        schedule=ScheduleConfig(
            pretrain_steps=pretrain_steps,
            train_steps=train_steps,
            batch_size=BATCH_SIZE,
            lr=3e-3,
            lr_halving_epochs=train_steps / 3 * BATCH_SIZE / NUM_EXAMPLES,
        ),
        evaluate_every=10_000,
    )


def accuracy_of(objective, model="lstm"):
    """Train, and give the accuracy on new sequences in percent."""
    config, recorder = make_config(objective, model), ListRecorder()
    network = build_network(config, InputSpec(1 + NUM_CLASSES, None, NUM_CLASSES, NUM_STEPS))
    splits = Splits(make_split(NUM_EXAMPLES, 1), None, make_split(500, 2))
    train(build_session(config, network, splits, recorder=recorder, folder=None))
    return recorder.events[-1]["test_accuracy"]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["lstm", "gru"])
def test_a_truncated_network_alone_stays_at_chance(model):
    assert accuracy_of("none", model) < CHANCE + 15


@pytest.mark.slow
@pytest.mark.parametrize("model", ["lstm", "gru"])
@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
def test_an_auxiliary_objective_solves_it_with_the_same_window_and_updates(objective, model):
    assert accuracy_of(objective, model) > CHANCE + 40


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", CHECKS)
def test_every_system_learns_and_a_cut_lstm_learns_neither_needle_nor_recall(name, tmp_path):
    check = CHECKS[name]
    if check.words.startswith("dbpedia") and not DBPEDIA_PART.exists():
        pytest.skip("the part of DBpedia is not at hand")
    assert check.least < learning_checks.accuracy_of(check, 0, tmp_path / "run") < check.most + 1e-9
