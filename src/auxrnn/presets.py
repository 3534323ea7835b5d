"""Every system that the paper compares, with its published settings, and the recipes that `auxrnn train` starts from.

`Preset.settings` are what differs from the defaults of `config`. A run's config.json holds the values themselves, so a
later change of a recipe changes no run that exists.
"""

from typing import Any, Literal, NamedTuple

ModelName = Literal[
    "lstm", "gru", "ur_lstm", "lru", "legendre", "irnn", "urnn", "transformer", "dmca", "lm_lstm", "sa_lstm",
    "char_cnn", "conv_rnn", "vdcnn",
]  # fmt: skip

_MAIN = ("hidden_size", "num_layers", "embedding_size", "head_size", "drop_connect", "supervised_window", "readout")
AUXILIARY = (
    "objective", "auxiliary_window", "auxiliary_weight", "normalize_auxiliary", "sampling_steps", "feedback",
    "num_segments", "segment_length", "placement", "order", "anchor_scope", "decoder_layers", "tie_decoder",
    "pretrain_steps", "pretrain_epochs", "joint",
)  # fmt: skip
_ATTENTION = ("hidden_size", "num_layers", "num_heads", "dropout", "head_size", "drop_connect")

_PLAIN = {"objective": "none", "tie_decoder": False}
"""No auxiliary loss, unless one is asked for."""
_WHOLE = {"segment_length": "full", "supervised_window": "full", "auxiliary_window": "full", "decoder_layers": 1}
_PRETRAINED = _WHOLE | {"num_segments": 1, "joint": False, "sampling_steps": 0}
_LINEAR = {"embedding_size": 0, "head_size": 0, "drop_connect": 0.0}
"""Pixels as they are, and a linear layer on the last state."""
_NOAM = {
    "optimizer": "adam", "lr": 2 * (128 * 8000) ** -0.5, "warmup_steps": 8000, "label_smoothing": 0.1, "clip_norm": 0.0
}  # fmt: skip
"""tensor2tensor's: 2 / sqrt(width) * min(step / warmup ** 1.5, 1 / sqrt(step))."""
_SGD = {"optimizer": "sgd", "lr": 0.01, "clip_norm": 0.0}


class Preset(NamedTuple):
    """One system."""

    title: str
    summary: str
    paper: str
    options: tuple[str, ...]
    """The fields of the model's own groups of `config` that mean something to it."""
    settings: dict[str, Any]
    reads: Literal["both", "tokens"] = "both"
    """Which steps it takes: vectors and tokens, or tokens alone."""

    @property
    def is_recurrent(self) -> bool:
        """Whether it reads step by step, so that gradients can be cut and steps be streamed."""
        return "supervised_window" in self.options


# fmt: off
PRESETS: dict[ModelName, Preset] = {
    "lstm": Preset(
        "LSTM", "the main network; with --objective it is the r-LSTM or the p-LSTM", "Hochreiter and Schmidhuber 1997",
        (*_MAIN, *AUXILIARY, "gate_init"), _PLAIN,
    ),
    "gru": Preset(
        "GRU", "gated recurrent units; carries --objective as well", "Cho et al. 2014",
        (*_MAIN, *AUXILIARY, "gate_init"), _PLAIN | {"gate_init": "zero"},
    ),
    "ur_lstm": Preset(
        "UR-LSTM", "an LSTM with refined gates that start evenly spread; carries --objective as well",
        "Gu et al. 2020", (*_MAIN, *AUXILIARY), _PLAIN,
    ),
    "lru": Preset(
        "LRU", "complex linear recurrences, nonlinear only between layers; carries --objective as well",
        "Orvieto et al. 2023", (*_MAIN, *AUXILIARY, "r_min", "r_max", "dropout"),
        _PLAIN | _LINEAR | {"num_layers": 4, "supervised_window": "full", "dropout": 0.0, "readout": "mean"}
        | {"optimizer": "adam", "lr": 4e-3, "lr_schedule": "cosine", "warmup_steps": 1000},
    ),
    "legendre": Preset(
        "Legendre", "a memory in closed form, frozen; encoder and readout are learned; carries --objective as well",
        "Voelker et al. 2019", (*_MAIN, *AUXILIARY, "num_memories", "memory_order", "memory_length"),
        _PLAIN | {"embedding_size": 0},
    ),
    "irnn": Preset(
        "iRNN", "rectified linear units that start from the identity", "Le, Jaitly and Hinton 2015",
        (*_MAIN, *AUXILIARY), _PLAIN | _LINEAR | {"hidden_size": 100, "supervised_window": "full", "lr": 1e-4},
    ),
    "urnn": Preset(
        "uRNN", "complex units with a unitary recurrence", "Arjovsky, Shah and Bengio 2016",
        (*_MAIN, *AUXILIARY), _PLAIN | _LINEAR | {"hidden_size": 512, "supervised_window": "full"},
    ),
    "transformer": Preset(
        "Transformer", "self-attention over all steps, tensor2tensor's transformer_tiny", "Vaswani et al. 2017",
        (*_ATTENTION, "filter_size"), _PLAIN | _NOAM | {"hidden_size": 128, "num_layers": 2, "dropout": 0.1},
    ),
    "dmca": Preset(
        "T-DMCA", "local and memory-compressed attention in turn, with convolutions", "Liu et al. 2018",
        (*_ATTENTION, "block_length", "block_reach", "compression"),
        _PLAIN | _NOAM | {"hidden_size": 128, "num_layers": 5, "dropout": 0.1},
    ),
    "lm_lstm": Preset(
        "LM-LSTM", "pretrained to predict whole sequences: a language model", "Dai and Le 2015",
        (*_MAIN, *AUXILIARY, "gate_init"), _PRETRAINED | {"objective": "predict"},
    ),
    "sa_lstm": Preset(
        "SA-LSTM", "pretrained to rebuild whole sequences: a sequence autoencoder", "Dai and Le 2015",
        (*_MAIN, *AUXILIARY, "gate_init"),
        _PRETRAINED | {"objective": "reconstruct", "placement": "immediate", "order": "forward", "tie_decoder": True},
    ),
    "char_cnn": Preset(
        "char-CNN", "six convolutions over characters; --size small or large", "Zhang, Zhao and LeCun 2015",
        ("size", "dropout", "pad_to"), _PLAIN | _SGD | {"dropout": 0.5, "pad_to": 1014}, reads="tokens",
    ),
    "conv_rnn": Preset(
        "CNN+RNN", "three convolutions, then a bidirectional LSTM", "Xiao and Cho 2016",
        ("hidden_size", "embedding_size", "dropout", "pad_to"),
        _PLAIN | {"hidden_size": 128, "embedding_size": 8, "dropout": 0.5, "pad_to": 1014}
        | {"optimizer": "adadelta", "lr": 1.0, "clip_norm": 5.0}, reads="tokens",
    ),
    "vdcnn": Preset(
        "VDCNN", "very deep convolutions; --depth 9, 17 or 29", "Conneau et al. 2016",
        ("depth", "embedding_size", "pad_to"), _PLAIN | _SGD | {"embedding_size": 16, "pad_to": 1024}, reads="tokens",
    ),
}
# fmt: on

PRETRAINED_MODELS: dict[ModelName, str] = {"lm_lstm": "predict", "sa_lstm": "reconstruct"}
"""Those that are nothing but an LSTM and one objective."""
MODEL_OPTIONS = frozenset(option for preset in PRESETS.values() for option in preset.options)
"""All options that mean something to some models and nothing to others."""


def find_settings(model: object) -> dict[str, Any]:
    """Return the published settings of a model, its name among them; nothing for what is no model."""
    return next(({"model": name} | preset.settings for name, preset in PRESETS.items() if name == model), {})


def name_system(model: ModelName, objective: str) -> str:
    """Return what people call a model with an auxiliary loss: r-LSTM, p-GRU, Transformer."""
    prefixes = {} if model in PRETRAINED_MODELS else {"reconstruct": "r-", "predict": "p-"}
    return prefixes.get(objective, "") + PRESETS[model].title


RecipeName = Literal["fast", "paper"]
DEFAULT_RECIPE: RecipeName = "fast"

LEARNING: dict[str, Any] = {
    "optimizer": "adam", "lr": 8e-3, "lr_schedule": "cosine", "warmup_steps": 100, "clip_norm": 1.0
}  # fmt: skip
"""Of every model; published rates are made for trainings of days."""
SLOWER: dict[ModelName, float] = {
    "gru": 4e-3, "legendre": 4e-3, "irnn": 1e-4, "urnn": 1e-3, "transformer": 1e-3, "dmca": 1e-3,
    "char_cnn": 3e-4, "conv_rnn": 1e-3, "vdcnn": 1e-3,
}  # fmt: skip
"""Learning rates of models that do not take the usual one."""

METHOD: dict[str, Any] = {
    "batch_size": 64, "gate_init": "chrono", "drop_connect": 0.2, "placement": "immediate",
    "normalize_auxiliary": True, "auxiliary_weight": 3.0,
}  # fmt: skip
"""Of the r-LSTM and the p-LSTM, beside how they learn: chosen on validation data (docs/notebook.md)."""
_OPEN = (
    "batch_size", "validation_fraction", "readout", "objective", "supervised_window", "auxiliary_window",
    "segment_length", "sampling_steps",
)  # fmt: skip
AUTOMATIC: dict[str, Any] = dict.fromkeys(_OPEN, "auto") | {"evaluate_all": False}
"""What depends on the data and on the time there is."""


def find_recipe(recipe: RecipeName, model: ModelName) -> dict[str, Any]:
    """Return the values that a recipe has for a model; the dataclass defaults of `config` are the paper's."""
    published = {} if model == "lstm" else find_settings(model)
    if recipe == "paper":
        return published
    learning = LEARNING | {"lr": SLOWER.get(model, LEARNING["lr"]), "gate_init": METHOD["gate_init"]}
    values = METHOD | AUTOMATIC | published | learning
    meaningless = MODEL_OPTIONS - set(PRESETS[model].options)
    return {name: value for name, value in values.items() if name not in meaningless or name in published}
