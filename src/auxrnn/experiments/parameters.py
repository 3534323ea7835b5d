"""Numbers of weights of every system at its published settings: the table in docs/models.md."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from auxrnn.build import InputSpec, build_network, count_weights
from auxrnn.config import unflatten
from auxrnn.presets import PRESETS, ModelName, name_system

MNIST = InputSpec(1, None, 10, 784)
CIFAR10 = InputSpec(3, None, 10, 1024)
DBPEDIA = InputSpec(0, 71, 14, 1014)


class Variant(NamedTuple):
    """A system with the settings of one publication."""

    model: ModelName
    values: Mapping[str, Any] = MappingProxyType({})

    @property
    def title(self) -> str:
        """What it is called."""
        title = name_system(self.model, self.values.get("objective", "none"))
        size = [str(self.values[name]) for name in ("size", "depth") if name in self.values]
        layers = f"{self.values['num_layers']} x {self.values['hidden_size']}" if "num_layers" in self.values else ""
        return " ".join([title, *size, layers]).strip()

    @property
    def flags(self) -> str:
        """The words after `auxrnn train DATA` that ask for it."""
        words = [f"--{name.replace('_', '-')} {value}" for name, value in self.values.items()]
        return " ".join([f"--model {self.model}", *words])


_UNRESTRICTED = {"num_layers": 2, "hidden_size": 512, "num_segments": 20, "segment_length": 15}

VARIANTS = (
    Variant("lstm"),
    Variant("lstm", {"objective": "reconstruct"}),
    Variant("lstm", {"objective": "predict"}),
    Variant("lstm", {"objective": "reconstruct"} | _UNRESTRICTED | {"auxiliary_window": 15}),
    Variant("gru"),
    Variant("gru", {"objective": "reconstruct"}),
    Variant("gru", {"objective": "predict"}),
    Variant("irnn"),
    Variant("urnn"),
    Variant("transformer"),
    Variant("dmca"),
    Variant("lm_lstm"),
    Variant("sa_lstm"),
    Variant("char_cnn", {"size": "small"}),
    Variant("char_cnn", {"size": "large"}),
    Variant("conv_rnn"),
    Variant("vdcnn", {"depth": 9}),
    Variant("vdcnn", {"depth": 17}),
    Variant("vdcnn", {"depth": 29}),
)
"""Every row of the paper's tables that is a network, and the sizes that other papers published."""


def count(variant: Variant, spec: InputSpec) -> int | None:
    """Count the weights of a system for some data, without making them; None where it does not read such steps."""
    if spec.vocabulary_size is None and PRESETS[variant.model].reads == "tokens":
        return None
    config = unflatten({"data": "", "model": variant.model} | dict(variant.values))
    with torch.device("meta"):
        return count_weights(build_network(config, spec))


def make_table() -> str:
    """Return the counts of all systems as a Markdown table."""
    lines = ["| system | `auxrnn train DATA ...` | MNIST | CIFAR10 | DBpedia |", "|---|---|---:|---:|---:|"]
    for variant in VARIANTS:
        counts = [count(variant, spec) for spec in (MNIST, CIFAR10, DBPEDIA)]
        cells = ["-" if number is None else f"{number:,}" for number in counts]
        lines.append(" | ".join([f"| {variant.title}", f"`{variant.flags}`", *cells]) + " |")
    return "\n".join(lines) + "\n"
