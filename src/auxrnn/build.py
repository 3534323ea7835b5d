"""The only file that turns a config into objects."""

import math
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from auxrnn.auxiliary.losses import TokenLoss, sum_cross_entropy, sum_squared_error
from auxrnn.auxiliary.predict import Predict
from auxrnn.auxiliary.reconstruct import Reconstruct
from auxrnn.auxiliary.segments import Geometry
from auxrnn.config import DESK_PRETRAIN_STEPS, DESK_TRAIN_STEPS, ModelConfig, RunConfig
from auxrnn.data.batches import Batches
from auxrnn.data.sequences import Split, Splits
from auxrnn.data.strata import draw_stratified
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.decoder import Decoder, Feedback, feed_argmax, feed_sampled, feed_vector
from auxrnn.models.encoder import Embedding, Encoder, NoEmbedding, TokenEmbedding, VectorEmbedding
from auxrnn.models.heads import Head
from auxrnn.structs import Draws
from auxrnn.training.loop import Session, Settings
from auxrnn.training.phases import Phase, plan_phases
from auxrnn.training.record import Recorder
from auxrnn.training.step import Network

NUM_TRAIN_EVALUATED = 1000


class InputSpec(NamedTuple):
    """What a network must fit: vectors of `input_size` features, or tokens of a vocabulary; classes; the longest T."""

    input_size: int
    vocabulary_size: int | None
    num_classes: int
    num_steps: int


def build_network(config: RunConfig, spec: InputSpec) -> Network:
    """Build the networks of a run, with weights that depend on its seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(Draws(config.seed, "start", 0).rng("weights").initial_seed())
        model = config.model
        embedding = _build_embedding(model, spec)
        cell = LSTM(embedding.embedding_size, hidden_size=model.hidden_size, num_layers=model.num_layers)
        if model.gate_init == "chrono":
            cell.start_chrono(spec.num_steps)
        encoder = Encoder(embedding, cell=cell)
        classifier = _build_head(model, spec.num_classes)
        return Network(encoder, classifier=classifier, objective=_build_objective(config, spec, embedding))


def build_session(
    config: RunConfig, network: Network, splits: Splits, *, recorder: Recorder, folder: Path | None
) -> Session:
    """Put together one training of a network on a training split; the test split is only ever measured on.

    Examples without a label count in pretraining, and are left out afterwards.
    """
    batch_size, seed = config.schedule.batch_size, config.seed
    labeled = splits.train.labeled()
    pretrain_batches = Batches(splits.train, batch_size=batch_size, seed=seed)
    batches = Batches(labeled, batch_size=batch_size, seed=seed)
    return Session(
        network=network,
        batches=batches,
        pretrain_batches=pretrain_batches,
        splits=splits._replace(train=_draw_some(labeled, seed)),
        phases=build_phases(config, batches.steps_per_epoch, pretrain_steps_per_epoch=pretrain_batches.steps_per_epoch),
        settings=_build_settings(config),
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
        lr=schedule.lr,
        halving_steps=schedule.lr_halving_epochs * steps_per_epoch,
    )


def _draw_some(train: Split, seed: int) -> Split:
    """Draw the training examples that are evaluated beside the test split, always the same."""
    rng = Draws(seed, "data", 0).rng("take_examples")
    num_examples = min(NUM_TRAIN_EVALUATED, train.num_examples)
    return train.select(draw_stratified(train.label_N, num_examples=num_examples, rng=rng))


def _num_steps(steps: int | None, epochs: float | None, steps_per_epoch: int, default: int) -> int:
    if steps is not None:
        return steps
    return default if epochs is None else math.ceil(epochs * steps_per_epoch)


def _build_embedding(model: ModelConfig, spec: InputSpec) -> Embedding:
    if spec.vocabulary_size is not None:
        return TokenEmbedding(spec.vocabulary_size, embedding_size=model.embedding_size or model.hidden_size)
    if model.embedding_size == 0:
        return NoEmbedding(spec.input_size)
    return VectorEmbedding(spec.input_size, embedding_size=model.embedding_size)


def _build_head(model: ModelConfig, output_size: int) -> Head:
    return Head(model.hidden_size, head_size=model.head_size, output_size=output_size, drop_connect=model.drop_connect)


def _build_objective(config: RunConfig, spec: InputSpec, embedding: Embedding) -> nn.Module | None:
    model, segments, loss = config.model, config.segments, config.loss
    geometry = Geometry(segments.num_segments, segments.segment_length, segments.anchor_scope == "batch")
    token_loss: TokenLoss = sum_squared_error if spec.vocabulary_size is None else sum_cross_entropy
    if loss.objective == "none":
        return None
    head = _build_head(model, spec.vocabulary_size or spec.input_size)
    if loss.objective == "predict":
        num_upper = model.decoder_layers - 1
        upper = LSTM(model.hidden_size, hidden_size=model.hidden_size, num_layers=num_upper) if num_upper else None
        return Predict(upper, head=head, token_loss=token_loss, geometry=geometry, window=loss.auxiliary_window)
    cell = LSTM(embedding.embedding_size, hidden_size=model.hidden_size, num_layers=model.decoder_layers)
    return Reconstruct(
        Decoder(cell, head=head, feedback=_choose_feedback(config, spec)),
        token_loss=token_loss,
        geometry=geometry,
        placement=segments.placement,
        order=segments.order,
        window=loss.auxiliary_window,
    )


def _choose_feedback(config: RunConfig, spec: InputSpec) -> Feedback:
    if spec.vocabulary_size is None:
        return feed_vector
    return feed_sampled if config.loss.feedback == "sample" else feed_argmax


def _build_settings(config: RunConfig) -> Settings:
    return Settings(
        seed=config.seed,
        supervised_window=config.loss.supervised_window,
        auxiliary_weight=config.loss.auxiliary_weight,
        sampling_steps=config.loss.sampling_steps,
        clip_norm=config.schedule.clip_norm,
        evaluate_every=config.evaluate_every,
        checkpoint_every=config.checkpoint_every,
        log_every=config.log_every,
    )
