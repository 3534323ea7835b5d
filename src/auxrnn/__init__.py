"""Recurrent networks for very long sequences, trained with auxiliary losses at random anchors (Trinh et al., 2018)."""

from typing import TYPE_CHECKING, Any

from auxrnn.auxiliary.predict import Predict
from auxrnn.auxiliary.reconstruct import Reconstruct
from auxrnn.auxiliary.segments import Geometry
from auxrnn.bptt import read
from auxrnn.build import build_session
from auxrnn.config import RunConfig
from auxrnn.errors import RunError, UsageError
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.decoder import Decoder
from auxrnn.models.encoder import Encoder, TokenEmbedding, VectorEmbedding
from auxrnn.models.heads import Head
from auxrnn.networks import InputSpec, build_network
from auxrnn.runs import load_run
from auxrnn.streaming import Stream
from auxrnn.structs import Draws, LossSum, RNNState, Segments, SequenceBatch
from auxrnn.training.rmsprop import RMSProp
from auxrnn.training.step import Network, Task, compute_losses

if TYPE_CHECKING:
    from auxrnn.estimator import AuxRNNClassifier

__all__ = [
    "LSTM",
    "AuxRNNClassifier",
    "Decoder",
    "Draws",
    "Encoder",
    "Geometry",
    "Head",
    "InputSpec",
    "LossSum",
    "Network",
    "Predict",
    "RMSProp",
    "RNNState",
    "Reconstruct",
    "RunConfig",
    "RunError",
    "Segments",
    "SequenceBatch",
    "Stream",
    "Task",
    "TokenEmbedding",
    "UsageError",
    "VectorEmbedding",
    "build_network",
    "build_session",
    "compute_losses",
    "load_run",
    "read",
]


def __getattr__(name: str) -> Any:
    """Import the estimator when it is first asked for: scikit-learn takes longer to import than the rest but torch."""
    if name == "AuxRNNClassifier":
        from auxrnn.estimator import AuxRNNClassifier  # noqa: PLC0415 - see above

        return AuxRNNClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
