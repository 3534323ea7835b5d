"""`python -m benchmarks`: every peer gives the library's numbers, and the commands run at sizes that take seconds."""

import json
import os
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch

from auxrnn.build import InputSpec, build_network
from auxrnn.models.network import LossTerms, classification_loss
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.optimizers import back_propagate
from benchmarks import __main__ as command
from benchmarks import data, exact, frameworks, training_steps
from benchmarks.exact import WINDOWS, ExactSizes
from benchmarks.frameworks import find_builders, make_problem, run_ours
from benchmarks.memory import measure_memory_of_steps
from benchmarks.parallel import ARRANGEMENTS, ParallelSizes, format_parallel, measure_parallel
from benchmarks.processes import busy_core, own_process
from benchmarks.speed import time_forward
from benchmarks.synthetic_data import DataSizes
from benchmarks.training_steps import FULL_BPTT, NUM_CLASSES, SYSTEMS, FullBPTT, StepSizes, build_step, configure

RECORDS = Path(__file__).parents[2] / "results" / "bench"
TINY = StepSizes(
    batch_size=4,
    hidden_size=8,
    reading_length=30,
    window_length=20,
    stream_steps=5,
    rounds=1,
    lengths=(40,),
    step_rounds=1,
    product_size=64,
)
# Single precision over a few dozen steps.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture
def problem():
    problem = make_problem(TINY, TINY.reading_length)
    with torch.no_grad():
        # Biases that are not zero, so that a peer that forgets one of them is found out.
        for parameter in problem.encoder.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return problem


@pytest.mark.parametrize("name", [name for name in find_builders() if name != "auxrnn"])
def test_a_peer_gives_the_outputs_and_each_time_the_gradients_of_the_library(name, problem):
    peer, ours = find_builders()[name](problem), run_ours(problem)
    with torch.no_grad():
        np.testing.assert_allclose(np.asarray(peer.forward()), ours.forward(), **TOLERANCE)
    for _ in range(2 if peer.backward else 0):
        np.testing.assert_allclose(np.asarray(peer.backward()), ours.backward(), **TOLERANCE)


def test_a_framework_that_is_not_installed_is_named_in_one_sentence_and_left_out(monkeypatch, capsys):
    monkeypatch.setattr(frameworks.importlib.util, "find_spec", lambda _name: None)
    builders = find_builders()
    assert [*builders][-1] == "loop over nn.LSTMCell"
    assert "Keras LSTM (JAX) is left out: keras and jax not installed\n" in capsys.readouterr().err
    assert time_forward(TINY, builders)["contenders"][0]["speed_up"] > 0


def test_full_back_propagation_is_that_of_the_library():
    network = build_network(configure(FULL_BPTT, TINY), InputSpec(1, None, NUM_CLASSES, 20))
    peer, draws = FullBPTT(network), Draws(0, "bench", 0)
    x_BTD, label_B = torch.rand(4, 20, 1), torch.tensor([0, 7, 7, 119])
    terms = LossTerms(is_supervised=True, is_auxiliary=False, supervised_window="full")
    ours = network.losses(SequenceBatch(x_BTD, label_B), terms=terms, draws=draws, true_probability=0.5)
    back_propagate(network, ours.combine(1.0), clip_norm=0.0)
    expected_GH = network.encoder.cell.weight_hh[0].grad.clone()
    theirs, _ = classification_loss(peer(x_BTD.transpose(0, 1), draws), label_B)
    theirs.mean().backward()
    torch.testing.assert_close(theirs.mean(), ours.combine(1.0))
    torch.testing.assert_close(peer.lstm.weight_hh_l0.grad, expected_GH, **TOLERANCE)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_training_step_moves_every_weight_of_a_system(system, monkeypatch):
    trained = []
    optimizer = training_steps.RMSProp
    monkeypatch.setattr(
        training_steps, "RMSProp", lambda weights, lr: trained.append([*weights]) or optimizer(trained[0], lr=lr)
    )
    step = build_step.__wrapped__(system, 40, TINY)
    before = [weight.detach().clone() for weight in trained[0]]
    step()
    assert not any(torch.equal(old, new) for old, new in zip(before, trained[0], strict=True))


def test_what_does_not_fit_into_memory_is_left_out(monkeypatch, capsys):
    monkeypatch.setattr(training_steps.psutil, "virtual_memory", lambda: SimpleNamespace(available=2**30))
    assert FULL_BPTT not in {system for system, _ in training_steps.points(training_steps.QUICK)}
    assert "LSTM, full BPTT at 12,544 steps needs 17 GiB, 1 are free" in capsys.readouterr().out


def test_a_busy_neighbor_is_gone_after_a_failure():
    with pytest.raises(KeyboardInterrupt), busy_core() as number:
        raise KeyboardInterrupt
    assert not psutil.pid_exists(number)


@pytest.mark.slow
def test_a_process_of_its_own_has_the_variables_and_leaves_none_behind():
    with own_process(AUXRNN_TEST_VARIABLE="here") as process:
        assert process.submit(os.getenv, "AUXRNN_TEST_VARIABLE").result() == "here"
        assert process.submit(os.getpid).result() != os.getpid()
    assert "AUXRNN_TEST_VARIABLE" not in os.environ


@pytest.mark.slow
def test_speed_and_memory_run_to_their_records(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.setattr(command, "restart_with_large_pages", lambda: None)
    for name in ("speed", "memory"):
        monkeypatch.setattr(sys, "argv", ["benchmarks", name, "--quick", "--out", str(tmp_path)])
        command.main()
    torch.set_flush_denormal(False)
    cases = json.loads((tmp_path / "speed.json").read_text())["cases"]
    assert cases.keys() == {"reading", "reading_busy", "window", "gru", "cells", "streaming", "step_40"}
    assert len(cases["step_40"]["contenders"]) == len(SYSTEMS)
    points = json.loads((tmp_path / "memory.json").read_text())["memory"]
    assert {point["system"] for point in points} == set(SYSTEMS)
    assert all(point["peak_bytes"] > 0 for point in points)
    assert (tmp_path / "peak-memory.png").stat().st_size > 10_000
    assert "A training step, 40 steps" in capsys.readouterr().out


@pytest.mark.slow
def test_the_estimate_of_what_full_back_propagation_needs_is_a_little_above_what_it_takes():
    sizes = StepSizes(batch_size=64, hidden_size=64, lengths=(1_000,))
    taken = next(point for point in measure_memory_of_steps(sizes) if point["system"] == FULL_BPTT)["peak_bytes"]
    needed = 4 * training_steps.FLOATS_PER_UNIT * 64 * 64 * 1_000
    assert 0.7 < taken / needed < 1.1


@pytest.mark.slow
def test_data_is_measured_and_removed(tmp_path):
    sizes = DataSizes(num_texts=600, mean_characters=40, num_images=240, image_size=8)
    found = data.measure_data(tmp_path, sizes)
    assert [*tmp_path.iterdir()] == []
    for kind in ("texts", "images"):
        assert found[f"{kind}_second_start_seconds"] > 0
        assert 0.05 < found[f"{kind}_first_start_gigabytes"] < 1
        assert found[f"{kind}_batch_milliseconds"] > 0
    assert found["images_padded_percent"] == 0 < found["texts_padded_percent"] < 100


@pytest.mark.parametrize("name", ["full/bench.json", "quick/bench.json", "data/data.json"])
def test_the_committed_records_are_shown(name, tmp_path, monkeypatch, capsys):
    plot = [] if name.startswith("data") else ["--plot", str(tmp_path / "memory.png")]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "show", str(RECORDS / name), *plot])
    command.main()
    shown = capsys.readouterr().out
    assert ("texts_second_start_seconds" if not plot else "LSTM, full BPTT") in shown
    assert not plot or (tmp_path / "memory.png").stat().st_size > 10_000


@pytest.mark.slow
def test_exact_gradients_are_measured_beside_full_and_cut_ones(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "ExactSizes", lambda **_: ExactSizes(hidden_size=4, lengths=(600,)))
    monkeypatch.setattr(command, "restart_with_large_pages", lambda: None)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "exact", "--quick", "--out", str(tmp_path)])
    command.main()
    points = json.loads((tmp_path / "exact.json").read_text())["exact"]
    assert {(point["readout"], point["window"]) for point in points} == set(product(("last", "mean"), WINDOWS))
    assert all(point["seconds"] > 0 and point["peak_bytes"] > 0 for point in points)
    assert capsys.readouterr().out.count("\n") == 2 + len(points)


def test_an_exact_benchmark_leaves_out_what_memory_does_not_hold(monkeypatch):
    monkeypatch.setattr(exact.psutil, "virtual_memory", lambda: SimpleNamespace(available=0))
    monkeypatch.setattr(exact, "WINDOWS", ("full",))
    assert all(point["seconds"] is None for point in exact.measure_exact(ExactSizes()))


@pytest.mark.slow
def test_two_processes_are_timed_beside_one_with_one_and_with_two_threads():
    sizes = ParallelSizes(batch_size=4, hidden_size=8, num_steps=50, systems=("p_lstm",), rounds=1)
    points = measure_parallel(sizes)
    assert [(point["num_processes"], point["num_threads"]) for point in points] == list(ARRANGEMENTS)
    assert all(point["seconds"] > 0 and point["cpu_seconds"] > 0 for point in points)
    first, *others = format_parallel(points).splitlines()[2:]
    assert first.split()[-1] == "1.00"
    assert len(others) == 2
