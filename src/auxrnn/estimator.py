"""The method as a scikit-learn estimator: arrays in, classes out, in memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from auxrnn.build import InputSpec, build_network, build_session
from auxrnn.config import Auto, GateInit, Objective, Order, Placement, Readout, Window, unflatten
from auxrnn.data.formats import measure_constant_loss
from auxrnn.data.sequences import Splits, from_array, in_order
from auxrnn.planning import LARGEST_BATCH, choose_sizes
from auxrnn.presets import LEARNING, METHOD
from auxrnn.training.evaluate import predict_probabilities
from auxrnn.training.loop import train
from auxrnn.training.record import ListRecorder


@dataclass(kw_only=True, eq=False, repr=False)
class AuxRNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Classify sequences with an LSTM that learns to remember through an auxiliary loss.

    `X` is `[examples, steps]` (one number a step) or `[examples, steps, features]`; scale it to about unit size.
    The parameters are those of `auxrnn train` and its fast recipe, with sizes and lengths for small data; what is auto
    is chosen from the size of X. `random_state` is the seed.
    After `fit`, `network_` is the trained network and `history_` the list of events that a run folder would hold.
    """

    objective: Objective = "reconstruct"
    supervised_window: Window | Auto = "auto"
    auxiliary_window: Window | Auto = "auto"
    num_segments: int = 1
    segment_length: Window | Auto = "auto"
    placement: Placement = METHOD["placement"]
    order: Order = "reversed"
    hidden_size: int = 64
    num_layers: int = 1
    embedding_size: int = 64
    decoder_layers: int = 2
    head_size: int = 256
    drop_connect: float = METHOD["drop_connect"]
    gate_init: GateInit = METHOD["gate_init"]
    readout: Readout = "mean"
    auxiliary_weight: float = METHOD["auxiliary_weight"]
    sampling_steps: int | Auto = "auto"
    pretrain_steps: int = 100
    train_steps: int = 300
    joint: bool = True
    batch_size: int | Auto = "auto"
    lr: float = LEARNING["lr"]
    clip_norm: float = LEARNING["clip_norm"]
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> "AuxRNNClassifier":
        """Train from scratch: pretraining on the sequences alone, then with their classes."""
        checked_X, checked_y = validate_data(self, X, y, dtype=np.float32, allow_nd=True)
        check_classification_targets(checked_y)
        self.classes_, label_N = np.unique(checked_y, return_inverse=True)
        x_NTD = _as_sequences(checked_X)
        split, (size, num_steps, num_features) = from_array(x_NTD, label_N.astype(np.int64)), x_NTD.shape
        spec = InputSpec(num_features, None, len(self.classes_), num_steps, measure_constant_loss(split))
        config = choose_sizes(unflatten(self._config_values()), spec, num_labeled=size, num_examples=size)
        self.network_ = build_network(config, spec)
        recorder = ListRecorder()
        train(build_session(config, self.network_, Splits(split, None, None), recorder=recorder, folder=None))
        self.history_ = recorder.events
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        x_NTD = _as_sequences(validate_data(self, X, dtype=np.float32, allow_nd=True, reset=False))
        split = from_array(x_NTD, np.zeros(len(x_NTD), dtype=np.int64))
        probability_NC = predict_probabilities(self.network_, in_order(split, LARGEST_BATCH))
        return probability_NC.to(torch.float64).numpy()

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest class of each sequence."""
        probability_NC = self.predict_proba(X)
        answer: NDArray[Any] = self.classes_[probability_NC.argmax(axis=1)]
        return answer

    def _config_values(self) -> dict[str, Any]:
        given = self.get_params(deep=False)
        del given["random_state"]
        # A parameter grid made with numpy holds numpy's numbers.
        values = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        if self.objective == "none":
            # A plain LSTM has nothing to pretrain; the same parameters then mean training with labels alone.
            values["pretrain_steps"] = 0
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        recipe = LEARNING | {"normalize_auxiliary": METHOD["normalize_auxiliary"], "evaluate_all": False}
        return recipe | values | {"data": "arrays", "seed": seed}


def _as_sequences(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return `[examples, steps, features]` for two or three dimensions."""
    if X.ndim not in (2, 3):
        raise ValueError(f"X has {X.ndim} dimensions; it takes [examples, steps] or [examples, steps, features]")
    return X[:, :, None] if X.ndim == 2 else X
