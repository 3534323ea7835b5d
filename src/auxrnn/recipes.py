"""Named sets of config values: what `auxrnn train` starts from before a config file or a flag changes it.

A run's config.json holds the values themselves, so a later change of a recipe changes no run that exists.
"""

from typing import Any, Literal

from auxrnn.presets import MODEL_OPTIONS, PRESETS, ModelName, find_settings

RecipeName = Literal["fast", "paper"]
DEFAULT_RECIPE: RecipeName = "fast"

LEARNING: dict[str, Any] = {
    "optimizer": "adam",
    "lr": 8e-3,
    "lr_schedule": "cosine",
    "warmup_steps": 100,
    "clip_norm": 1.0,
}
"""Of every model; published rates are made for trainings of days."""
SLOWER: dict[ModelName, float] = {
    "gru": 4e-3,
    "irnn": 1e-4,
    "urnn": 1e-3,
    "transformer": 1e-3,
    "dmca": 1e-3,
    "char_cnn": 3e-4,
    "conv_rnn": 1e-3,
    "vdcnn": 1e-3,
}
"""Learning rates of models that do not take the usual one."""
GATED: tuple[ModelName, ...] = ("lstm", "gru", "lm_lstm", "sa_lstm")

METHOD: dict[str, Any] = {
    "batch_size": 64,
    "gate_init": "chrono",
    "drop_connect": 0.2,
    "placement": "immediate",
    "normalize_auxiliary": True,
    "auxiliary_weight": 3.0,
}
"""Of the r-LSTM and the p-LSTM, beside how they learn: chosen on validation data (docs/notebook.md)."""
AUTOMATIC: dict[str, Any] = {
    "batch_size": "auto",
    "validation_fraction": "auto",
    "readout": "auto",
    "objective": "auto",
    "supervised_window": "auto",
    "auxiliary_window": "auto",
    "segment_length": "auto",
    "sampling_steps": "auto",
    "evaluate_all": False,
}
"""What depends on the data and on the time there is."""


def find_recipe(recipe: RecipeName, model: ModelName) -> dict[str, Any]:
    """Return the values that a recipe has for a model; the dataclass defaults of `config` are the paper's."""
    published = {} if model == "lstm" else find_settings(model)
    if recipe == "paper":
        return published
    rates = LEARNING | ({"lr": SLOWER[model]} if model in SLOWER else {})
    gates = {"gate_init": METHOD["gate_init"]} if model in GATED else {}
    values = METHOD | AUTOMATIC | published | rates | gates
    meaningless = MODEL_OPTIONS - set(PRESETS[model].options)
    return {name: value for name, value in values.items() if name not in meaningless or name in published}
