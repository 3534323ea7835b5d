"""Sequences of different lengths share a batch without changing any result.

The loss, the gradients and the prediction of a batch equal those of its sequences taken one by one, for given segments
and without drop-connect.
"""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from auxrnn.bptt import final_window, states_at
from auxrnn.build import InputSpec, build_network
from auxrnn.config import unflatten
from auxrnn.data.sequences import Encoding, Flat, Split, to_batch
from auxrnn.models.network import Losses, classification_loss
from auxrnn.structs import LossSum, Segments
from auxrnn.training.evaluate import evaluate, predict_logits

NUM_CLASSES, NUM_FEATURES, VOCABULARY = 3, 2, 5
TOLERANCE = {torch.float64: 1e-6, torch.float32: 2e-4}


class Case(NamedTuple):
    """One network and the lengths of the sequences it reads."""

    lengths: list[int]
    objective: str
    is_text: bool
    windows: tuple[int | str, int | str]
    placement: str
    order: str
    num_layers: int
    dtype: torch.dtype
    seed: int


WINDOWS = st.sampled_from([1, 3, 8, 40, "full"])
CASES = st.builds(
    Case,
    lengths=st.lists(st.integers(1, 24), min_size=1, max_size=6),
    objective=st.sampled_from(["reconstruct", "predict", "none"]),
    is_text=st.booleans(),
    windows=st.tuples(st.sampled_from([0, 1, 3, 8, 40, "full"]), WINDOWS),
    placement=st.sampled_from(["immediate", "past", "past_future"]),
    order=st.sampled_from(["reversed", "forward"]),
    num_layers=st.integers(1, 2),
    dtype=st.sampled_from([torch.float64, torch.float32]),
    seed=st.integers(0, 99),
)


def make_network(case):
    config = unflatten(
        {
            "data": "made", "objective": case.objective, "supervised_window": case.windows[0],
            "auxiliary_window": case.windows[1], "placement": case.placement, "order": case.order,
            "num_layers": case.num_layers, "num_segments": 2, "segment_length": 6, "hidden_size": 4,
            "embedding_size": 3, "head_size": 5, "drop_connect": 0.0, "seed": case.seed,
        }
    )  # fmt: skip
    network = build_network(config, InputSpec(NUM_FEATURES, VOCABULARY if case.is_text else None, NUM_CLASSES, 24))
    with torch.no_grad():
        for parameter in network.parameters():
            # Biases that are not zero: only then would padding open the gates.
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(case.seed)))
    return network.to(case.dtype)


def make_split(case):
    rng = np.random.default_rng(case.seed)
    begins = np.cumsum([0, *case.lengths])
    values = (
        rng.integers(0, VOCABULARY, begins[-1]) if case.is_text else rng.standard_normal((begins[-1], NUM_FEATURES))
    )
    dtype = np.float64 if case.dtype == torch.float64 else np.float32
    encoding = Encoding(lambda value: value if case.is_text else value.astype(dtype))
    rows = np.arange(len(case.lengths))
    return Split(Flat(values, begins), rows, rng.integers(0, NUM_CLASSES, len(rows)), encoding)


def compute(network, batch, segments, window):
    """The losses of a batch for given segments, without drop-connect."""
    readings, auxiliary = [], None
    if segments is not None:
        readings.append(network.objective.gradient_window(batch, segments))
    readings.append(final_window(batch.x_BT, window=window))
    states = states_at(network.encoder, batch.x_BT, readings, first_B=batch.first_B)
    if segments is not None:
        auxiliary = network.objective.loss(
            network.encoder, batch, segments, states[0], draws=None, true_probability=1.0
        )
    supervised, num_correct = classification_loss(network.classify(states[-1]), batch.label_B)
    return Losses(supervised, auxiliary, num_correct)


def add(sums):
    return LossSum(sum(part.total for part in sums), sum(part.num_tokens for part in sums))


def one_by_one(network, split, segments, window):
    """The same from each sequence alone: sums are added up, and divided once."""
    parts = []
    for row in range(split.num_examples):
        own = None
        if segments is not None:
            is_own = segments.row_M == row
            own = Segments(*(values_M[is_own] for values_M in segments))._replace(
                row_M=torch.zeros(2, dtype=torch.long)
            )
        parts.append(compute(network, to_batch(split.select(np.array([row]))), own, window))
    auxiliary = None if segments is None else add([part.auxiliary for part in parts])
    return Losses(add([part.supervised for part in parts]), auxiliary, sum(part.num_correct for part in parts))


def gradients(network, losses):
    network.zero_grad(set_to_none=True)
    losses.combine(0.7).backward()
    return {name: parameter.grad for name, parameter in network.named_parameters()}


def assert_close(found, wanted, dtype, what):
    found, wanted = found.detach(), wanted.detach()
    scale = max(float(wanted.abs().max()), 1e-3 if dtype == torch.float32 else 1e-9)
    worst = float((found - wanted).abs().max()) / scale
    assert worst <= TOLERANCE[dtype], f"{what}: off by {worst:.2e} of {scale:.2e}"


@settings(max_examples=60)
@given(case=CASES)
def test_a_batch_gives_the_losses_and_gradients_of_its_sequences_one_by_one(case):
    network, split = make_network(case), make_split(case)
    batch = to_batch(split)
    segments = None
    if case.objective != "none":
        rng = torch.Generator().manual_seed(case.seed)
        segments = network.objective.sample(batch.length_B, rng=rng)
    together = compute(network, batch, segments, case.windows[0])
    apart = one_by_one(network, split, segments, case.windows[0])
    assert_close(together.combine(0.7), apart.combine(0.7), case.dtype, "loss")
    assert int(together.num_correct) == int(apart.num_correct)
    found, wanted = gradients(network, together), gradients(network, apart)
    scale = max(float(value.abs().max()) for value in wanted.values() if value is not None)
    for name, value in wanted.items():
        assert (found[name] is None) == (value is None), name
        if value is not None and float(value.abs().max()) > 1e-6 * scale:
            assert_close(found[name], value, case.dtype, name)


@settings(max_examples=25)
@given(case=CASES)
def test_a_batch_gives_the_predictions_of_its_sequences_one_by_one(case):
    network, split = make_network(case._replace(objective="none")), make_split(case)
    alone = [to_batch(split.select(np.array([row]))) for row in range(split.num_examples)]
    together = predict_logits(network, [to_batch(split)]).softmax(dim=1)
    assert_close(together, predict_logits(network, alone).softmax(dim=1), case.dtype, "probabilities")
    assert evaluate(network, [to_batch(split)]).loss == pytest.approx(evaluate(network, alone).loss, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
def test_sequences_of_a_single_step_have_nothing_to_rebuild_and_still_count(objective, dtype):
    case = Case([1, 1, 1], objective, False, (3, 3), "past_future", "reversed", 1, dtype, 0)
    network, batch = make_network(case), to_batch(make_split(case))
    segments = network.objective.sample(batch.length_B, rng=torch.Generator().manual_seed(0))
    losses = compute(network, batch, segments, 3)
    assert int(losses.auxiliary.num_tokens) == 0
    assert all(torch.isfinite(grad).all() for grad in gradients(network, losses).values() if grad is not None)
