"""One run as frozen dataclasses, the only schema and the only home of defaults; and the same as JSON, TOML and flags.

Each field is a flag of `auxrnn train` and a key of a TOML file, under the same name (`supervised_window`,
`--supervised-window`, `supervised-window = 28`). The groups are for reading; names are unique across them.
"""

import functools
import json
import math
import re
import tomllib
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar

from auxrnn.errors import UsageError, nearest
from auxrnn.presets import MODEL_OPTIONS, PRESETS, PRETRAINED_MODELS, ModelName, RecipeName, find_settings

DESK_PRETRAIN_STEPS, DESK_TRAIN_STEPS = 500, 1000
LARGEST_LR = 1e38
MOST_CHARACTERS = 60_000
# Beyond reason: what is larger was mistyped.
LARGEST_SIDE, LARGEST_SIZE, MOST_LAYERS, MOST_THREADS = 10_000, 2**16, 100, 1024
LARGEST_MEMORY = 1024
MOST_SEGMENTS, MOST_ROWS, MOST = 10_000, 10**6, 10**9
MOST_SAMPLES_A_SECOND = 10**6
DEFAULT_MODEL: ModelName = "lstm"

Auto = Literal["auto"]
"""Chosen from the data and the time there is when a run is made; its config.json has the value."""
Window = int | Literal["full"]
SupervisedWindow = Window | Literal["exact"]
Objective = Literal["none", "reconstruct", "predict"]
Placement = Literal["immediate", "past", "past_future"]
Order = Literal["reversed", "forward"]
GateInit = Literal["forget-one", "zero", "chrono", "uniform"]
Readout = Literal["last", "mean"]
LRSchedule = Literal["cosine", "halving", "inverse-sqrt"]
OptimizerName = Literal["rmsprop", "adam", "sgd", "adadelta"]
Weights = Literal["final", "best"]
"""Of a finished run: those of its last update, or the best on its validation split."""
CheckpointName = Literal["latest"]
SplitName = Literal["test", "train", "validation"]
ScaleName = Literal["smoke", "desk", "full", "paper"]
"""How large the paper's experiments are reproduced."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What is read, and how much of it."""

    data: str = field(kw_only=False)
    """Dataset by name (digits, mnist, ...: see `auxrnn data list`), or the path of your own files."""
    data_dir: Path | None = None
    """Folder that holds the dataset's files, or receives them (default: $AUXRNN_DATA_DIR, else a cache)."""
    test_data: Path | None = None
    """Sequences to test on, where DATA has none of its own (default: --test-fraction of DATA)."""
    unlabeled: Path | None = None
    """More sequences of the same kind, without labels, for pretraining."""
    image_size: int | None = None
    """Side in pixels that images are downsampled to; your own images of any size become squares of it."""
    enlarge_to: int | None = None
    """Add random crops of the training images until there are this many (stanford_dogs: 150000 is about what the paper
    trained on)."""
    length: int | None = None
    """Steps of a synthetic task (adding, recall, needle; default: 200)."""
    permutation: str = "auxrnn-1"
    """Name of pmnist's fixed permutation; the same name is the same permutation everywhere."""
    text_column: str | None = None
    """Column of a table that holds the text, by name or number; title+body joins two (default: one
    with a usual name, such as text or review)."""
    label_column: str | None = None
    """Column of a table that holds the label, by name or number (default: one with a usual name, such as label)."""
    series_column: str | None = None
    """Column of a table of numbers that says which series a row belongs to, where each row is a step (default: one with
    a usual name, such as id or series)."""
    time_column: str | None = None
    """Column by which the steps of a series are sorted: numbers, or times such as 2024-05-31T12:00:00 (default: one
    with a usual name, such as time)."""
    value_columns: str | None = None
    """Columns of a table of numbers that are read, joined by +: the steps of a row, or the channels of a step (default:
    all that hold numbers)."""
    channels_first: bool = False
    """Arrays are [N, D, T]: their steps come last."""
    tokens: Literal["characters", "bytes", "integers"] = "characters"
    """What a step of a text is: a character, or a byte of its UTF-8; integers takes each whole number of arrays [N, T]
    for a symbol."""
    sample_rate: int | None = None
    """Samples a second that audio is resampled to (default: that of the files, which must then all have the same)."""
    label_pattern: str | None = None
    """Where the label stands in the names of audio files: '{label}_*' or '{speaker}-{label}-?' (default: each
    sub-folder is a class)."""
    alphabet_size: int = 500
    """Most characters that an alphabet made from the training texts may have; rarer ones count as unknown."""
    max_length: int | None = None
    """Steps of a text or series that are read, from its start (default: all; dbpedia 1014)."""
    steps_per_input: int = 1
    """Neighboring steps of a series or an image that become one wider input: k times fewer inputs, which cost less.
    Windows and segments then count inputs."""
    missing: Literal["mask", "refuse"] = "mask"
    """What happens to values that are missing in a series (NaN, an empty cell, ? in a .ts file). mask: they take the
    mean of their channel, and one more channel for each says what was there; refuse: stop at the first."""
    read_backward: bool = False
    """Read texts from their end, as the char-CNN's authors do (Zhang et al., 2015)."""
    train_examples: int | None = None
    """Train on this many examples only, drawn with the same share of each class."""
    label_fraction: float = 1.0
    """Part of the training examples that keep their label; the others only help in pretraining."""
    labels_per_class: int | None = None
    """Training examples of each class that keep their label, the same for every model; the others only help in
    pretraining."""
    test_fraction: float = 0.2
    """Part of DATA that is drawn to test on, where it has no test split; the same whatever the seed."""
    validation_fraction: float | Auto = 0.0
    """Part of the training split held out as validation split, on which the best weights are chosen. auto: the data's
    own validation split, else a tenth (a fifth of small sets)."""

    def __post_init__(self) -> None:
        _check_bounds(self, 1, LARGEST_SIDE, "image_size", "steps_per_input")
        _check_bounds(self, 1, MOST, "enlarge_to", "max_length", "train_examples", "labels_per_class")
        _check_bounds(self, 1, MOST_SAMPLES_A_SECOND, "sample_rate")
        if self.label_pattern is not None and self.label_pattern.count("{label}") != 1:
            found = f"label_pattern is {self.label_pattern!r}"
            raise ValueError(f"{found}; it must have {{label}} in it once, as in '{{label}}_*'")
        _check(self, lambda length: length <= MOST, f"at most {MOST}", "length")
        _check_bounds(self, 1, MOST_CHARACTERS, "alphabet_size")
        _check_part(self, "test_fraction", "validation_fraction")
        _check(self, lambda part: 0 < part <= 1, "above 0 and at most 1", "label_fraction")
        if self.labels_per_class is not None and self.label_fraction != 1:
            raise ValueError("label_fraction and labels_per_class are both given; give one of them")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Which network, and its sizes."""

    model: ModelName = DEFAULT_MODEL
    """Network to train, which also sets the defaults of the other options: see `auxrnn models`."""
    hidden_size: int = 128
    """Units of the main network and of the decoder; width of an attention model."""
    num_layers: int = 1
    """Layers of the main network."""
    embedding_size: int = 128
    """Width of the input embedding; 0 feeds vectors as they are, and gives tokens the width of the network."""
    decoder_layers: int = 2
    """Layers of the auxiliary network: for reconstruct those of its decoder, for predict also those of the main one."""
    tie_decoder: bool = False
    """Let reconstruct's decoder be the main network itself: the same layers, the same weights (sa_lstm)."""
    head_size: int = 256
    """Hidden units of the two-layer heads; 0 for linear ones."""
    drop_connect: float = 0.5
    """Probability that a weight of a head's second layer is dropped in a training step."""
    gate_init: GateInit = "forget-one"
    """Initial gate biases of the main network: forget-one (1 for the forget gate, 0 elsewhere), zero, chrono (memories
    of all lengths up to the longest sequence), or uniform (forget gates spread evenly between 0 and 1)."""
    r_min: float = 0.9
    """Smallest radius that the units of an lru start with: what they remember fades by it in each step."""
    r_max: float = 0.999
    """Largest radius that the units of an lru start with; nearer to 1 remembers for longer."""
    num_memories: int = 4
    """Memories of each layer, at most as many as an input has features (legendre)."""
    memory_order: int = 256
    """Numbers that each memory holds (legendre)."""
    memory_length: Window = "full"
    """Steps that a memory spans (legendre). full: those of the longest training sequence."""
    readout: Readout | Auto = "last"
    """What the classifier sees: the last state, or mean: the last state beside the mean of the outputs of all steps.
    auto: compared on the validation split if there is a budget in minutes, else last."""

    def __post_init__(self) -> None:
        _check_bounds(self, 1, LARGEST_SIZE, "hidden_size")
        _check_bounds(self, 1, MOST_LAYERS, "num_layers", "decoder_layers")
        _check_bounds(self, 0, LARGEST_SIZE, "embedding_size", "head_size")
        _check_bounds(self, 1, LARGEST_MEMORY, "num_memories", "memory_order")
        _check_bounds(self, 1, MOST, "memory_length")
        _check_part(self, "drop_connect", "r_min")
        _check(self, lambda radius: self.r_min < radius < 1, "above r_min and below 1", "r_max")
        preset = PRESETS[self.model]
        if self.embedding_size == 0 and preset.reads == "tokens" and "embedding_size" in preset.options:
            raise ValueError(f"embedding_size is 0; for {self.model} it must be at least 1")


@dataclass(frozen=True, kw_only=True)
class BaselineConfig:
    """Sizes that only the models that read whole sequences have, and dropout."""

    num_heads: int = 4
    """Heads of attention (transformer, dmca)."""
    filter_size: int = 512
    """Hidden units of the feed-forward layers (transformer)."""
    dropout: float = 0.1
    """Probability that an activation is dropped in a training step (lru, transformer, dmca, char_cnn, conv_rnn)."""
    block_length: int = 256
    """Steps that attend together in local attention (dmca)."""
    block_reach: int = 128
    """Steps before and after its own block that a step attends to (dmca)."""
    compression: int = 3
    """Steps that become one in memory-compressed attention (dmca)."""
    size: Literal["small", "large"] = "small"
    """Which of the two published networks (char_cnn)."""
    depth: Literal[9, 17, 29] = 29
    """Convolutional layers (vdcnn)."""
    pad_to: int = 1014
    """Characters that are read of every text; shorter ones are padded, longer ones cut (char_cnn, conv_rnn, vdcnn)."""

    def __post_init__(self) -> None:
        _check_bounds(self, 1, LARGEST_SIZE, "num_heads", "filter_size", "block_length", "compression", "pad_to")
        _check_bounds(self, 0, LARGEST_SIZE, "block_reach")
        _check_part(self, "dropout")


@dataclass(frozen=True, kw_only=True)
class SegmentConfig:
    """How many segments carry an auxiliary loss, how long each is and where it lies."""

    num_segments: int = 1
    """Segments of each sequence that are reconstructed or predicted in one update."""
    segment_length: Window | Auto = 600
    """Steps of each segment, fewer where the sequence is shorter. full: all of it. auto: half of it, at most 75."""
    placement: Placement = "past_future"
    """Where a segment to reconstruct lies: right before a step drawn at random (the anchor), anywhere before it, or
    also across it."""
    order: Order = "reversed"
    """Order of reconstruction: last token first, or as read."""
    anchor_scope: Literal["example", "batch"] = "example"
    """Draw these random steps for each sequence, or once for the whole batch."""

    def __post_init__(self) -> None:
        _check_bounds(self, 1, MOST_SEGMENTS, "num_segments")
        _check_bounds(self, 1, MOST, "segment_length")


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """The auxiliary loss, and how far back each loss may reach."""

    objective: Objective | Auto = "reconstruct"
    """Auxiliary loss, which teaches the network to remember and needs no labels: reconstruct what was read (r-LSTM),
    predict what comes (p-LSTM), or none, as with any other --model unless it is asked for. auto: reconstruct, and with
    a budget in minutes only if it beats none on the validation split."""
    supervised_window: SupervisedWindow | Auto = 300
    """How many of a sequence's last steps labels train the network through (truncated back-propagation): fewer take
    less memory and time; full: all of them; exact: all of them in constant memory (an lru of one layer). auto: full up
    to 1,000 steps or where the time allows it, else 300."""
    auxiliary_window: Window | Auto = 300
    """Steps that the gradient of the auxiliary loss goes back in the main network: from where a reconstruction starts;
    for predict it is cut every so many steps. full cuts nothing. auto: as --segment-length."""
    auxiliary_weight: float = 1.0
    """Weight of the auxiliary loss in joint training."""
    normalize_auxiliary: bool = False
    """Divide the auxiliary loss by that of a constant prediction (the variance of the data, or the entropy of its
    characters): 1 then means that nothing was learned, whatever the data."""
    sampling_steps: int | Auto = 100_000
    """Updates in which the auxiliary network gets less and less of the true steps as input, and more of what it
    predicted itself (scheduled sampling); 0 always feeds the true ones. auto: the whole run."""
    feedback: Literal["sample", "argmax"] = "sample"
    """How a predicted character is chosen when it is fed back (characters only)."""

    def __post_init__(self) -> None:
        allowed = f"0, a number of steps up to {MOST}, or full"
        _check(self, lambda window: 0 <= window <= MOST, allowed, "supervised_window", "auxiliary_window")
        if self.objective == "predict" and self.auxiliary_window == 0:
            raise ValueError("auxiliary_window is 0; with objective predict it must be at least 1, or full")
        _check_bounds(self, 0, 10 * MOST, "sampling_steps", "auxiliary_weight")


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """How long each phase lasts and how it learns."""

    pretrain_steps: int | None = None
    """Updates on the auxiliary loss alone (default: planned from the minutes; if another length is given, half as many
    as with labels, at most 500; 0 without an objective)."""
    pretrain_epochs: float | None = None
    """The same in passes over the training data (with --config paper 100)."""
    train_steps: int | None = None
    """Updates with labels (default: planned from the minutes; 1000 if another length is given); 0 pretrains only."""
    train_epochs: float | None = None
    """The same in passes over the training data (with --config paper 1000)."""
    joint: bool = True
    """Keep the auxiliary loss while training with labels."""
    batch_size: int | Auto = 128
    """Sequences in one update. auto: 64, and fewer for small sets."""
    optimizer: OptimizerName = "rmsprop"
    """How gradients become updates: rmsprop, adam, sgd (with momentum) or adadelta."""
    lr: float = 1e-3
    """Learning rate at the start of each phase."""
    lr_schedule: LRSchedule | None = None
    """How the learning rate changes in each phase: cosine (to zero), halving (in pretraining once, halfway), or
    inverse-sqrt (with the root of the updates). With --recipe paper: inverse-sqrt with a warm-up, else
    halving."""
    warmup_steps: int = 0
    """Updates in which the learning rate rises to --lr (cosine: at most a tenth of the phase)."""
    lr_halving_epochs: float = 300.0
    """With halving: passes over the data after which training with labels halves its rate, again and again."""
    clip_norm: float = 1.0
    """Largest norm of the whole gradient; 0 clips nothing."""
    label_smoothing: float = 0.0
    """Part of the target probability that is spread evenly over all classes."""
    class_weight: Literal["none", "balanced"] = "none"
    """How much an example counts in the classification loss: all alike, or balanced, in inverse proportion to the
    labeled training examples of its class."""

    def __post_init__(self) -> None:
        for phase in ("pretrain", "train"):
            if getattr(self, f"{phase}_steps") is not None and getattr(self, f"{phase}_epochs") is not None:
                raise ValueError(f"{phase}_steps and {phase}_epochs are both given; give one of them")
        _check_bounds(self, 0, MOST, "pretrain_steps", "pretrain_epochs", "train_steps", "train_epochs", "warmup_steps")
        _check_bounds(self, 0, math.inf, "clip_norm")
        if self.lr_schedule == "inverse-sqrt" and not self.warmup_steps:
            raise ValueError("warmup_steps is 0; with lr_schedule inverse-sqrt it must be at least 1")
        _check_part(self, "label_smoothing")
        _check_bounds(self, 1, MOST_ROWS, "batch_size")
        _check(self, lambda value: value > 0, "above 0", "lr", "lr_halving_epochs")
        _check(self, lambda lr: lr <= LARGEST_LR, f"at most {LARGEST_LR}, what a weight can still hold", "lr")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run, whole."""

    data: DataConfig = field(kw_only=False)
    model: ModelConfig = field(default_factory=ModelConfig)
    baseline: BaselineConfig = field(default_factory=BaselineConfig)
    segments: SegmentConfig = field(default_factory=SegmentConfig)
    loss: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    init_from: Path | None = None
    """Start from the networks of this run (a new head where the classes differ)."""
    seed: int = 0
    """Number that all random draws depend on: the same seed gives the same run."""
    threads: int | None = None
    """Processor threads, settled at the start and used again by resume (default: all); other models than the LSTM may
    round differently with another number."""
    device: str | None = None
    """Where to compute: cpu, cuda, cuda:1, ... (default: cuda where there is one, else cpu)."""
    evaluate_every: int | None = None
    """Updates between evaluations (default: ten a phase)."""
    checkpoint_every: int = 500
    """Updates between checkpoints; at most this much work is lost to a power cut."""
    log_every: int = 50
    """Updates between lines of metrics.jsonl."""
    evaluate_all: bool = True
    """Evaluate also the test split and part of the training split while training, for curves; otherwise the test split
    is evaluated once, at the end, and a fixed part of the validation split before that."""
    evaluate_test: bool = True
    """Evaluate the test split at the end; otherwise it is left to `auxrnn evaluate`, so that settings can be compared
    on the validation split before anybody looks."""
    patience: int | None = None
    """Evaluations without a better accuracy on the validation split after which training with labels ends early."""

    def __post_init__(self) -> None:
        _check_bounds(self, 1, MOST_THREADS, "threads")
        _check_bounds(self, 1, MOST, "evaluate_every", "checkpoint_every", "log_every", "patience")
        objective, model, schedule = self.loss.objective, self.model.model, self.schedule
        pretrain = (schedule.pretrain_steps, schedule.pretrain_epochs)
        train = (schedule.train_steps, schedule.train_epochs)
        if objective != "none" and "objective" not in PRESETS[model].options:
            reason = "reads whole sequences and carries no auxiliary loss, so it must be none"
            raise ValueError(f"objective is {objective}; {model} {reason}")
        if objective != PRETRAINED_MODELS.get(model, objective):
            reason = f"is {PRETRAINED_MODELS[model]} by definition, so leave it out or take lstm"
            raise ValueError(f"objective is {objective}; {model} {reason}")
        if self.model.tie_decoder and objective != "reconstruct":
            raise ValueError("tie_decoder is for reconstruct, which alone has a decoder; leave it out")
        if self.loss.supervised_window == "exact" and (model, self.model.num_layers) != ("lru", 1):
            cure = "give --model lru --num-layers 1, or another window"
            raise ValueError(f"supervised_window is exact, which a linear recurrence of one layer has; {cure}")
        if objective == "none" and any(pretrain):
            cure = "choose reconstruct or predict, or leave pretraining out"
            raise ValueError(f"pretraining needs an auxiliary loss, and objective is none; {cure}")
        has_default_length = train == (None, None) or (objective != "none" and pretrain == (None, None))
        if not has_default_length and not any(pretrain + train):
            raise ValueError("both phases have zero updates; raise train_steps")


Value = TypeVar("Value")


def decided(value: Value | Auto) -> Value:
    """Return a value that is no longer open: `planning` has chosen what was left to auto."""
    assert value != "auto", "a config must be planned before it is used"
    return value


def _check(config: object, is_allowed: Callable[[Any], bool], allowed: str, *names: str) -> None:
    """Refuse a number that is not allowed; None, full and auto are no numbers."""
    for name in names:
        value = getattr(config, name)
        if value is not None and not isinstance(value, str) and not is_allowed(value):
            raise ValueError(f"{name} is {value}; it must be {allowed}")


def _check_bounds(config: object, smallest: int, largest: float, *names: str) -> None:
    _check(config, lambda value: value >= smallest, f"at least {smallest}", *names)
    _check(config, lambda value: value <= largest, f"at most {largest}", *names)


def _check_part(config: object, *names: str) -> None:
    _check(config, lambda value: 0 <= value < 1, "from 0 to below 1", *names)


@functools.cache
def _own_fields(kind: type[Any]) -> dict[str, Any]:
    return {entry.name: entry.type for entry in fields(kind) if not is_dataclass(entry.type)}


GROUPS: dict[str, Any] = {entry.name: entry.type for entry in fields(RunConfig) if is_dataclass(entry.type)}
FIELDS = {name: hint for kind in (*GROUPS.values(), RunConfig) for name, hint in _own_fields(kind).items()}
"""The fields of all groups under their own names, each with its type."""
OPEN_FIELDS = tuple(name for name, hint in FIELDS.items() if Auto in typing.get_args(hint))
"""Those that may be left to auto."""


def flatten(config: RunConfig) -> dict[str, Any]:
    """Return all fields of all groups under their own names, as plain values for JSON."""
    values: dict[str, Any] = {}
    for name, value in vars(config).items():
        values |= vars(value) if name in GROUPS else {name: value}
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


def unflatten(values: dict[str, Any]) -> RunConfig:
    """Build a run's config from plain values by name; names left out keep their defaults, those of the model if named.

    Raises `UsageError` for a name that no field has (the nearest is offered) and for a value of the wrong kind.
    """
    converted = _convert_all(find_settings(values.get("model")) | values, FIELDS)

    def choose(kind: Any) -> dict[str, Any]:
        return {name: converted[name] for name in _own_fields(kind) if name in converted}

    try:
        return RunConfig(**{name: kind(**choose(kind)) for name, kind in GROUPS.items()} | choose(RunConfig))
    except ValueError as error:
        raise UsageError(str(error)) from error


def change(config: RunConfig, **values: Any) -> RunConfig:
    """Return a config with other values, by field name."""
    return unflatten(flatten(config) | values)


def to_flags(config: RunConfig) -> list[str]:
    """Return the words after `auxrnn train` that ask for this config: its data, and what differs from the paper's."""
    return [config.data.data, "--recipe", "paper", *_list_changes(config)]


def to_data_flags(config: RunConfig) -> list[str]:
    """Return the words after `auxrnn data check` that ask for the data of this config."""
    return [config.data.data, *_list_changes(RunConfig(data=config.data))]


def _list_changes(config: RunConfig) -> list[str]:
    """List its model, and what differs from the defaults of that model, as flags."""
    named = {} if config.model.model == DEFAULT_MODEL else {"model": config.model.model}
    defaults = flatten(unflatten({"data": config.data.data} | named))
    words = ["--model", config.model.model] if named else []
    for name, value in flatten(config).items():
        flag = name.replace("_", "-")
        if value != defaults[name]:
            words += [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    return words


def read_file(path: Path, *, data: str | None = None) -> dict[str, Any]:
    """Read a config file into values by field name, `recipe` among them.

    `path` is a TOML file, names a shipped one (`paper`), or is a run folder or its config.json; of that, the other
    files of its own data are left out for other `data`.
    """
    path = path / "config.json" if (path / "config.json").is_file() else path
    raw = _load_run(path, data) if path.suffix == ".json" else _load_toml(path)
    for name, value in raw.items():
        if isinstance(value, dict):
            raise UsageError(f"{path}: [{name}] is a table; write all keys without tables")
    try:
        values = _convert_all(raw, {"recipe": RecipeName} | FIELDS)
        unflatten({"data": ""} | {name: value for name, value in values.items() if name != "recipe"})
    except UsageError as error:
        sentence = name_fields(str(error), like="'{}'")
        raise UsageError(f"{path}: {sentence}") from error
    return values


def _load_run(path: Path, data: str | None) -> dict[str, Any]:
    """Return the settings of a run without what belongs to its machine, and without what its model does not have."""
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); give the config.json of a run") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a JSON file ({error}); give the config.json of a run") from error
    if not isinstance(raw, dict) or raw.get("model") not in PRESETS:
        raise UsageError(f"{path} is not the config.json of a run; give one that `auxrnn train` wrote")
    left_out = {"format", "threads", "device", *MODEL_OPTIONS} - set(PRESETS[raw["model"]].options)
    if not Path(str(raw.get("data_dir"))).is_dir():
        left_out.add("data_dir")
    if data not in (None, raw.get("data")):
        left_out |= {"data", "data_dir", "test_data", "unlabeled"}
    # Its own values stand for all defaults; the fast recipe would fill in what this run left out.
    return {"recipe": "paper"} | {name: value for name, value in raw.items() if name not in left_out}


def _load_toml(path: Path) -> dict[str, Any]:
    configs = resources.files("auxrnn") / "configs"
    shipped = configs / f"{path}.toml"
    if not path.exists() and not shipped.is_file():
        names = sorted(entry.name.removesuffix(".toml") for entry in configs.iterdir())
        raise UsageError(f"no config file {path}; give a TOML file or one of the shipped configs: {', '.join(names)}")
    try:
        return tomllib.loads((path if path.exists() else shipped).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); give a TOML file") from error
    except (ValueError, RecursionError) as error:
        reason = error if isinstance(error, tomllib.TOMLDecodeError) else "it is not text"
        hint = "write lines such as: supervised-window = 28"
        raise UsageError(f"{path} is not a TOML file ({reason}); {hint}") from error


def name_fields(sentence: str, *, like: str) -> str:
    """Name the fields in a sentence as the user wrote them: `--batch-size` if `like` is `--{}`, not `batch_size`."""
    # A name of one word may also be an English one, as in "DATA is missing; ...".
    single = "|".join(name for name in (*FIELDS, "minutes") if "_" not in name and name != "data")
    several = "|".join(name for name in FIELDS if "_" in name)
    field_name = rf"(?<!\S)(?:({several})(?![^\s;])|({single})(?= is ))"
    return re.sub(field_name, lambda match: like.format(match[0].replace("_", "-")), sentence)


def _convert_all(values: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return values under the names of their fields, with or without dashes, as the fields have them."""
    converted = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in known:
            raise UsageError(f"unknown key {key!r}{nearest(key, [field.replace('_', '-') for field in known])}")
        converted[name] = _convert(name, value, known[name])
    return converted


def _convert(name: str, value: Any, hint: Any) -> Any:
    """Accept a plain value for a field, or say what the field takes."""
    for option in _options(hint):
        if typing.get_origin(option) is Literal and value in typing.get_args(option):
            return value
        if option is Path and isinstance(value, str) and "\0" not in value:
            return Path(value)
        if option is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_LR:
            return float(value)
        if isinstance(option, type) and isinstance(value, option) and (option is bool) == isinstance(value, bool):
            return value
    raise UsageError(f"{name} is {value!r}; it takes {describe_type(hint)}")


def describe_type(hint: Any) -> str:
    """Return what a field of this type takes in words: a whole number, 'full' or 'auto'."""
    words = {int: "a whole number", float: "a number", bool: "true or false"}
    allowed: list[str] = []
    for option in _options(hint):
        if typing.get_origin(option) is Literal:
            allowed += map(repr, typing.get_args(option))
        elif option is not types.NoneType:
            allowed.append(words.get(option, "a text"))
    return " or ".join([", ".join(allowed[:-1]), allowed[-1]] if len(allowed) > 1 else allowed)


def _options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
