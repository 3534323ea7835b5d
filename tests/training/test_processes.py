"""Several processes that divide every batch do the updates, and get the scores, of one that has all of it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from auxrnn.build import InputSpec, build_network, build_session
from auxrnn.config import unflatten
from auxrnn.data.sequences import Encoding, Flat, Split, Splits, deal, in_order
from auxrnn.errors import UsageError
from auxrnn.structs import Draws, Turn
from auxrnn.training.evaluate import evaluate, evaluate_auxiliary, predict_split
from auxrnn.training.loop import compute_gradients, train
from auxrnn.training.processes import Processes
from auxrnn.training.record import ListRecorder
from cells import MODELS
from together import run_together

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

NUM_CLASSES, NUM_FEATURES, VOCABULARY = 3, 2, 7
PLAIN = {
    "data": "", "hidden_size": 5, "embedding_size": 3, "head_size": 6, "num_segments": 2, "segment_length": 6,
    "auxiliary_window": 4, "supervised_window": 5, "sampling_steps": 20, "pretrain_steps": 5, "train_steps": 6,
    "objective": "reconstruct", "auxiliary_weight": 0.5, "evaluate_every": 3, "lr": 0.01, "log_every": 2,
}  # fmt: skip
SMALL = {"num_memories": 2, "memory_order": 4, "num_layers": 1}


def make_split(num_examples, *, is_token=False, dtype=np.float64, seed=0, num_unlabeled=4, has_gaps=False):
    """Draw sequences of 1 to 25 steps, some of them without a label."""
    rng = np.random.default_rng(seed)
    length_N = rng.integers(1, 26, num_examples)
    begin_N1 = np.concatenate([[0], length_N.cumsum()])
    size = int(begin_N1[-1])
    value_K = rng.integers(VOCABULARY, size=size) if is_token else rng.normal(size=(size, NUM_FEATURES)).astype(dtype)
    label_N = rng.integers(NUM_CLASSES, size=num_examples)
    label_N[1 : 1 + num_unlabeled] = -1
    if has_gaps:
        # In the first half of the sequences alone, so that some processes have rows without any.
        value_K[: size // 2][rng.random((size // 2, NUM_FEATURES)) < 0.3] = np.nan
    encoding = Encoding(lambda value: value, has_mask=has_gaps)
    return Split(Flat(value_K, begin_N1), np.arange(num_examples), label_N, encoding)


def make_session(processes, values, dtype=torch.float64):
    """Build a training on 23 sequences in batches of 5: the last has 3 rows, of the labeled ones 4."""
    config = unflatten(PLAIN | {"batch_size": 5} | {name: values[name] for name in values if name != "has_gaps"})
    is_token = config.model.model in ("char_cnn", "conv_rnn", "vdcnn")
    spec = InputSpec(0 if is_token else NUM_FEATURES, VOCABULARY if is_token else None, NUM_CLASSES, 25)
    if has_gaps := "has_gaps" in values:
        spec = spec._replace(input_size=2 * NUM_FEATURES, has_mask=True)
    network = build_network(config, spec).to(dtype)
    kind = {"is_token": is_token, "dtype": np.float64 if dtype == torch.float64 else np.float32, "has_gaps": has_gaps}
    validation = make_split(14, **kind, seed=1, num_unlabeled=0)
    splits = Splits(make_split(config.data.train_examples or 23, **kind), validation, None)
    return build_session(config, network, splits, recorder=ListRecorder(), folder=None, processes=processes)


def find_gradients(processes, values, dtype=torch.float64):
    """Give loss, counts and gradients of every batch of an epoch of each phase, and of which weights there are any."""
    session = make_session(processes, values, dtype)
    found = []
    for phase in session.phases:
        batches = session.batches_of(phase)
        for step in range(batches.steps_per_epoch):
            batch, draws = batches.at(step, phase=phase.name), Draws(3, phase.name, step)
            gradients = compute_gradients(session, phase, batch, draws=draws, true_probability=0.6, processes=processes)
            parts = [part for part in (gradients.losses.supervised, gradients.losses.auxiliary) if part is not None]
            numbers = [gradients.loss, gradients.norm, *(number for part in parts for number in part)]
            grads = {name: weight.grad for name, weight in session.network.named_parameters()}
            found.append(
                (
                    torch.stack([number.double() for number in numbers]).detach().numpy(),
                    {name: None if grad is None else grad.numpy() for name, grad in grads.items()},
                )
            )
    return found


def assert_close(actual, expected, tolerance):
    """Compare the largest difference with the largest number."""
    assert actual.shape == expected.shape
    scale = np.abs(expected).max(initial=0.0)
    assert np.abs(actual - expected).max(initial=0.0) <= tolerance * scale + 1e-300


def check_gradients(values, *, counts=(2, 3), dtype=torch.float64, tolerance=1e-12):
    (expected,) = run_together(1, find_gradients, values, dtype)
    assert len(expected) >= 4
    for num_processes in counts:
        first, *others = run_together(num_processes, find_gradients, values, dtype)
        for (numbers, grads), (wanted, wanted_grads) in zip(first, expected, strict=True):
            assert_close(numbers, wanted, tolerance)
            assert {name for name, grad in grads.items() if grad is None} == {
                name for name, grad in wanted_grads.items() if grad is None
            }
            largest = max(np.abs(grad).max() for grad in wanted_grads.values() if grad is not None)
            for name, grad in grads.items():
                if grad is not None:
                    # Gradients that are zero but for rounding have no size of their own.
                    assert np.abs(grad - wanted_grads[name]).max() <= tolerance * max(
                        np.abs(wanted_grads[name]).max(), 1e-3 * largest
                    ), name
        for other in others:
            for (numbers, grads), (same, same_grads) in zip(other, first, strict=True):
                assert numbers.tobytes() == same.tobytes()
                assert all(
                    grad is None if same_grads[name] is None else grad.tobytes() == same_grads[name].tobytes()
                    for name, grad in grads.items()
                )


CASES = {
    "r-LSTM": {},
    "p-LSTM": {"objective": "predict", "decoder_layers": 2},
    "one segment, one draw a batch": {"num_segments": 1, "anchor_scope": "batch", "placement": "past_future"},
    "labels alone": {"objective": "none", "pretrain_steps": 0, "supervised_window": 0, "label_smoothing": 0.1},
    "mean readout": {"readout": "mean", "class_weight": "balanced", "supervised_window": "full"},
    "full windows": {"segment_length": "full", "auxiliary_window": "full", "supervised_window": "full"},
    "last batch of one row": {"train_examples": 21, "batch_size": 4},
}


@pytest.mark.parametrize("case", CASES)
def test_the_update_equals_that_of_one_process(case):
    check_gradients(CASES[case])


@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
@pytest.mark.parametrize("model", [model for model in MODELS if model != "lstm"])
def test_the_update_of_every_recurrence_equals_that_of_one_process(model, objective):
    check_gradients(SMALL | {"model": model, "objective": objective}, counts=(2,))


DROPPING = {
    "transformer": {"hidden_size": 8, "filter_size": 6, "num_heads": 2, "dropout": 0.3},
    "dmca": {"hidden_size": 8, "num_heads": 2, "block_length": 16, "block_reach": 4, "num_layers": 2, "dropout": 0.3},
    "char_cnn": {"pad_to": 130, "dropout": 0.5},
    "conv_rnn": {"hidden_size": 4, "pad_to": 20, "dropout": 0.5},
    "lru": {"dropout": 0.3, "num_layers": 2, "supervised_window": 9},
}


@pytest.mark.parametrize("model", DROPPING)
def test_what_dropout_drops_is_that_of_one_process(model):
    alone = {"model": model, "objective": "none", "pretrain_steps": 0}
    check_gradients(alone | DROPPING[model], counts=(2,))


def test_gaps_count_as_little_as_in_one_process():
    check_gradients({"has_gaps": True}, dtype=torch.float32, tolerance=3e-6)


@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
def test_the_update_in_single_precision_is_that_of_one_process_but_for_rounding(objective):
    check_gradients({"objective": objective}, dtype=torch.float32, tolerance=3e-6)


def score(processes, values):
    """Train, and give the weights, the events without their times, and what a whole split is evaluated to."""
    session = make_session(processes, values)
    train(session)
    events = [
        {name: value for name, value in event.items() if "seconds" not in name} for event in session.recorder.events
    ]
    weights = {name: value.numpy() for name, value in session.network.state_dict().items()}
    return weights, events, session.temperature


@pytest.mark.parametrize(
    "case",
    [
        "r-LSTM",
        pytest.param("p-LSTM", marks=pytest.mark.slow),
        pytest.param("last batch of one row", marks=pytest.mark.slow),
    ],
)
def test_a_training_ends_as_that_of_one_process(case):
    ((wanted, events, temperature),) = run_together(1, score, CASES[case])
    assert len(events) > 8
    for num_processes in (2, 3):
        (weights, theirs, other_temperature), *others = run_together(num_processes, score, CASES[case])
        for name, value in weights.items():
            np.testing.assert_allclose(value, wanted[name], rtol=1e-9, atol=1e-10)
            assert all(other[0][name].tobytes() == value.tobytes() for other in others)
        assert [event.keys() for event in theirs] == [event.keys() for event in events]
        for their, event in zip(theirs, events, strict=True):
            numbers = {name: value for name, value in event.items() if isinstance(value, float)}
            assert {name: their[name] for name in numbers} == pytest.approx(numbers, rel=1e-9)
            assert {name: value for name, value in their.items() if name not in numbers} == {
                name: value for name, value in event.items() if name not in numbers
            }
        assert all(other[1:] == (theirs, other_temperature) for other in others)
        assert other_temperature == pytest.approx(temperature, rel=1e-6)


def find_scores(processes, is_supervised):
    """Give scores and logits of an untrained network."""
    session = make_session(processes, {"batch_size": 3})
    split = session.splits.validation
    batches = in_order(split, 3, processes.turn)
    logits_NC = predict_split(session.network, split, batch_size=3, processes=processes).numpy()
    if is_supervised:
        found = evaluate(session.network, batches, processes)
        return found.loss, found.confusion_CC.tolist(), logits_NC.tobytes()
    return evaluate_auxiliary(session.network, batches, seed=5, processes=processes)


@pytest.mark.parametrize("is_supervised", [True, False])
@pytest.mark.parametrize("num_processes", [2, 6])
def test_scores_have_the_bits_of_one_process(num_processes, is_supervised):
    # 5 batches: one of 6 processes has none.
    expected = run_together(1, find_scores, is_supervised) * num_processes
    assert run_together(num_processes, find_scores, is_supervised) == expected


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 7))
def test_each_row_is_dealt_once_and_all_processes_have_about_as_many_steps(lengths, num_processes):
    length_B = np.array(lengths)
    dealt = [deal(length_B, Turn(rank, num_processes)) for rank in range(num_processes)]
    assert sorted(np.concatenate(dealt)) == list(range(len(lengths)))
    counts, steps = [len(row_M) for row_M in dealt], [length_B[row_M].sum() for row_M in dealt]
    assert max(counts) - min(counts) <= 1
    assert max(steps) - min(steps) <= max(lengths)


def stop_one(processes, values):
    """Train until the last process, alone, is asked to stop."""
    session = make_session(processes, values)
    asked = iter([False] * 6 + [True])
    session.should_stop = lambda: processes.turn.rank == processes.turn.num_processes - 1 and next(asked)
    return train(session), [value.numpy().tobytes() for value in session.network.state_dict().values()]


def test_all_processes_stop_after_the_same_update():
    first, second = run_together(2, stop_one, {})
    assert first == second
    assert first[0] is False


def differ(processes):
    processes.check_same("settings", "their settings")
    try:
        processes.check_same(f"settings of {processes.turn.rank}", "their settings")
    except UsageError as error:
        return str(error)


def test_processes_that_differ_are_refused():
    for sentence in run_together(2, differ):
        assert "the processes of this training differ in their settings" in sentence


def send(processes):
    return processes.send(b"x" * 70_000 if processes.is_first else b""), processes.send(b"")


def test_what_the_first_process_has_is_sent_to_all():
    assert run_together(3, send) == [(b"x" * 70_000, b"")] * 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model": "vdcnn"}, "train it with one"),
        ({"model": "lru", "dropout": 0.1, "objective": "reconstruct"}, "--dropout 0"),
        ({"model": "lru", "dropout": 0.1, "num_layers": 1, "supervised_window": "exact"}, "--dropout 0"),
    ],
)
def test_what_rows_cannot_compute_apart_is_refused(values, words):
    with pytest.raises(UsageError, match=words):
        make_session(Processes(Turn(0, 2)), {"objective": "none", "pretrain_steps": 0, "depth": 9} | values)
