"""What a step will hold is estimated before it is done: close to what it takes, growing as it grows."""

import json
import subprocess
import sys

import pytest
import torch

from auxrnn.config import unflatten
from auxrnn.data import datasets
from auxrnn.runs import open_session, prepare, settle
from auxrnn.training.cost import Growth, count_evaluations, estimate_growth, find_free_memory
from auxrnn.training.loop import train

MEGABYTE = 1_000_000


def measure_cost(*words):
    """Let a process of its own tell the cost: memory that an earlier step held and freed would hide what is taken."""
    command = [sys.executable, "-m", "auxrnn", "cost", "needle", "--recipe", "paper", *map(str, words)]
    done = subprocess.run([*command, "--train-steps", "2", "--threads", "1", "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ["lstm", "--supervised-window", "full", "--length", "800"],
        pytest.param(
            ["lstm", "--objective", "reconstruct", "--length", "400", "--num-segments", "20", "--segment-length", "15"],
            marks=pytest.mark.slow,
        ),
        pytest.param(["lstm", "--objective", "reconstruct", "--length", "1200"], marks=pytest.mark.slow),
        pytest.param(["lstm", "--objective", "predict", "--length", "1200"], marks=pytest.mark.slow),
        pytest.param(["gru", "--supervised-window", "full", "--length", "600"], marks=pytest.mark.slow),
        pytest.param(["transformer", "--length", "600"], marks=pytest.mark.slow),
        pytest.param(["dmca", "--length", "600"], marks=pytest.mark.slow),
        pytest.param(["urnn", "--length", "400"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_the_estimate_is_near_what_a_step_takes(words):
    facts = measure_cost("--batch-size", "32", "--model", *words)
    assert 0.7 < facts["measured_bytes"] / facts["estimated_bytes"] < 1.35


def make_session(**values):
    config = settle(unflatten({"data": "needle", "length": 1000, "train_examples": 100, "batch_size": 2} | values))
    dataset = datasets.load(config.data)
    return open_session(config, dataset, prepare(config, dataset), None)


def test_without_fusing_attention_takes_a_matrix_of_steps_by_steps():
    session = make_session(model="transformer")
    fused, unfused = estimate_growth(session), estimate_growth(session, is_fused=False)
    assert fused.per_pair == 0 < unfused.per_pair
    # Two layers of four heads, each with one number for each pair of steps, and room for the backward pass.
    kept = 2 * 4 * 4
    assert kept <= unfused.per_pair <= 3 * kept
    assert unfused.bytes_for(128, 16_384) > 20 * fused.bytes_for(128, 16_384)
    assert unfused.longest(10**10, 32) < fused.longest(10**10, 32) / 3


@pytest.mark.parametrize("objective", ["none", "reconstruct", "predict"])
def test_cut_gradients_leave_only_the_batch_itself_to_grow(objective):
    session = make_session(objective=objective, supervised_window=20, auxiliary_window=20, segment_length=30)
    growth = estimate_growth(session)
    assert growth.reach == (20 if objective == "none" else 31)
    a_step = growth.bytes_for(1, 5001) - growth.bytes_for(1, 5000)
    assert a_step == growth.per_input == 16


@pytest.mark.parametrize("model", ["lm_lstm", "sa_lstm"])
def test_windows_inside_a_whole_sequence_are_not_taken_for_pairs_of_steps(model):
    cut = estimate_growth(make_session(model=model, supervised_window=100, auxiliary_window=100))
    full = estimate_growth(make_session(model=model))
    assert cut.per_pair == 0
    assert cut.bytes_for(64, 1000) < 1.5 * full.bytes_for(64, 1000)


@pytest.mark.parametrize("model", ["lm_lstm", "sa_lstm", "irnn", "dmca"])
def test_full_gradients_grow_with_every_step(model):
    growth = estimate_growth(make_session(model=model))
    assert growth.reach is None
    assert growth.per_step > 100
    assert growth.per_pair == 0


def test_bytes_grow_with_rows_and_steps_until_the_reach():
    growth = Growth(fixed=10 * MEGABYTE, per_row=1000, per_step=10, per_pair=0, per_input=8, reach=300)
    assert growth.bytes_for(4, 200) == 10 * MEGABYTE + 4 * (1000 + 10 * 200 + 8 * 200)
    assert growth.bytes_for(4, 5000) == 10 * MEGABYTE + 4 * (1000 + 10 * 300 + 8 * 5000)


@pytest.mark.parametrize("reach", [None, 300, 3000])
@pytest.mark.parametrize("per_pair", [0.0, 2.0])
def test_what_fits_fits_and_one_more_does_not(reach, per_pair):
    growth = Growth(fixed=MEGABYTE, per_row=1000, per_step=10, per_pair=per_pair, per_input=8, reach=reach)
    for memory in (2 * MEGABYTE, 50 * MEGABYTE):
        steps, rows = growth.longest(memory, 8), growth.most_rows(memory, 500)
        assert growth.bytes_for(8, steps) <= memory < growth.bytes_for(8, steps + 1)
        assert growth.bytes_for(rows, 500) <= memory < growth.bytes_for(rows + 1, 500)


def test_nothing_fits_into_less_than_the_weights_take():
    growth = Growth(fixed=MEGABYTE, per_row=1, per_step=1, per_pair=0, per_input=1, reach=None)
    assert (growth.longest(1000, 8), growth.most_rows(1000, 8)) == (0, 0)


def test_the_free_memory_of_this_machine_is_known():
    assert find_free_memory(torch.device("cpu")) > 10 * MEGABYTE


@pytest.mark.parametrize("evaluate_every", [None, 3, 100])
def test_evaluations_are_counted_as_training_does_them(evaluate_every):
    lengths = {"length": 20, "batch_size": 100, "hidden_size": 4, "embedding_size": 4, "segment_length": 3}
    session = make_session(**lengths, pretrain_steps=7, train_steps=23, evaluate_every=evaluate_every)
    assert train(session)
    done = [event["phase"] for event in session.recorder.events if event["event"] == "evaluation"]
    planned = {phase.name: count_evaluations(phase, evaluate_every=evaluate_every) for phase in session.phases}
    assert planned == {name: done.count(name) for name in ("pretrain", "joint")}
