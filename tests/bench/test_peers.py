"""What is compared does the same: every peer gives the library's numbers, from the library's weights."""

import numpy as np
import pytest
import torch

from auxrnn.bench import cases, systems
from auxrnn.bench.cases import compare_reading
from auxrnn.bench.peers import EmbeddedCell, EmbeddedLSTM, Ours, take_weights
from auxrnn.bench.roster import PAIR, READERS, TRAINERS, Contender
from auxrnn.bench.systems import FULL_BPTT, TITLES, FullBPTT, build, configure
from auxrnn.streaming import Stream
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.step import Task, back_propagate, classification_loss, compute_losses

# Single precision over a few dozen steps.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture
def problem(tiny):
    problem = cases._make_problem(tiny, tiny.reading_length)
    with torch.no_grad():
        # Biases that are not zero, so that a peer that forgets one of them is found out.
        for parameter in problem.encoder.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return problem


def build_peer(contender, problem):
    if not contender.is_installed:
        pytest.skip(f"{contender.name} is not installed")
    return contender.build(problem)


@pytest.mark.parametrize("contender", READERS[1:], ids=lambda contender: contender.name)
def test_a_peer_reads_what_the_library_reads(contender, problem):
    peer = build_peer(contender, problem)
    with torch.no_grad():
        np.testing.assert_allclose(np.asarray(peer.read()), Ours(problem).read(), **TOLERANCE)


@pytest.mark.parametrize("contender", TRAINERS[1:], ids=lambda contender: contender.name)
def test_a_peer_gives_the_gradient_that_the_library_gives_each_time_it_is_asked(contender, problem):
    peer = build_peer(contender, problem)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(peer.differentiate()), Ours(problem).differentiate(), **TOLERANCE)


def test_single_steps_give_the_library_s_probabilities(tiny):
    network = build(configure("full_bptt", tiny), num_steps=1)
    stream, cell = Stream(network), EmbeddedCell(network.encoder)
    with torch.inference_mode():
        for x_1D in torch.rand(5, 1, 1):
            expected_1C = network.classifier(cell.push(x_1D)).softmax(dim=1)
            torch.testing.assert_close(stream.push(x_1D), expected_1C)


def test_full_back_propagation_is_that_of_the_library(tiny):
    network = build(configure("full_bptt", tiny), num_steps=20)
    peer = FullBPTT(network)
    x_BTD, label_B = torch.rand(4, 20, 1), torch.tensor([0, 7, 7, 119])
    draws = Draws(0, "bench", 0)
    task = Task(is_supervised=True, is_auxiliary=False, supervised_window="full")
    ours = compute_losses(network, SequenceBatch(x_BTD, label_B), task=task, draws=draws, true_probability=0.5)
    back_propagate(network, ours.combine(1.0), clip_norm=0.0)
    expected_GH = network.encoder.cell.weight_hh[0].grad.clone()

    kept_CF = peer.classifier.draw_kept(draws.rng("classifier drop-connect"))
    theirs, _ = classification_loss(peer(x_BTD.transpose(0, 1), kept_CF), label_B)
    theirs.mean().backward()
    torch.testing.assert_close(theirs.mean(), ours.combine(1.0))
    torch.testing.assert_close(peer.lstm.weight_hh_l0.grad, expected_GH, **TOLERANCE)


@pytest.mark.parametrize("system", TITLES)
def test_a_training_step_moves_every_weight_of_a_system(system, tiny):
    config = configure(system, tiny)
    network = build(config, num_steps=40)
    x_BTD, label_B = torch.rand(4, 40, 1), torch.tensor([0, 7, 7, 119])
    if system == FULL_BPTT:
        network = FullBPTT(network)
        step = systems._full_step(network, x_BTD.transpose(0, 1), label_B, config=config)
    else:
        step = systems._auxiliary_step(network, SequenceBatch(x_BTD, label_B), config=config)
    before = [parameter.clone() for parameter in network.parameters()]
    step()
    assert not any(torch.equal(old, new) for old, new in zip(before, network.parameters(), strict=True))


def test_a_peer_that_is_not_installed_is_reported_and_does_no_harm(tiny):
    absent = Contender("not there", ("surely_not_installed_anywhere",), EmbeddedLSTM)
    case = compare_reading(tiny, readers=(*PAIR, absent))
    assert case.entry("not there").note == "not installed"
    assert case.entry("not there").seconds is None
    assert case.speed_up("auxrnn") > 0


def test_weights_are_taken_without_their_history(problem):
    assert not any(weight.requires_grad for weight in take_weights(problem.encoder))
