"""Calibration: how far the probabilities of a classifier are from the frequencies of right answers, and the cure.

The cure is a temperature by which logits are divided, fitted on sequences that were held out (Guo et al., 2017). It
changes no answer, only how sure the network says it is. Dimension letter: `N` sequences.
"""

import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

NUM_BINS = 15
LARGEST_LOG_TEMPERATURE = 3.0
"""A classifier that is always right on few sequences would be fitted a temperature of zero."""
NUM_HALVINGS = 40


class Bin(NamedTuple):
    """The answers whose probability lies in one range."""

    num_answers: int
    confidence: float
    """Mean probability of the answers, from 0 to 1."""
    accuracy: float
    """Part of them that is right."""


def fit_temperature(logits_NC: Float[Tensor, "N C"], label_N: Int[Tensor, " N"], *, smoothing: float = 0.0) -> float:
    """Return the temperature with the smallest cross-entropy, from 1/20 to 20.

    The loss is convex in the inverse temperature, so the sign of its slope tells on which side the best one lies.
    A `smoothing` of 2 / (N + 2) counts one more answer of each kind (Platt, 1999): being right on a few sequences is
    then no proof of being right on all.
    """
    logits_NC = logits_NC.double()
    low, high = -LARGEST_LOG_TEMPERATURE, LARGEST_LOG_TEMPERATURE
    loss = functools.partial(F.cross_entropy, label_smoothing=smoothing)
    for _ in range(NUM_HALVINGS):
        middle = (low + high) / 2
        inverse = torch.tensor(-middle, dtype=torch.float64).exp().requires_grad_()
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(loss(inverse * logits_NC, label_N), inverse)
        low, high = (middle, high) if slope > 0 else (low, middle)
    return float(torch.tensor((low + high) / 2, dtype=torch.float64).exp())


def measure_reliability(
    probability_NC: Float[Tensor, "N C"], label_N: Int[Tensor, " N"], num_bins: int = NUM_BINS
) -> list[Bin]:
    """Return the answers by ranges of probability of equal width; ranges without answers are left out."""
    confidence_N, answer_N = probability_NC.double().max(dim=1)
    is_right_N = (answer_N == label_N).double()
    index_N = (confidence_N * num_bins).long().clamp(max=num_bins - 1)
    found = (index_N == index for index in sorted(set(index_N.tolist())))
    return [
        Bin(int(is_in_N.sum()), float(confidence_N[is_in_N].mean()), float(is_right_N[is_in_N].mean()))
        for is_in_N in found
    ]


def expected_calibration_error(
    probability_NC: Float[Tensor, "N C"], label_N: Int[Tensor, " N"], num_bins: int = NUM_BINS
) -> float:
    """Return the mean distance in percent between how sure and how often right the answers are, over all bins."""
    bins = measure_reliability(probability_NC, label_N, num_bins)
    distance = sum(each.num_answers * abs(each.confidence - each.accuracy) for each in bins)
    return 100 * distance / max(sum(each.num_answers for each in bins), 1)
