"""What people hand to the estimator: frames of pandas and polars, ragged lists, arrays; with odd cells and labels.

Whatever it refuses, it refuses with a ValueError or a TypeError, as scikit-learn does.
"""

from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from auxrnn.errors import UsageError
from auxrnn.estimator import AuxRNNClassifier
from stress.targets import MistakeError, Target, Targets

CELLS: tuple[Any, ...] = (
    0, -1, 2.5, 2**70, 1e39, 1e308, np.nan, np.inf, None, "a", "1", "", b"x", True, 1j, [1, 2], [], {}, pd.NaT,
    pd.Timestamp("2024-01-01"), np.float16(2), object(),
)  # fmt: skip
LABELS = ("a", "b", -1, None, np.nan, 0, 1, 1.5, 2**70, "", b"x", True, pd.NaT)
KINDS = ("Float64", "string", "category", "Int64", "bool", "datetime64[ns]", "object")
DTYPES = (object, "U4", complex, bool, np.int8, np.float16, ">f8")
TINY: dict[str, Any] = {
    "hidden_size": 4,
    "embedding_size": 2,
    "segment_length": 2,
    "train_steps": 1,
    "pretrain_steps": 1,
}


def estimator_targets() -> Targets:
    """Return the one target: training and predicting."""
    return {"frames": Target(3_000, lambda rng: rng.randbytes(8), _fit_and_predict)}


def _fit_and_predict(content: bytes) -> None:
    rng = Random(content)  # noqa: S311 - must be repeatable
    with np.errstate(all="ignore"):
        X = _draw_sequences(rng)
        y, weight_N = _draw_labels(rng, len(X)), rng.choices((0, 1, 2, -1, np.nan, "a"), k=len(X))
        options = {"validation_fraction": rng.choice((0.0, 0.0, 0.3)), "missing": rng.choice(("mask", "refuse"))}
        classifier = AuxRNNClassifier(**TINY | options, random_state=0)
        try:
            classifier.fit(X, y, sample_weight=weight_N if rng.random() < 0.15 else None)
            probability_NC = classifier.predict_proba(X if rng.random() < 0.5 else _draw_sequences(rng))
        except (TypeError, ValueError) as error:
            raise UsageError("refused") from error
        if not np.isfinite(probability_NC).all():
            raise MistakeError("a probability that is not finite")


def _draw_sequences(rng: Random) -> Any:
    num_examples, num_steps, num_features = rng.choice((0, 1, 2, 3, 8)), rng.choice((0, 1, 2, 5)), rng.choice((0, 1, 2))
    x_NTD = np.random.default_rng(rng.randrange(2**32)).normal(size=(num_examples, num_steps, num_features))
    kind = rng.choice((_draw_frame, _draw_ragged, _draw_array))
    return kind(rng, x_NTD)


def _draw_frame(rng: Random, x_NTD: np.ndarray) -> Any:
    """Return a table of either library, of which a few cells hold something else."""
    columns = {f"t{step}": each.astype(object).tolist() for step, each in enumerate(x_NTD.sum(axis=2).T)}
    for _ in range(rng.choice((0, 0, 1, 2)) if columns and len(x_NTD) else 0):
        columns[rng.choice(list(columns))][rng.randrange(len(x_NTD))] = rng.choice(CELLS)
    try:
        frame = pd.DataFrame(columns).astype(rng.choice(KINDS))
        return frame if rng.random() < 0.5 else pl.DataFrame(columns, strict=False)
    except Exception:  # what the libraries refuse is not what is tested here
        return pd.DataFrame(columns)


def _draw_ragged(rng: Random, x_NTD: np.ndarray) -> Any:
    found: list[Any] = [x_TD[: rng.randrange(6)] for x_TD in x_NTD]
    for row, x_TD in enumerate(found):
        as_frame = pd.DataFrame if rng.random() < 0.5 else pl.DataFrame
        found[row] = rng.choice((x_TD, x_TD, x_TD, x_TD.tolist(), x_TD[:, 0] if x_TD.size else x_TD, as_frame(x_TD)))
        found[row] = rng.choice(CELLS) if rng.random() < 0.05 else found[row]
    if rng.random() < 0.2:
        objects = np.empty(len(found), dtype=object)
        objects[:] = found
        return objects
    return found


def _draw_array(rng: Random, x_NTD: np.ndarray) -> Any:
    x_N = x_NTD if rng.random() < 0.6 else x_NTD.sum(axis=2)
    if x_N.size and rng.random() < 0.3:
        x_N.flat[rng.randrange(x_N.size)] = rng.choice((np.nan, np.inf, 1e39))
    if rng.random() < 0.3:
        x_N = x_N.astype(rng.choice(DTYPES))
    return x_N if rng.random() < 0.9 else x_N.tolist()


def _draw_labels(rng: Random, num_examples: int) -> Any:
    plain = rng.choices((0, 1), k=num_examples)
    y = plain if rng.random() < 0.7 else rng.choices(LABELS, k=num_examples)
    return rng.choice((y, y, y, np.array(plain), pd.Series(y), pl.Series(plain), y[:-1], [[label] for label in y]))
