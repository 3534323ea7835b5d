"""Every recurrence that a model has, small, for the tests that hold for all of them."""

from auxrnn.build import CELLS, InputSpec, build_cell
from auxrnn.config import unflatten
from auxrnn.presets import PRETRAINED_MODELS

MODELS = [model for model in CELLS if model not in PRETRAINED_MODELS]
"""Models with a recurrence of their own, the LSTM among them."""


def make_cell(model, input_size, *, hidden_size, num_layers, num_steps=9):
    """Build the recurrence of a model, with few of whatever it has beside units."""
    sizes = {"hidden_size": hidden_size, "num_memories": 2, "memory_order": 4}
    config = unflatten({"data": "", "model": model} | sizes)
    return build_cell(config, InputSpec(input_size, None, 2, num_steps), input_size, num_layers=num_layers)
