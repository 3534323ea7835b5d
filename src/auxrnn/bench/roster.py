"""Who takes part: the library, and what people would use instead, with the packages that each needs."""

import importlib.util
from collections.abc import Callable
from typing import NamedTuple

from auxrnn.bench.optional_peers import KerasLSTM, OnnxLSTM, ScanLSTM
from auxrnn.bench.peers import CellLoop, EmbeddedLSTM, Ours, Problem, RawLSTM, Reader
from auxrnn.bench.results import OURS


class Contender(NamedTuple):
    """A name for tables, and how to build what it names where its packages are installed."""

    name: str
    packages: tuple[str, ...]
    build: Callable[[Problem], Reader]

    @property
    def is_installed(self) -> bool:
        """Tell whether all packages can be found; none is imported for that."""
        return all(importlib.util.find_spec(package) is not None for package in self.packages)


BASELINE = "nn.Linear + nn.LSTM"
PAIR: tuple[Contender, ...] = (Contender(OURS, (), Ours), Contender(BASELINE, (), EmbeddedLSTM))
TRAINERS: tuple[Contender, ...] = (
    *PAIR,
    Contender("nn.LSTM on raw pixels", (), RawLSTM),
    Contender("loop over nn.LSTMCell", (), CellLoop),
    Contender("JAX lax.scan", ("jax",), ScanLSTM),
    Contender("Keras LSTM (JAX)", ("keras", "jax"), KerasLSTM),
)
"""All of these can also `differentiate`."""
READERS: tuple[Contender, ...] = (*TRAINERS, Contender("onnxruntime", ("onnx", "onnxruntime"), OnnxLSTM))
