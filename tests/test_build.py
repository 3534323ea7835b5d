"""From a config to objects: sizes, seeds and phases."""

from dataclasses import replace

import pytest
import torch

from auxrnn.auxiliary import TokenLoss
from auxrnn.build import InputSpec, build_network, build_phases
from auxrnn.config import (
    DESK_PRETRAIN_STEPS,
    DESK_TRAIN_STEPS,
    DataConfig,
    ModelConfig,
    ObjectiveConfig,
    RunConfig,
    ScheduleConfig,
)
from auxrnn.models.decoder import feed_argmax, feed_sampled, feed_vector
from auxrnn.structs import SequenceBatch
from auxrnn.training.evaluate import evaluate_auxiliary

MNIST = InputSpec(1, None, 10, 784)
TINY = ModelConfig(hidden_size=6, embedding_size=4, head_size=5)


def make_config(objective="reconstruct", *, model=TINY, seed=0, **schedule):
    return RunConfig(
        data=DataConfig(data="mnist"),
        model=model,
        loss=ObjectiveConfig(objective=objective),
        schedule=ScheduleConfig(**schedule),
        seed=seed,
    )


def num_parameters(config, spec=MNIST):
    return sum(parameter.numel() for parameter in build_network(config, spec).parameters())


def test_the_papers_r_lstm_has_046_million_parameters():
    hidden, embedding, head, classes, features = 128, 128, 256, 10, 1
    lstm_layer = 4 * hidden * (hidden + hidden) + 4 * hidden
    expected = (
        (features * embedding + embedding)
        + 3 * lstm_layer  # one of the main LSTM, two of the decoder
        + (hidden * head + head)
        + (head * classes + classes)
        + (hidden * head + head)
        + (head * features + features)
    )
    counted = num_parameters(RunConfig(data=DataConfig(data="mnist")))
    assert counted == expected == 463_883
    assert round(counted / 1e6, 2) == 0.46


def test_objectives_differ_by_the_layers_they_own():
    lstm_layer, decoder_head = 4 * 6 * (6 + 6) + 4 * 6, (6 * 5 + 5) + (5 * 1 + 1)
    decoder_bottom = 4 * 6 * (4 + 6) + 4 * 6
    plain = num_parameters(make_config("none"))
    assert num_parameters(make_config("predict")) == plain + lstm_layer + decoder_head
    assert num_parameters(make_config("reconstruct")) == plain + decoder_bottom + lstm_layer + decoder_head


@pytest.mark.parametrize("model", [TINY, ModelConfig(hidden_size=6, head_size=5, gate_init="chrono")])
def test_weights_depend_on_the_seed_alone(model):
    first = build_network(make_config(model=model), MNIST).state_dict()
    torch.manual_seed(99)
    again = build_network(make_config(model=model, batch_size=3, lr=0.5), MNIST).state_dict()
    other = build_network(make_config(model=model, seed=1), MNIST).state_dict()
    assert all(torch.equal(again[name], value) for name, value in first.items())
    assert not any(torch.equal(other[name], value) for name, value in first.items() if "weight" in name)


def test_the_main_network_starts_the_same_whatever_the_objective():
    plain = build_network(make_config("none"), MNIST).state_dict()
    for objective in ("reconstruct", "predict"):
        weights = build_network(make_config(objective), MNIST).state_dict()
        assert all(torch.equal(weights[name], value) for name, value in plain.items())


def test_building_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    build_network(make_config(), MNIST)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_input_decides_what_a_token_loss_compares():
    vectors = build_network(make_config(), MNIST).objective
    assert (vectors.token_loss, vectors.decoder.feedback) == (TokenLoss(is_token=False), feed_vector)
    text = InputSpec(1, 7, 3, 50)
    characters = build_network(make_config(), text)
    assert (characters.objective.token_loss, characters.objective.decoder.feedback) == (
        TokenLoss(is_token=True),
        feed_sampled,
    )
    assert characters.encoder.embedding.weight_VE.shape == (7, 4)
    assert characters.objective.decoder.head.output.out_features == 7
    greedy = RunConfig(data=DataConfig(data="mnist"), model=TINY, loss=ObjectiveConfig(feedback="argmax"))
    assert build_network(greedy, text).objective.decoder.feedback is feed_argmax


def phases_of(objective="reconstruct", **schedule):
    phases = build_phases(make_config(objective, **schedule), 7, pretrain_steps_per_epoch=7)
    return [(phase.name, phase.num_steps, phase.is_supervised, phase.is_auxiliary) for phase in phases]


def test_phases_without_a_length_fit_a_desk():
    assert phases_of() == [("pretrain", DESK_PRETRAIN_STEPS, False, True), ("joint", DESK_TRAIN_STEPS, True, True)]


def test_without_an_objective_there_is_one_supervised_phase():
    assert phases_of("none") == [("supervised", DESK_TRAIN_STEPS, True, False)]


def test_steps_are_taken_as_given_and_epochs_times_the_batches_of_one():
    assert phases_of(pretrain_steps=3, train_steps=5) == [("pretrain", 3, False, True), ("joint", 5, True, True)]
    assert phases_of(pretrain_epochs=2.0, train_epochs=3.0) == [
        ("pretrain", 14, False, True),
        ("joint", 21, True, True),
    ]
    assert phases_of(pretrain_epochs=0.5, train_epochs=0.1) == [("pretrain", 4, False, True), ("joint", 1, True, True)]


def test_an_epoch_of_pretraining_counts_unlabeled_examples_too():
    config = make_config("reconstruct", pretrain_epochs=2.0, train_epochs=2.0)
    phases = build_phases(config, 7, pretrain_steps_per_epoch=70)
    assert [phase.num_steps for phase in phases] == [140, 14]


def test_without_joint_training_the_second_phase_is_supervised_only():
    assert phases_of(pretrain_steps=3, train_steps=5, joint=False)[1] == ("supervised", 5, True, False)


def test_a_phase_of_no_updates_is_left_out():
    assert [phase[0] for phase in phases_of(pretrain_steps=3, train_steps=0)] == ["pretrain"]
    assert [phase[0] for phase in phases_of(pretrain_epochs=0.0, train_steps=5)] == ["joint"]


def test_learning_rates_of_phases_follow_the_paper():
    config = RunConfig(
        data=DataConfig(data="mnist"), schedule=ScheduleConfig(pretrain_epochs=100.0, train_epochs=1000.0)
    )
    pretrain, joint = build_phases(config, 10, pretrain_steps_per_epoch=10)
    assert [pretrain.lr_at(step) for step in (0, 499, 500, 999)] == [1e-3, 1e-3, 5e-4, 5e-4]
    assert [joint.lr_at(step) for step in (0, 2999, 3000, 6000, 9999)] == [1e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4]


@pytest.mark.parametrize("spec", [InputSpec(2, None, 3, 20, 0.25), InputSpec(1, 7, 3, 20, 0.25)])
def test_a_normalized_loss_is_the_plain_one_in_units_of_a_constant_prediction(spec):
    is_token = spec.vocabulary_size is not None
    x_BT = torch.randint(7, (4, 20)) if is_token else torch.randn(4, 20, 2)
    batch = SequenceBatch(x_BT, torch.zeros(4, dtype=torch.long))
    plain, normalized = (
        evaluate_auxiliary(build_network(replace(config, loss=loss), spec), [batch], seed=0)
        for config in [make_config()]
        for loss in (config.loss, replace(config.loss, normalize_auxiliary=True))
    )
    assert normalized == pytest.approx(plain / 0.25, rel=1e-5)
