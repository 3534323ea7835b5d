"""Print the weights of every system at its published settings: the table in docs/models.md."""

from typing import Any, NamedTuple

from auxrnn.cli.machine import SPECS, count
from auxrnn.presets import ModelName, name_system


class Variant(NamedTuple):
    """A system with the settings of one publication."""

    model: ModelName
    values: dict[str, Any]

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


UNRESTRICTED = {
    "objective": "reconstruct",
    "num_layers": 2,
    "hidden_size": 512,
    "num_segments": 20,
    "segment_length": 15,
    "auxiliary_window": 15,
}
VARIANTS = (
    Variant("lstm", {"objective": "none"}),
    Variant("lstm", {"objective": "reconstruct"}),
    Variant("lstm", {"objective": "predict"}),
    Variant("lstm", UNRESTRICTED),
    Variant("gru", {}),
    Variant("gru", {"objective": "reconstruct"}),
    Variant("gru", {"objective": "predict"}),
    Variant("legendre", {}),
    Variant("legendre", {"objective": "reconstruct"}),
    Variant("legendre", {"objective": "predict"}),
    Variant("irnn", {}),
    Variant("urnn", {}),
    Variant("transformer", {}),
    Variant("dmca", {}),
    Variant("lm_lstm", {}),
    Variant("sa_lstm", {}),
    Variant("char_cnn", {"size": "small"}),
    Variant("char_cnn", {"size": "large"}),
    Variant("conv_rnn", {}),
    Variant("vdcnn", {"depth": 9}),
    Variant("vdcnn", {"depth": 17}),
    Variant("vdcnn", {"depth": 29}),
)
"""Every row of the paper's tables that is a network, and the sizes that other papers published."""


def make_table() -> str:
    """Return the counts of all systems as a Markdown table."""
    lines = ["| system | `auxrnn train DATA ...` | MNIST | CIFAR10 | DBpedia |", "|---|---|---:|---:|---:|"]
    specs = (SPECS["mnist"], (3, None, 10, 1024), SPECS["dbpedia"])
    for variant in VARIANTS:
        counts = [count(variant.model, spec, **variant.values) for spec in specs]
        cells = ["-" if number is None else f"{number:,}" for number in counts]
        lines.append(" | ".join([f"| {variant.title}", f"`{variant.flags}`", *cells]) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(make_table(), end="")
