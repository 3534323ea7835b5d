"""The only file that turns a config into networks, and a network and data into a training, ready to start."""

import inspect
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from auxrnn.auxiliary import Geometry, Objective, Predict, Reconstruct, TokenLoss
from auxrnn.config import DESK_PRETRAIN_STEPS, DESK_TRAIN_STEPS, ModelConfig, RunConfig, Window, decided
from auxrnn.data.sequences import Batches, Split, Splits
from auxrnn.data.splits import draw_stratified
from auxrnn.errors import RunError, UsageError
from auxrnn.files import describe_bytes
from auxrnn.models.baselines.char_cnn import CharCNN
from auxrnn.models.baselines.conv_rnn import ConvRNN
from auxrnn.models.baselines.dmca import DMCA
from auxrnn.models.baselines.transformer import Transformer
from auxrnn.models.baselines.vdcnn import VDCNN
from auxrnn.models.cells.gru import GRU
from auxrnn.models.cells.irnn import IRNN
from auxrnn.models.cells.legendre import Legendre
from auxrnn.models.cells.lru import LRU
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.cells.recurrence import Recurrence
from auxrnn.models.cells.ur_lstm import URLSTM
from auxrnn.models.cells.urnn import URNN
from auxrnn.models.decoder import Decoder, feed_argmax, feed_sampled, feed_vector, feed_vector_and_mask
from auxrnn.models.encoder import Embedding, Encoder, Head, NoEmbedding, TokenEmbedding, VectorEmbedding
from auxrnn.models.network import Baseline, Network, Trainable
from auxrnn.presets import PRESETS, ModelName
from auxrnn.structs import Draws
from auxrnn.training.cost import find_free_memory
from auxrnn.training.loop import Session
from auxrnn.training.optimizers import Phase
from auxrnn.training.processes import ALONE, Processes
from auxrnn.training.record import Recorder

USUAL_SIZE, USUAL_LAYERS = 2048, 32


class InputSpec(NamedTuple):
    """What a network must fit: vectors of `input_size` features, or tokens of a vocabulary; classes; the longest T."""

    input_size: int
    vocabulary_size: int | None
    num_classes: int
    num_steps: int
    constant_loss: float = 1.0
    """Auxiliary loss per token of the best constant prediction."""
    has_mask: bool = False
    """Whether the second half of the features are masks, which are read and never predicted."""

    @property
    def num_outputs(self) -> int:
        """What a prediction of a token has: features or logits."""
        return self.vocabulary_size or self.input_size // (1 + self.has_mask)


def build_network(config: RunConfig, spec: InputSpec) -> Trainable:
    """Build the networks of a run, with weights that depend on its seed alone.

    Raises `UsageError` for data that the model does not read, and for sizes that do not go together.
    """
    preset = PRESETS[config.model.model]
    if preset.reads == "tokens" and spec.vocabulary_size is None:
        cure = "take a dataset of texts (dbpedia, reviews.csv), or another model: `auxrnn models` lists what each reads"
        reason = "which reads characters, and this data has pixels or numbers"
        raise UsageError(f"model is {config.model.model}, {reason}; {cure}")
    _check_memory(config, spec)
    return _build(config, spec)


def _build(config: RunConfig, spec: InputSpec) -> Trainable:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(Draws(config.seed, "start", 0).rng("weights").initial_seed())
        is_recurrent = PRESETS[config.model.model].is_recurrent
        return Network(**build_parts(config, spec)) if is_recurrent else _build_baseline(config, spec)


def _check_memory(config: RunConfig, spec: InputSpec) -> None:
    """Refuse a network whose weights the memory cannot hold; on the meta device they take none."""
    model, baseline = config.model, config.baseline
    sizes = (model.hidden_size, model.embedding_size, model.head_size, baseline.filter_size, baseline.pad_to)
    if max(*sizes, spec.input_size) <= USUAL_SIZE and max(model.num_layers, model.decoder_layers) <= USUAL_LAYERS:
        # Seldom too large, and the meta device takes seconds to begin with.
        return
    with torch.device("meta"):
        needed = sum(value.numel() * value.element_size() for value in _build(config, spec).state_dict().values())
    free = find_free_memory(torch.device("cpu"))
    if needed > free:
        what = (
            f"the weights of this network need {describe_bytes(needed)} of memory, and {describe_bytes(free)} are free"
        )
        raise RunError(f"{what}; choose a smaller --hidden-size, --embedding-size, --head-size or --num-layers")


def count_weights(network: Trainable) -> int:
    """Count all numbers that training changes."""
    return sum(parameter.numel() for parameter in network.parameters())


def _build_baseline(config: RunConfig, spec: InputSpec) -> Baseline:
    model, kind = config.model, READERS[config.model.model]
    values = vars(model) | vars(config.baseline) | spec._asdict() | {"num_steps": config.baseline.pad_to}
    try:
        reader = kind(**{name: values[name] for name in inspect.signature(kind).parameters})
    except ValueError as error:
        raise UsageError(str(error).replace("num_steps", "pad_to")) from error
    if "head_size" not in PRESETS[model.model].options:
        model = replace(model, head_size=0, drop_connect=0.0)
    classifier = _build_head(model, reader.output_size, spec.num_classes)  # type: ignore[arg-type]  # all have one
    return Baseline(reader, classifier=classifier)


READERS: dict[ModelName, type[nn.Module]] = {
    "transformer": Transformer, "dmca": DMCA, "char_cnn": CharCNN, "conv_rnn": ConvRNN, "vdcnn": VDCNN
}  # fmt: skip
"""The models that read whole sequences. Their arguments have the names of config fields."""
CELLS: dict[ModelName, type[Recurrence]] = {
    "lstm": LSTM, "lm_lstm": LSTM, "sa_lstm": LSTM, "gru": GRU, "ur_lstm": URLSTM, "lru": LRU, "legendre": Legendre,
    "irnn": IRNN, "urnn": URNN,
}  # fmt: skip
"""The recurrence of every model that has one. Their arguments have the names of config fields, too."""


def build_parts(config: RunConfig, spec: InputSpec) -> dict[str, Any]:
    """Build the arguments of a `Network`, with weights drawn from torch's global generator."""
    model = config.model
    embedding = _build_embedding(model, spec)
    cell = build_cell(config, spec, embedding.embedding_size, num_layers=model.num_layers)
    cell.initialize_gates(model.gate_init, longest=spec.num_steps)
    encoder, readout = Encoder(embedding, cell=cell), decided(model.readout)
    classifier = _build_head(model, (2 if readout == "mean" else 1) * cell.output_size, spec.num_classes)
    objective = _build_objective(config, spec, encoder)
    return {"encoder": encoder, "classifier": classifier, "objective": objective, "readout": readout}


def build_cell(config: RunConfig, spec: InputSpec, input_size: int, *, num_layers: int) -> Recurrence:
    """Build the recurrence of a model."""
    kind = CELLS[config.model.model]
    values = vars(config.model) | vars(config.baseline)
    values |= {"input_size": input_size, "num_layers": num_layers, "num_steps": spec.num_steps}
    return kind(**{name: values[name] for name in inspect.signature(kind).parameters})


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
    token_loss = TokenLoss(spec.vocabulary_size is not None, spec.constant_loss if loss.normalize_auxiliary else 1.0)
    head = _build_head(model, encoder.cell.output_size, spec.num_outputs)
    if loss.objective == "predict":
        num_upper = model.decoder_layers - 1
        upper = build_cell(config, spec, encoder.cell.output_size, num_layers=num_upper) if num_upper else None
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
    model, cell, feedback = config.model, encoder.cell, feed_vector_and_mask if spec.has_mask else feed_vector
    if spec.vocabulary_size is not None:
        feedback = feed_sampled if config.loss.feedback == "sample" else feed_argmax
    if not model.tie_decoder:
        cell = build_cell(config, spec, encoder.embedding.embedding_size, num_layers=model.decoder_layers)
    return Decoder(cell, head=head, feedback=feedback, is_tied=model.tie_decoder)


def build_session(
    config: RunConfig,
    network: Trainable,
    splits: Splits,
    *,
    recorder: Recorder,
    folder: Path | None,
    processes: Processes = ALONE,
) -> Session:
    """Return one training of a network on a training split; the test split is used for evaluation only.

    Examples without a label count in pretraining, and are left out afterwards.
    """
    if not processes.is_alone:
        _check_divisible(config)
    batch_size, seed, validation = decided(config.schedule.batch_size), config.seed, splits.validation
    labeled = splits.train.labeled()
    weighted = labeled.weighted(is_balanced=config.schedule.class_weight == "balanced")
    pretrain_batches = Batches(splits.train, batch_size=batch_size, seed=seed, turn=processes.turn)
    batches = Batches(weighted, batch_size=batch_size, seed=seed, turn=processes.turn)
    if validation is not None and not config.evaluate_all:
        validation = _draw_some(validation, seed)
    return Session(
        network=network,
        batches=batches,
        pretrain_batches=pretrain_batches,
        splits=splits._replace(train=_draw_some(labeled, seed), validation=validation),
        phases=build_phases(config, batches.steps_per_epoch, pretrain_steps_per_epoch=pretrain_batches.steps_per_epoch),
        config=config,
        recorder=recorder,
        folder=folder,
        held_out=splits.validation,
        processes=processes,
    )


def _check_divisible(config: RunConfig) -> None:
    """Refuse what the rows of a batch cannot compute apart from each other."""
    model, loss = config.model.model, config.loss
    if model == "vdcnn":
        raise UsageError("vdcnn normalizes over whole batches, which several processes divide; train it with one")
    is_apart = loss.objective == "none" and loss.supervised_window != "exact"
    if model == "lru" and config.baseline.dropout and not is_apart:
        what = "dropout of an lru with an auxiliary loss or an exact window is for one process"
        raise UsageError(f"{what}; give --dropout 0, or train with one")


def build_phases(config: RunConfig, steps_per_epoch: int, *, pretrain_steps_per_epoch: int) -> list[Phase]:
    """Turn steps or epochs into phases; without a length, one that fits a desk."""
    schedule, has_objective = config.schedule, config.loss.objective != "none"
    default = DESK_PRETRAIN_STEPS if has_objective else 0
    pretrain_steps = _num_steps(schedule.pretrain_steps, schedule.pretrain_epochs, pretrain_steps_per_epoch, default)
    train_steps = _num_steps(schedule.train_steps, schedule.train_epochs, steps_per_epoch, DESK_TRAIN_STEPS)
    is_joint, warmup_steps = schedule.joint and has_objective, schedule.warmup_steps
    lr_schedule = schedule.lr_schedule or ("inverse-sqrt" if warmup_steps else "halving")
    rates = (schedule.lr, schedule.lr_halving_epochs * steps_per_epoch, warmup_steps, lr_schedule)
    phases = [
        Phase("pretrain", pretrain_steps, False, True, *rates),
        Phase("joint" if is_joint else "supervised", train_steps, True, is_joint, *rates),
    ]
    return [phase for phase in phases if phase.num_steps > 0]


def _draw_some(split: Split, seed: int) -> Split:
    """Draw the examples of a split that are evaluated while training: at most 1,000, always the same."""
    rng = Draws(seed, "data", 0).rng("take_examples")
    return split.select(draw_stratified(split.label_N, num_examples=min(1000, split.num_examples), rng=rng))


def _num_steps(steps: int | None, epochs: float | None, steps_per_epoch: int, default: int) -> int:
    if steps is not None:
        return steps
    return default if epochs is None else math.ceil(epochs * steps_per_epoch)
