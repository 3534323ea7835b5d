"""Recurrent networks for very long sequences, trained with auxiliary losses at random anchors (Trinh et al., 2018).

Names are imported when they are first used, so that `import auxrnn` does not load torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auxrnn.auxiliary import Geometry as Geometry
    from auxrnn.auxiliary import Predict as Predict
    from auxrnn.auxiliary import Reconstruct as Reconstruct
    from auxrnn.bptt import final_states as final_states
    from auxrnn.build import InputSpec as InputSpec
    from auxrnn.build import build_network as build_network
    from auxrnn.build import build_session as build_session
    from auxrnn.config import RunConfig as RunConfig
    from auxrnn.errors import RunError as RunError
    from auxrnn.errors import UsageError as UsageError
    from auxrnn.estimator import AuxRNNClassifier as AuxRNNClassifier
    from auxrnn.method import PLSTM as PLSTM
    from auxrnn.method import RLSTM as RLSTM
    from auxrnn.models.cells.lstm import LSTM as LSTM
    from auxrnn.models.decoder import Decoder as Decoder
    from auxrnn.models.encoder import Encoder as Encoder
    from auxrnn.models.encoder import Head as Head
    from auxrnn.models.encoder import TokenEmbedding as TokenEmbedding
    from auxrnn.models.encoder import VectorEmbedding as VectorEmbedding
    from auxrnn.models.network import LossTerms as LossTerms
    from auxrnn.models.network import Network as Network
    from auxrnn.saved import load_run as load_run
    from auxrnn.streaming import Stream as Stream
    from auxrnn.structs import Draws as Draws
    from auxrnn.structs import LossSum as LossSum
    from auxrnn.structs import RNNState as RNNState
    from auxrnn.structs import Segments as Segments
    from auxrnn.structs import SequenceBatch as SequenceBatch
    from auxrnn.training.optimizers import RMSProp as RMSProp
    from auxrnn.training.optimizers import true_token_probability as true_token_probability

_MODULES = {
    "auxiliary": ["Geometry", "Predict", "Reconstruct"],
    "bptt": ["final_states"],
    "build": ["InputSpec", "build_network", "build_session"],
    "config": ["RunConfig"],
    "errors": ["RunError", "UsageError"],
    "estimator": ["AuxRNNClassifier"],
    "method": ["PLSTM", "RLSTM"],
    "models.cells.lstm": ["LSTM"],
    "models.decoder": ["Decoder"],
    "models.encoder": ["Encoder", "Head", "TokenEmbedding", "VectorEmbedding"],
    "models.network": ["LossTerms", "Network"],
    "saved": ["load_run"],
    "streaming": ["Stream"],
    "structs": ["Draws", "LossSum", "RNNState", "Segments", "SequenceBatch"],
    "training.optimizers": ["RMSProp", "true_token_probability"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - the names stand in `_MODULES`


def __getattr__(name: str) -> Any:
    """Return an exported name, importing the module that defines it."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
