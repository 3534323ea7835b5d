"""What a step keeps for its backward pass depends on windows and segments, not on the length of the sequences."""

import pytest
import torch

from auxrnn.config import SegmentConfig
from auxrnn.models.network import LossTerms
from auxrnn.structs import Draws
from tiny_network import make_batch, make_network

SHORT, LONG = 50, 400


def saved_elements(network, task, num_steps, true_probability=1.0):
    """Count the elements of all tensors that autograd keeps while the losses are computed."""
    counted = 0

    def count(tensor):
        nonlocal counted
        counted += tensor.numel()
        return tensor

    batch = make_batch(3, num_steps)
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        network.losses(batch, terms=task, draws=Draws(0, "test", 0), true_probability=true_probability)
    return counted


def make_fixed(objective, auxiliary_window=7):
    segments = SegmentConfig(num_segments=3, segment_length=10)
    return make_network(objective, segments=segments, auxiliary_window=auxiliary_window)


@pytest.mark.parametrize("true_probability", [1.0, 0.0])
@pytest.mark.parametrize("task", [LossTerms(False, True, 5), LossTerms(True, True, 5), LossTerms(True, True, 0)])
@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
def test_memory_of_an_auxiliary_step_does_not_grow_with_the_sequence(objective, task, true_probability):
    network = make_fixed(objective)
    short, long = (saved_elements(network, task, num_steps, true_probability) for num_steps in (SHORT, LONG))
    assert short == long > 0


def test_memory_of_a_truncated_supervised_step_does_not_grow_with_the_sequence():
    network, task = make_network("none"), LossTerms(True, False, 5)
    assert saved_elements(network, task, SHORT) == saved_elements(network, task, LONG) > 0


def test_memory_grows_with_the_supervised_window():
    network = make_network("none")
    none, five, ten, twenty = (saved_elements(network, LossTerms(True, False, w), LONG) for w in (0, 5, 10, 20))
    assert none < five < ten < twenty
    assert twenty - ten == 2 * (ten - five)


@pytest.mark.parametrize("objective", ["none", "reconstruct", "predict"])
def test_memory_of_a_full_window_grows_with_the_sequence(objective):
    network = make_network("none") if objective == "none" else make_fixed(objective, auxiliary_window="full")
    task = LossTerms(True, False, "full") if objective == "none" else LossTerms(False, True, 5)
    short, long = (saved_elements(network, task, num_steps) for num_steps in (SHORT, LONG))
    assert long > 3 * short
