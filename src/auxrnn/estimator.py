"""The method as a scikit-learn estimator: arrays in, classes out, in memory.

What it trains is a run without a folder: data, planning and training are those of `auxrnn train`.
"""

import json
import logging
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, assert_all_finite, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from auxrnn import runs, saved
from auxrnn.config import (
    FIELDS,
    Auto,
    GateInit,
    Objective,
    Order,
    Placement,
    Readout,
    RunConfig,
    SupervisedWindow,
    Window,
    change,
    flatten,
    unflatten,
)
from auxrnn.data.datasets import NO_PART, Dataset, Facts, Table
from auxrnn.data.formats import SeriesFormat, count_channels, count_values, find_bad, has_mask, kind_of, make_encoding
from auxrnn.data.sequences import NO_LABEL, Flat, Split
from auxrnn.data.splits import divide
from auxrnn.errors import UsageError
from auxrnn.files import read_checked, read_sums, reading
from auxrnn.planning import plan
from auxrnn.presets import LEARNING, METHOD, ModelName, find_recipe
from auxrnn.progress import show_training
from auxrnn.training.evaluate import predict_split
from auxrnn.training.loop import train
from auxrnn.training.record import ListRecorder

NAME = "arrays"
ESTIMATOR = "estimator"
UNLABELED, PAIR = "-1", {"-1", "1"}

logger = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False, repr=False)
class AuxRNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Classify sequences with a recurrent network that learns to remember through an auxiliary loss.

    `X` is `[examples, steps]` (one number a step), `[examples, steps, features]`, a table with a row for each example,
    or a list of arrays `[steps]` or `[steps, features]` of different lengths. Each feature is standardized with mean
    and deviation of the X of the first fit. NaN is a gap: with `missing="mask"` it takes the mean of its feature, and
    if the X of the first fit has any, one more feature for each says what was there; "refuse" raises an error.

    In `y`, -1, None and NaN mean that the class is unknown: such sequences count in the auxiliary loss alone. If -1 and
    1 are all there is, they are two classes.

    The parameters are those of `auxrnn train` and its fast recipe, with sizes and lengths for small data; what is auto
    is chosen from the size of X, or the recipe's. `minutes` plans `pretrain_steps` and `train_steps` anew from measured
    time, and compares networks where `objective` or `readout` is auto and there is a validation split. With a
    `validation_fraction`, so much of the labeled examples is held out to keep the best weights and calibrate their
    probabilities. `class_weight` is None, balanced or a dict, `verbose` shows progress, `random_state` is the seed.

    After `fit`, `network_` is the trained network, which reads standardized steps, and `history_` the list of events
    that a run folder would hold.
    """

    model: ModelName = "lstm"
    objective: Objective | Auto = "reconstruct"
    supervised_window: SupervisedWindow | Auto = "auto"
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
    readout: Readout | Auto = "mean"
    auxiliary_weight: float = METHOD["auxiliary_weight"]
    sampling_steps: int | Auto = "auto"
    pretrain_steps: int = 100
    train_steps: int = 300
    minutes: float | None = None
    joint: bool = True
    batch_size: int | Auto = "auto"
    lr: float | Auto = "auto"
    clip_norm: float = LEARNING["clip_norm"]
    class_weight: Literal["balanced"] | dict[Any, float] | None = None
    missing: Literal["mask", "refuse"] = "mask"
    validation_fraction: float | Auto = 0.0
    device: str | None = None
    verbose: bool = False
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "AuxRNNClassifier":
        """Train from scratch: pretraining on the sequences alone, then with their classes.

        `sample_weight` counts in the supervised loss; an example of weight 0 counts as unlabeled.
        """
        for name in ("n_features_in_", "feature_names_in_"):
            # A list has neither.
            self.__dict__.pop(name, None)
        return self._fit(X, y, sample_weight, None)

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "AuxRNNClassifier":
        """Train further on these sequences, from the weights, the scaling and the settings of the last call.

        The first call is a `fit` that is told all `classes`. Each later one takes `train_steps` updates with labels, in
        a schedule of its own; if no sequence has one, `pretrain_steps` updates without.
        """
        if not hasattr(self, "run_"):
            if classes is None:
                raise ValueError("the first call of partial_fit needs classes, all that will ever come")
            return self._fit(X, y, sample_weight, np.unique(classes))
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes are other than in the first call; they are {self.classes_.tolist()}")
        dataset = self._read(X, y, sample_weight, self.classes_, is_first=False)
        old = self.run_.config
        config = change(old, seed=old.seed + 1, **self._lengths(dataset))
        division = divide(dataset.table, config.data, seed=config.seed)
        prepared = runs.Prepared(self.run_.card, division, is_drawn=True)
        return self._train(config, prepared, dataset)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        flat = self._flatten(X, is_first=False)
        row_N = np.arange(len(flat.begin_N1) - 1, dtype=np.int64)
        split = Split(flat, row_N, np.zeros_like(row_N), make_encoding(self.run_.card.format))
        probability_NC: NDArray[np.float64] = predict_split(self.network_, split).softmax(dim=1).double().numpy()
        return probability_NC

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each sequence."""
        probability_NC = self.predict_proba(X)
        answer: NDArray[Any] = self.classes_[probability_NC.argmax(axis=1)]
        return answer

    def save(self, path: Path | str) -> None:
        """Write a run folder, without pickle: `load`, `auxrnn.load_run` and `auxrnn predict` read it."""
        check_is_fitted(self)
        kept = {"classes": self.classes_.tolist(), "n_features_in": getattr(self, "n_features_in_", None)}
        with runs.claim(Path(path), other="another path") as folder:
            runs.keep(self.run_, self.history_, folder, **{ESTIMATOR: json.dumps(kept, default=str) + "\n"})

    @classmethod
    def load(cls, path: Path | str) -> "AuxRNNClassifier":
        """Return a fitted classifier from what `save` wrote, or from a run of `auxrnn train` on series of numbers.

        Its parameters are those of the run; what was auto has a value.
        """
        run = saved.load_run(path)
        if not isinstance(run.card.format, SeriesFormat):
            raise UsageError(f"{path} was trained on {kind_of(run.card.format)}; give a run on series of numbers")
        values = flatten(run.config)
        weight = {"class_weight": None if values["class_weight"] == "none" else values["class_weight"]}
        loaded = cls(**{name: values[name] for name in cls().get_params() if name in values} | weight)
        file, kept = Path(path) / f"{ESTIMATOR}.json", {"classes": run.card.class_names, "n_features_in": None}
        if file.exists() or file.name in read_sums(file.parent):
            with reading(file):
                kept = json.loads(read_checked(file))
        loaded.run_, loaded.network_, loaded.history_ = run, run.network, []
        loaded.classes_ = np.array(kept["classes"])
        if kept["n_features_in"] is not None:
            loaded.n_features_in_ = kept["n_features_in"]
        return loaded

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags

    def _fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, classes: NDArray[Any] | None
    ) -> "AuxRNNClassifier":
        dataset = self._read(X, y, sample_weight, classes, is_first=True)
        self.__dict__.pop("run_", None)
        self.history_: list[dict[str, Any]] = []
        config = runs.settle(unflatten(self._config_values() | self._lengths(dataset)))
        config, prepared = plan(config, dataset, minutes=self.minutes, say=logger.info)
        return self._train(config, prepared, dataset)

    def _train(self, config: RunConfig, prepared: runs.Prepared, dataset: Dataset) -> "AuxRNNClassifier":
        """Train from the weights there are, else from the start."""
        session = runs.open_session(config, dataset, prepared, None)
        if hasattr(self, "run_"):
            session.network.load_state_dict(self.run_.network.state_dict())
        showing = show_training(session.phases) if self.verbose else nullcontext(session.observe)
        with showing as session.observe:
            train(session)
        assert isinstance(session.recorder, ListRecorder)
        self.history_ += session.recorder.events
        # With a validation split, the network holds the best weights by now.
        network, temperature = session.network, session.temperature
        saved.calibrate(network, temperature)
        self.run_: saved.TrainedRun = saved.TrainedRun(config, prepared.card, network, temperature=temperature)
        self.network_ = network
        return self

    def _read(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, classes: NDArray[Any] | None, *, is_first: bool
    ) -> Dataset:
        """Return X and y as a dataset in memory, and keep the classes."""
        flat, y_N = self._flatten(X, is_first=is_first), column_or_1d(y, warn=True)
        check_consistent_length(flat.begin_N1[1:], y_N)
        is_labeled_N, weight_N = _find_labeled(y_N, classes), None
        if sample_weight is not None:
            weight_N = _check_sample_weight(sample_weight, y_N, dtype=np.float32, ensure_non_negative=True, copy=True)
            is_labeled_N &= weight_N > 0
        # A list of what is no string makes numbers of objects.
        known_M = np.array(y_N[is_labeled_N].tolist()) if y_N.dtype == object else y_N[is_labeled_N]
        if not len(known_M) and classes is None:
            raise ValueError("no example has a class; give a y other than -1 to some of each class")
        if len(known_M):
            assert_all_finite(known_M, input_name="y")
            check_classification_targets(known_M)
        self.classes_ = np.unique(known_M) if classes is None else classes
        if len(unknown := np.setdiff1d(known_M, self.classes_)):
            raise ValueError(f"y holds {unknown.tolist()}, which the classes of the first call do not")
        label_N = np.full(len(y_N), NO_LABEL, dtype=np.int64)
        label_N[is_labeled_N] = np.searchsorted(self.classes_, known_M) if len(known_M) else 0
        if self.class_weight not in (None, "balanced"):
            weight_N = np.ones(len(y_N), dtype=np.float32) if weight_N is None else weight_N
            weight_N[is_labeled_N] *= compute_sample_weight(self.class_weight, known_M).astype(np.float32)
        row_N = np.arange(len(y_N), dtype=np.int64)
        table = Table(flat.begin_N1, label_N, np.full(len(y_N), NO_PART, dtype=np.int8), row_N)
        num_channels, names = flat.value_K.shape[1], tuple(str(name) for name in self.classes_.tolist())
        is_gap_KD = np.isnan(flat.value_K)
        num_gappy = int(np.logical_or.reduceat(is_gap_KD.any(axis=1), flat.begin_N1[:-1]).sum())
        form, num_gaps = SeriesFormat(num_channels), int(is_gap_KD.sum())
        facts = Facts(NAME, form, names, "float32", num_channels, 0, (), num_gaps, num_gappy)
        return Dataset(NAME, flat, table, facts, "", weight_N)

    def _flatten(self, X: Any, *, is_first: bool) -> Flat:
        """Return sequences one after the other, checked against those of the first fit."""
        if (sequences := _find_sequences(X)) is not None:
            value_K, length_N = np.concatenate(sequences), [len(value_TD) for value_TD in sequences]
        else:
            x_NT = validate_data(
                self, X, dtype=np.float32, allow_nd=True, reset=is_first, ensure_all_finite="allow-nan"
            )
            if x_NT.ndim not in (2, 3):
                takes = "it takes [examples, steps] or [examples, steps, features]"
                raise ValueError(f"X has {x_NT.ndim} dimensions; {takes}")
            if not x_NT.size:
                raise ValueError(f"X is of shape {list(x_NT.shape)}; every example needs a step and a feature")
            x_NTD = x_NT if x_NT.ndim == 3 else x_NT[:, :, None]
            value_K, length_N = x_NTD.reshape(-1, x_NTD.shape[2]), [x_NTD.shape[1]] * len(x_NTD)
        if not is_first and value_K.shape[1] != (fitted := count_values(self.run_.card.format)):
            raise ValueError(f"X has {count_channels(value_K.shape[1])} a step; it was fitted on {fitted}")
        if is_first and max(length_N) < value_K.shape[1]:
            found = f"X is read as sequences of length {max(length_N):,} with {count_channels(value_K.shape[1])}"
            cure = "if it is the other way round, give X.transpose(0, 2, 1), or each sequence of a list transposed"
            warnings.warn(f"{found}; {cure}", stacklevel=5)
        flat = Flat(value_K, np.cumsum([0, *length_N], dtype=np.int64))
        self._check_numbers(flat, is_first=is_first)
        return flat

    def _check_numbers(self, flat: Flat, *, is_first: bool) -> None:
        """Refuse what is infinite, and gaps that the network cannot read or the user does not want."""
        can_mask = is_first or has_mask(self.run_.card.format)
        if not len(found := find_bad(flat.value_K, may_miss=can_mask and self.missing != "refuse")):
            return
        what, cure = "NaN", 'fill it in, or give missing="mask"'
        if np.isinf(flat.value_K[*found]):
            what, cure = "an infinite number", "give finite 32-bit floats"
        elif not can_mask:
            cure = "fill it in, or fit on sequences with gaps: the first fit had none"
        row = int(np.searchsorted(flat.begin_N1, found[0], side="right")) - 1
        raise ValueError(f"X[{row}] has {what} at step {found[0] - flat.begin_N1[row]}; {cure}")

    def _lengths(self, dataset: Dataset) -> dict[str, Any]:
        """Return how many updates there are, and what is held out: without labels and without an objective nothing."""
        if not (dataset.table.label_N != NO_LABEL).any():
            return {"pretrain_steps": self.pretrain_steps, "train_steps": 0, "validation_fraction": 0.0}
        if hasattr(self, "run_"):
            return {"pretrain_steps": 0, "train_steps": self.train_steps}
        if self.minutes is not None:
            return {"pretrain_steps": None, "train_steps": None}
        # A plain network has nothing to pretrain; the same parameters then mean training with labels alone.
        pretrain_steps = 0 if self.objective == "none" else self.pretrain_steps
        return {"pretrain_steps": pretrain_steps, "train_steps": self.train_steps}

    def _config_values(self) -> dict[str, Any]:
        given = {name: value for name, value in self.get_params(deep=False).items() if name in FIELDS}
        # A parameter grid made with numpy holds numpy's numbers.
        given = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        given["class_weight"] = "balanced" if self.class_weight == "balanced" else "none"
        chosen = {name: value for name, value in given.items() if value != "auto" or name in ("objective", "readout")}
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        recipe = find_recipe("fast", self.model) if self.model in get_args(ModelName) else {}
        return recipe | chosen | {"data": NAME, "test_fraction": 0.0, "seed": seed}


def _find_sequences(X: Any) -> list[NDArray[np.float32]] | None:
    """Return the sequences of a list of arrays, or of lists of different lengths; None for one array of all."""
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        X = list(X)
    if not isinstance(X, list | tuple) or not all(hasattr(each, "__len__") for each in X):
        return None
    if all(getattr(each, "ndim", 0) for each in X) or len({len(each) for each in X}) > 1:
        sequences = [_to_sequence(each, number) for number, each in enumerate(X)]
        if X and len({value_TD.shape[1] for value_TD in sequences}) == 1:
            return sequences
        raise ValueError("X holds no sequences, or of different numbers of features; give the same features to all")
    return None


def _to_sequence(each: Sequence[Any], number: int) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            value_TD = np.asarray(each, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X[{number}] is no array of numbers; give [steps] or [steps, features]") from error
    if value_TD.ndim not in (1, 2) or not value_TD.size:
        raise ValueError(f"X[{number}] is of shape {list(value_TD.shape)}; give [steps] or [steps, features]")
    return value_TD if value_TD.ndim == 2 else value_TD[:, None]


def _find_labeled(y_N: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Return which examples have a class."""
    value_N = y_N.tolist()
    text_N = np.array([str(value).removesuffix(".0") for value in value_N], dtype=object)
    is_known_N = np.array([value is not None and value == value for value in value_N], dtype=bool)  # noqa: PLR0124 - NaN
    given = text_N[is_known_N] if classes is None else np.array([str(name).removesuffix(".0") for name in classes])
    # Two classes are often called -1 and 1, and the classes of `partial_fit` are what the user says.
    is_class = set(given) == PAIR if classes is None else UNLABELED in given
    return is_known_N if is_class else is_known_N & (text_N != UNLABELED)
