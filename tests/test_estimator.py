"""AuxRNNClassifier is a scikit-learn estimator: its own checks, pipelines, searches, and what it learns."""

import json
import re

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimators_nan_inf, parametrize_with_checks

from auxrnn import AuxRNNClassifier, load_run
from auxrnn.errors import RunError, UsageError
from cells import MODELS
from command import call
from own_data import series_of, write_ts

TINY = {"hidden_size": 8, "embedding_size": 8, "head_size": 16, "pretrain_steps": 3, "train_steps": 3}


# The checks of scikit-learn that do not apply, each with its reason.
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "batches are drawn: a weight of 2 is not the same as two examples",
    "check_methods_subset_invariance": "single precision: a batch of another size rounds differently, by about 1e-7",
}

# Checks that look at what was learned; a few updates are enough for all others.
CHECKS_OF_LEARNING = ("check_classifiers_train", "check_class_weight_classifiers", "one_label_sample_weights")


@parametrize_with_checks(
    [AuxRNNClassifier(pretrain_steps=20, train_steps=150, drop_connect=0.0, hidden_size=16, lr=5e-3)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_it_passes_the_checks_of_scikit_learn(estimator, check, request):
    if not any(name in request.node.name for name in CHECKS_OF_LEARNING):
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


@pytest.mark.parametrize("to_input", [np.array, list], ids=["array", "list"])
def test_channels_that_come_first_are_warned_of_and_the_cure_works(to_input):
    x_NDT, y_N = np.random.default_rng(0).random((12, 3, 20)), np.arange(12) % 2
    hint = re.escape("length 3 with 20 channels; if it is the other way round, give X.transpose(0, 2, 1)")
    with pytest.warns(UserWarning, match=hint) as warned:
        AuxRNNClassifier(**TINY).fit(to_input(x_NDT), y_N)
    assert warned[0].filename == __file__
    # Warnings are errors here.
    assert AuxRNNClassifier(**TINY).fit(to_input(x_NDT.transpose(0, 2, 1)), y_N).run_.card.format.num_channels == 3


def make_series(num_rows=24, num_channels=2):
    series, names = zip(*series_of(num_rows, num_channels), strict=True)
    return list(series), np.array(names)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("objective", ["none", "reconstruct", "predict"])
def test_every_recurrent_model_takes_every_objective_on_series_of_different_lengths(model, objective):
    series, names = make_series()
    classifier = AuxRNNClassifier(**TINY, model=model, objective=objective, random_state=0).fit(series, names)
    assert classifier.classes_.tolist() == ["cat", "dog"]
    probability_NC = classifier.predict_proba(series)
    assert probability_NC.sum(axis=1) == pytest.approx(1)
    one_by_one = np.concatenate([classifier.predict_proba([x_TD]) for x_TD in series])
    np.testing.assert_allclose(probability_NC, one_by_one, atol=1e-5)


def test_lists_of_lists_and_arrays_of_objects_are_sequences_too():
    series, names = make_series(num_channels=1)
    as_lists = [x_TD[:, 0].tolist() for x_TD in series]
    as_objects = np.empty(len(series), dtype=object)
    as_objects[:] = series
    found = [AuxRNNClassifier(**TINY, random_state=0).fit(X, names).predict_proba(X) for X in (as_lists, as_objects)]
    np.testing.assert_array_equal(*found)


def test_the_scale_and_the_offset_of_a_channel_do_not_matter(digits):
    X, y = digits
    plain, moved = (AuxRNNClassifier(**TINY, random_state=0).fit(each, y) for each in (X, 1000 * X + 5000))
    np.testing.assert_allclose(plain.predict_proba(X), moved.predict_proba(1000 * X + 5000), atol=1e-3)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([0, 1, -1, -1], [0, 1]),
        ([0.0, 1.0, -1.0, np.nan], [0, 1]),
        (["a", "b", None, np.nan], ["a", "b"]),
        ([2, 3, None, -1], [2, 3]),
        ([-1, 1, -1, 1], [-1, 1]),
        (["-1", "1", "-1", "1"], ["-1", "1"]),
        ([-1, 1, None, None], [-1, 1]),
    ],
)
def test_minus_one_and_nothing_mean_unlabeled_unless_the_classes_are_minus_one_and_one(y, classes):
    classifier = AuxRNNClassifier(**TINY).fit(np.random.default_rng(0).random((4, 6)), np.array(y))
    assert classifier.classes_.tolist() == classes
    assert set(classifier.predict(np.zeros((2, 6)))) <= set(classes)


def test_unlabeled_sequences_count_in_pretraining_alone(digits):
    X, y = digits
    few = np.where(np.arange(len(y)) < 40, y, -1)
    whole = AuxRNNClassifier(**TINY, random_state=0).fit(X, few)
    part = AuxRNNClassifier(**TINY, random_state=0).fit(X[:40], y[:40])
    assert whole.run_.card.format != part.run_.card.format, "unlabeled sequences are read too"
    plain = [AuxRNNClassifier(**TINY, objective="none", random_state=0).fit(X[:n], few[:n]) for n in (40, 150)]
    losses = [classifier.history_[-2]["supervised_loss"] for classifier in plain]
    assert losses[0] == pytest.approx(losses[1], rel=0.2)


def test_balanced_weights_find_a_rare_class():
    rng = np.random.default_rng(0)
    y = (np.arange(300) % 15 == 0).astype(int)
    X = rng.normal(size=(300, 8)) + y[:, None] * 0.6
    options = {"hidden_size": 8, "pretrain_steps": 0, "train_steps": 80, "drop_connect": 0.0, "random_state": 0}
    recall = {}
    for class_weight in (None, "balanced", {0: 1.0, 1: 15.0}):
        classifier = AuxRNNClassifier(**options, objective="none", class_weight=class_weight).fit(X[:150], y[:150])
        recall[str(class_weight)] = (classifier.predict(X[150:]) == 1)[y[150:] == 1].mean()
    assert recall["None"] + 0.3 <= min(recall["balanced"], recall["{0: 1.0, 1: 15.0}"]), recall


def test_balanced_weights_and_the_same_weights_given_by_hand_train_the_same_network(digits):
    X, y = digits
    y = np.where(y == 2, 1, y)
    by_hand = 1.0 / np.bincount(y)[y]
    one = AuxRNNClassifier(**TINY, random_state=0, class_weight="balanced").fit(X, y)
    other = AuxRNNClassifier(**TINY, random_state=0).fit(X, y, sample_weight=by_hand)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-5)


def test_a_validation_split_gives_the_best_weights_and_calibrated_probabilities(digits):
    X, y = digits
    classifier = AuxRNNClassifier(**TINY, random_state=0, validation_fraction=0.3).fit(X, y)
    result = classifier.history_[-1]
    assert (result["event"], result["weights"]) == ("result", "best")
    assert classifier.run_.temperature == result["temperature"] != 1


def test_partial_fit_goes_on_from_the_weights_it_has(digits):
    X, y = digits
    classifier = AuxRNNClassifier(**TINY, random_state=0).partial_fit(X[:60], y[:60], classes=[0, 1, 2])
    before = {name: value.clone() for name, value in classifier.network_.state_dict().items()}
    classifier.set_params(train_steps=0).partial_fit(X[60:], np.full(90, -1))
    assert {event["phase"] for event in classifier.history_[-2:]} == {"pretrain"}
    classifier.set_params(train_steps=1, lr=1e-9).partial_fit(X[60:], y[60:], [0, 1, 2])
    after = classifier.network_.state_dict()
    assert not all(torch.equal(after[name], before[name]) for name in before)
    assert max(float((after[name] - before[name]).abs().max()) for name in before) < 0.1
    with pytest.raises(ValueError, match="y holds \\[7\\]"):
        classifier.partial_fit(X[:3], [0, 1, 7])


def test_more_of_the_same_lowers_the_loss(digits):
    X, y = digits
    options = {"hidden_size": 16, "pretrain_steps": 0, "objective": "none", "train_steps": 30, "drop_connect": 0.0}
    classifier = AuxRNNClassifier(**options, random_state=0)
    losses = []
    for _ in range(3):
        classifier.partial_fit(X, y, classes=[0, 1, 2])
        probability_NC = classifier.predict_proba(X)
        losses.append(-np.log(probability_NC[np.arange(len(y)), y]).mean())
    assert losses[0] > losses[1] > losses[2]


def test_what_is_saved_predicts_the_same_from_python_and_from_the_command_line(digits, tmp_path):
    X, y = digits
    classifier = AuxRNNClassifier(**TINY, random_state=0, validation_fraction=0.3).fit(X, y)
    classifier.save(tmp_path / "kept")
    loaded = AuxRNNClassifier.load(tmp_path / "kept")
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), classifier.predict(X))
    assert (loaded.n_features_in_, loaded.hidden_size) == (32, 8)
    loaded.partial_fit(X, y)
    np.save(tmp_path / "new.npy", X[:2, :, None].astype(np.float32))
    result = call("predict", tmp_path / "kept", tmp_path / "new.npy", "--json")
    assert result.code == 0, result.err
    found = [list(each["probabilities"].values()) for each in json.loads(result.out)["predictions"]]
    np.testing.assert_allclose(found, classifier.predict_proba(X[:2]), atol=1e-5)
    assert load_run(tmp_path / "kept").card.class_names == ("0", "1", "2")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    for name, found in (("kept", "already holds a run"), ("full", "not an empty folder")):
        with pytest.raises(UsageError, match=f"{found}.* choose another path$"):
            classifier.save(tmp_path / name)
    file = tmp_path / "kept" / "estimator.json"
    for damage in (lambda: file.write_text("[]"), file.unlink):
        damage()
        with pytest.raises(RunError, match=r"estimator\.json is missing, damaged or edited"):
            AuxRNNClassifier.load(tmp_path / "kept")


def test_a_run_of_the_command_line_becomes_an_estimator(tmp_path):
    words = ["--hidden-size=4", "--train-steps=2", "--pretrain-steps=0", "--out", tmp_path / "run"]
    assert call("train", write_ts(tmp_path), *words).code == 0
    series, _ = make_series()
    assert set(AuxRNNClassifier.load(tmp_path / "run").predict(series)) <= {"cat", "dog"}


def test_a_budget_in_minutes_plans_both_phases(digits):
    X, y = digits
    classifier = AuxRNNClassifier(hidden_size=8, minutes=0.02, random_state=0, validation_fraction="auto").fit(X, y)
    lengths = classifier.run_.config.schedule
    assert lengths.pretrain_steps not in (None, 100)
    assert lengths.train_steps not in (None, 300)


def test_a_table_is_read_as_its_numbers(digits):
    X, y = digits
    table = type("Table", (), {"__array__": lambda _self, dtype=None, copy=None: np.asarray(X, dtype), "shape": X.shape,
                               "__len__": lambda _self: len(X)})()  # fmt: skip
    found = AuxRNNClassifier(**TINY, random_state=0).fit(table, y).predict_proba(table)
    np.testing.assert_array_equal(found, AuxRNNClassifier(**TINY, random_state=0).fit(X, y).predict_proba(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_is_a_table(digits, library):
    X, y = digits
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({f"t{step}": X[:, step] for step in range(X.shape[1])})
    classifier = AuxRNNClassifier(**TINY, random_state=0).fit(frame, frames.Series(y))
    assert classifier.feature_names_in_[0] == "t0"
    plain = AuxRNNClassifier(**TINY, random_state=0).fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(frame), plain.predict_proba(X))


def with_gaps(X):
    """Return a copy with a third of its numbers missing, the same ones each time."""
    return np.where(np.random.default_rng(0).random(X.shape) < 1 / 3, np.nan, X)


@pytest.mark.parametrize("kind", ["array", "lists", "pandas", "polars"])
def test_gaps_are_masked_in_every_kind_of_data(digits, kind):
    X, y = with_gaps(digits[0]), digits[1]
    if kind == "array":
        given = X[:, :, None]
    elif kind == "lists":
        given = [[None if value != value else value for value in row] for row in X.tolist()]  # noqa: PLR0124 - NaN
    else:
        frames = pytest.importorskip(kind)
        given = frames.DataFrame({f"t{step}": X[:, step] for step in range(X.shape[1])})
    classifier = AuxRNNClassifier(**TINY, random_state=0).fit(given, y)
    form = classifier.run_.card.format
    assert form.has_mask
    assert form.mean == pytest.approx((np.nanmean(X),))
    plain = AuxRNNClassifier(**TINY, random_state=0).fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(given), plain.predict_proba(X))
    assert not np.allclose(plain.predict_proba(X), plain.predict_proba(np.nan_to_num(X, nan=np.nanmean(X))))


def test_a_network_that_reads_gaps_is_trained_further_and_saved(digits, tmp_path):
    X, y = with_gaps(digits[0]), digits[1]
    series = [X[0, :7], X[1, :, None], *X[2:]]
    classifier = AuxRNNClassifier(**TINY, random_state=0).partial_fit(series, y, classes=[0, 1, 2])
    classifier.partial_fit(digits[0], y).save(tmp_path / "kept")
    loaded = AuxRNNClassifier.load(tmp_path / "kept")
    assert loaded.missing == "mask"
    np.testing.assert_array_equal(loaded.predict_proba(series), classifier.predict_proba(series))
    loaded.partial_fit(series, y)
    with pytest.raises(ValueError, match=r"X\[0\] has NaN"):
        loaded.set_params(missing="refuse").predict(X)


def test_a_network_that_was_fitted_without_gaps_refuses_them(digits):
    X, y = digits
    classifier = AuxRNNClassifier(**TINY).fit(X, y)
    for use in (classifier.predict, lambda gappy: classifier.partial_fit(gappy, y)):
        with pytest.raises(ValueError, match="or fit on sequences with gaps: the first fit had none"):
            use(with_gaps(X))


@pytest.mark.parametrize(("missing", "is_allowed"), [("mask", True), ("refuse", False)])
def test_scikit_learn_is_told_whether_gaps_are_allowed(missing, is_allowed):
    classifier = AuxRNNClassifier(**TINY, missing=missing)
    assert get_tags(classifier).input_tags.allow_nan is is_allowed
    if not is_allowed:
        check_estimators_nan_inf("AuxRNNClassifier", classifier)


@pytest.mark.parametrize(
    ("X", "y", "options", "sentence"),
    [
        (np.zeros((4, 5)), [-1] * 4, {}, "no example has a class"),
        ([np.zeros(3), [1.0, np.nan]], [0, 1], {"missing": "refuse"}, r"X\[1\] has NaN at step 1; fill it in, or give"),
        ([np.zeros(3), [1.0, np.inf]], [0, 1], {}, r"X\[1\] has an infinite number at step 1; give finite"),
        ([np.zeros(3), np.zeros((4, 2))], [0, 1], {}, "different numbers of features"),
        ([np.zeros(3), np.zeros(0)], [0, 1], {}, r"X\[1\] is of shape \[0\]"),
        (np.zeros((4, 0, 2)), [0, 1, 0, 1], {}, r"X is of shape \[4, 0, 2\]; every example needs a step and a feature"),
        (np.zeros((4, 3, 0)), [0, 1, 0, 1], {}, r"X is of shape \[4, 3, 0\]"),
        ([np.zeros(3), ["a", "b"]], [0, 1], {}, r"X\[1\] is no array of numbers"),
        (np.full((4, 5), np.nan), [0, 1, 0, 1], {"missing": "refuse"}, r"X\[0\] has NaN at step 0"),
        (np.full((4, 5), np.inf), [0, 1, 0, 1], {}, "contains infinity"),
        (np.zeros((4, 5)), [0, 1, 0, 1], {"missing": "drop"}, "missing is 'drop'; it takes"),
        (np.zeros((4, 5)), [0, 1, 0, 1], {"model": "transformer"}, "carries no auxiliary loss"),
        (np.zeros((4, 5)), [0, 1, 0, 1], {"model": "vdcnn", "objective": "none"}, "which reads characters"),
        (np.zeros((4, 5)), [0, 1, 0, 1], {"model": "rnn"}, "model is 'rnn'; it takes"),
        (np.zeros((4, 5)), [0, 1, 0, 1], {"device": "tpu"}, "not available here"),
        (np.zeros((4, 5)), [0, 1, 0, 1], {"validation_fraction": 0.1}, "would hold out 0 of 4"),
        (np.zeros((4, 5)), [0, 1, 0, 1], {"class_weight": "even"}, "class_weight"),
    ],
)
def test_what_it_cannot_do_is_refused_with_a_sentence(X, y, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        AuxRNNClassifier(**TINY | options).fit(X, y)


def test_other_features_than_in_fit_are_refused():
    series, names = make_series()
    classifier = AuxRNNClassifier(**TINY).fit(series, names)
    with pytest.raises(ValueError, match="X has 3 channels a step; it was fitted on 2"):
        classifier.predict([np.zeros((4, 3))])
    with pytest.raises(ValueError, match="the first call of partial_fit needs classes"):
        AuxRNNClassifier(**TINY).partial_fit(series, names)


@pytest.mark.parametrize("minutes", [0, -1.0, float("nan")])
def test_a_budget_that_is_no_time_is_refused(minutes):
    with pytest.raises(ValueError, match="it must be a number above 0"):
        AuxRNNClassifier(minutes=minutes).fit(np.random.default_rng(0).random((12, 5)), np.arange(12) % 2)
