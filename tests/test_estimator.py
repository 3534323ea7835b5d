"""AuxRNNClassifier is a scikit-learn estimator: its own checks, pipelines, searches, and what it learns."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from auxrnn import AuxRNNClassifier

TINY = {"hidden_size": 8, "embedding_size": 8, "head_size": 16, "pretrain_steps": 3, "train_steps": 3}


# The checks of scikit-learn that do not apply, each with its reason.
EXPECTED_FAILURES = {
    "check_methods_subset_invariance": "single precision: a batch of another size rounds differently, by about 1e-7",
}

# Checks that look at what was learned; a few updates are enough for all others.
CHECK_OF_LEARNING = "check_classifiers_train"


@parametrize_with_checks(
    [AuxRNNClassifier(pretrain_steps=20, train_steps=150, drop_connect=0.0, hidden_size=16, lr=5e-3)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_it_passes_the_checks_of_scikit_learn(estimator, check, request):
    if CHECK_OF_LEARNING not in request.node.name:
        estimator = clone(estimator).set_params(pretrain_steps=2, train_steps=3)
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:150, :32], y[:150]


def test_it_learns_and_beats_chance_in_a_pipeline(digits):
    X, y = digits
    classifier = AuxRNNClassifier(
        hidden_size=32,
        embedding_size=16,
        pretrain_steps=60,
        train_steps=200,
        segment_length=12,
        drop_connect=0.0,
        lr=5e-3,
        random_state=0,
    )
    pipeline = make_pipeline(MinMaxScaler(), classifier).fit(X[:100], y[:100])
    assert pipeline.score(X[100:], y[100:]) > 0.7
    assert [event["phase"] for event in classifier.history_ if event["event"] == "train"][:1] == ["pretrain"]


def test_it_works_in_cross_validation_and_grid_search(digits):
    X, y = digits
    assert cross_val_score(AuxRNNClassifier(**TINY), X, y, cv=2).shape == (2,)
    search = GridSearchCV(
        AuxRNNClassifier(**TINY), {"objective": ["none", "predict"], "hidden_size": np.array([8])}, cv=2
    ).fit(X, y)
    assert search.best_params_["objective"] in ("none", "predict")


def test_sequences_of_vectors_and_of_numbers_are_read_alike(digits):
    X, y = digits
    flat = AuxRNNClassifier(**TINY, random_state=1).fit(X, y).predict_proba(X)
    deep = AuxRNNClassifier(**TINY, random_state=1).fit(X[:, :, None], y).predict_proba(X[:, :, None])
    np.testing.assert_array_equal(flat, deep)


def test_four_dimensions_are_refused_with_a_sentence():
    with pytest.raises(ValueError, match="it takes \\[examples, steps\\]"):
        AuxRNNClassifier(**TINY).fit(np.zeros((4, 3, 2, 2)), [0, 1, 0, 1])
