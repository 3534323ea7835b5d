"""The only file that turns a config into networks: one function for each kind, and a table of the rest."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

from auxrnn.auxiliary.losses import TokenLoss, divide_loss, sum_cross_entropy, sum_squared_error
from auxrnn.auxiliary.objective import Objective
from auxrnn.auxiliary.predict import Predict
from auxrnn.auxiliary.reconstruct import Reconstruct
from auxrnn.auxiliary.segments import Geometry
from auxrnn.config import ModelConfig, Readout, RunConfig, Window, decided
from auxrnn.errors import UsageError
from auxrnn.models.baselines.char_cnn import CharCNN
from auxrnn.models.baselines.conv_rnn import ConvRNN
from auxrnn.models.baselines.dmca import DMCA
from auxrnn.models.baselines.transformer import Transformer
from auxrnn.models.baselines.vdcnn import VDCNN
from auxrnn.models.cells.gru import GRU
from auxrnn.models.cells.irnn import IRNN
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.cells.recurrence import Recurrence
from auxrnn.models.cells.urnn import URNN
from auxrnn.models.decoder import Decoder, FeedbackRule, feed_argmax, feed_sampled, feed_vector
from auxrnn.models.encoder import Embedding, Encoder, NoEmbedding, TokenEmbedding, VectorEmbedding
from auxrnn.models.heads import Head
from auxrnn.models.network import Baseline, Network, Trainable
from auxrnn.presets import PRESETS, ModelName
from auxrnn.structs import Draws


class InputSpec(NamedTuple):
    """What a network must fit: vectors of `input_size` features, or tokens of a vocabulary; classes; the longest T."""

    input_size: int
    vocabulary_size: int | None
    num_classes: int
    num_steps: int
    constant_loss: float = 1.0
    """Auxiliary loss per token of the best constant prediction."""


def build_network(config: RunConfig, spec: InputSpec) -> Trainable:
    """Build the networks of a run, with weights that depend on its seed alone.

    Raises `UsageError` for data that the model does not read, and for sizes that do not go together.
    """
    preset = PRESETS[config.model.model]
    if preset.reads == "tokens" and spec.vocabulary_size is None:
        raise UsageError(
            f"model is {config.model.model}, which reads characters, and this data has pixels or numbers; take a"
            " dataset of texts (dbpedia, reviews.csv), or another model: `auxrnn models` lists what each reads"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(Draws(config.seed, "start", 0).rng("weights").initial_seed())
        return Network(**build_parts(config, spec)._asdict()) if preset.is_recurrent else _build_baseline(config, spec)


def count_weights(network: Trainable) -> int:
    """Count all numbers that training changes."""
    return sum(parameter.numel() for parameter in network.parameters())


def _build_baseline(config: RunConfig, spec: InputSpec) -> Baseline:
    model = config.model
    try:
        reader = READERS[model.model](config, spec)
    except ValueError as error:
        raise UsageError(str(error).replace("num_steps", "pad_to")) from error
    has_head = "head_size" in PRESETS[model.model].options
    classifier = Head(
        reader.output_size,  # type: ignore[arg-type]  # every reader has one
        head_size=model.head_size if has_head else 0,
        output_size=spec.num_classes,
        drop_connect=model.drop_connect if has_head else 0.0,
    )
    return Baseline(reader, classifier=classifier)


def _build_transformer(config: RunConfig, spec: InputSpec) -> nn.Module:
    model, baseline = config.model, config.baseline
    return Transformer(
        spec.input_size,
        vocabulary_size=spec.vocabulary_size,
        hidden_size=model.hidden_size,
        num_layers=model.num_layers,
        num_heads=baseline.num_heads,
        filter_size=baseline.filter_size,
        dropout=baseline.dropout,
    )


def _build_dmca(config: RunConfig, spec: InputSpec) -> nn.Module:
    model, baseline = config.model, config.baseline
    return DMCA(
        spec.input_size,
        vocabulary_size=spec.vocabulary_size,
        hidden_size=model.hidden_size,
        num_layers=model.num_layers,
        num_heads=baseline.num_heads,
        dropout=baseline.dropout,
        block_length=baseline.block_length,
        block_reach=baseline.block_reach,
        compression=baseline.compression,
    )


def _build_char_cnn(config: RunConfig, spec: InputSpec) -> nn.Module:
    baseline = config.baseline
    return CharCNN(_vocabulary_of(spec), size=baseline.size, num_steps=baseline.pad_to, dropout=baseline.dropout)


def _build_conv_rnn(config: RunConfig, spec: InputSpec) -> nn.Module:
    model, baseline = config.model, config.baseline
    return ConvRNN(
        _vocabulary_of(spec),
        hidden_size=model.hidden_size,
        embedding_size=model.embedding_size,
        num_steps=baseline.pad_to,
        dropout=baseline.dropout,
    )


def _build_vdcnn(config: RunConfig, spec: InputSpec) -> nn.Module:
    baseline = config.baseline
    return VDCNN(
        _vocabulary_of(spec),
        depth=baseline.depth,
        embedding_size=config.model.embedding_size,
        num_steps=baseline.pad_to,
    )


READERS: dict[ModelName, Callable[[RunConfig, InputSpec], nn.Module]] = {
    "transformer": _build_transformer,
    "dmca": _build_dmca,
    "char_cnn": _build_char_cnn,
    "conv_rnn": _build_conv_rnn,
    "vdcnn": _build_vdcnn,
}
"""The models that read whole sequences; a new one is one line here."""

CELLS: dict[ModelName, type[LSTM] | type[GRU] | type[IRNN] | type[URNN]] = {
    "lstm": LSTM,
    "lm_lstm": LSTM,
    "sa_lstm": LSTM,
    "gru": GRU,
    "irnn": IRNN,
    "urnn": URNN,
}
"""The recurrence of every model that has one; a new one is one line here."""


def _vocabulary_of(spec: InputSpec) -> int:
    assert spec.vocabulary_size is not None, "only tokens get here"
    return spec.vocabulary_size


class NetworkParts(NamedTuple):
    """What a `Network` is made of."""

    encoder: Encoder
    classifier: Head
    objective: Objective | None
    readout: Readout


def build_parts(config: RunConfig, spec: InputSpec) -> NetworkParts:
    """Build the parts of a recurrent network, with weights drawn from torch's global generator."""
    model = config.model
    embedding = _build_embedding(model, spec)
    cell = _build_cell(model, embedding.embedding_size, model.num_layers)
    cell.initialize_gates(model.gate_init, longest=spec.num_steps)
    encoder = Encoder(embedding, cell=cell)
    readout: Readout = decided(model.readout)
    num_read = 2 if readout == "mean" else 1
    classifier = _build_head(model, num_read * cell.output_size, spec.num_classes)
    return NetworkParts(encoder, classifier, _build_objective(config, spec, encoder), readout)


def _build_cell(model: ModelConfig, input_size: int, num_layers: int) -> Recurrence:
    return CELLS[model.model](input_size, hidden_size=model.hidden_size, num_layers=num_layers)


def _build_embedding(model: ModelConfig, spec: InputSpec) -> Embedding:
    if spec.vocabulary_size is not None:
        return TokenEmbedding(spec.vocabulary_size, embedding_size=model.embedding_size or model.hidden_size)
    if model.embedding_size == 0:
        return NoEmbedding(spec.input_size)
    return VectorEmbedding(spec.input_size, embedding_size=model.embedding_size)


def _build_head(model: ModelConfig, input_size: int, output_size: int) -> Head:
    return Head(input_size, head_size=model.head_size, output_size=output_size, drop_connect=model.drop_connect)


def _build_objective(config: RunConfig, spec: InputSpec, encoder: Encoder) -> Objective | None:
    model, segments, loss = config.model, config.segments, config.loss
    if loss.objective == "none":
        return None
    segment_length: Window = decided(segments.segment_length)
    window: Window = decided(loss.auxiliary_window)
    num_tokens = sys.maxsize if segment_length == "full" else segment_length
    geometry = Geometry(segments.num_segments, num_tokens, segments.anchor_scope == "batch")
    token_loss: TokenLoss = sum_squared_error if spec.vocabulary_size is None else sum_cross_entropy
    if loss.normalize_auxiliary:
        token_loss = divide_loss(token_loss, spec.constant_loss)
    head = _build_head(model, encoder.cell.output_size, spec.vocabulary_size or spec.input_size)
    if loss.objective == "predict":
        num_upper = model.decoder_layers - 1
        upper = _build_cell(model, encoder.cell.output_size, num_upper) if num_upper else None
        return Predict(upper, head=head, token_loss=token_loss, geometry=geometry, window=window)
    return Reconstruct(
        _build_decoder(config, spec, encoder, head),
        token_loss=token_loss,
        geometry=geometry,
        placement=segments.placement,
        order=segments.order,
        window=window,
    )


def _build_decoder(config: RunConfig, spec: InputSpec, encoder: Encoder, head: Head) -> Decoder:
    model, feedback = config.model, _choose_feedback(config, spec)
    if model.tie_decoder:
        return Decoder(encoder.cell, head=head, feedback=feedback, is_tied=True)
    cell = _build_cell(model, encoder.embedding.embedding_size, model.decoder_layers)
    return Decoder(cell, head=head, feedback=feedback)


def _choose_feedback(config: RunConfig, spec: InputSpec) -> FeedbackRule:
    if spec.vocabulary_size is None:
        return feed_vector
    return feed_sampled if config.loss.feedback == "sample" else feed_argmax
