"""Loss and accuracy of a split, without gradients."""

import functools
import itertools
import operator
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from auxrnn.data.sequences import Split, by_length, in_order
from auxrnn.errors import RunError
from auxrnn.models.network import LossTerms, Trainable
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.processes import ALONE, Processes

BATCH_SIZE = 64
"""Sequences that are classified together, unless told otherwise."""


class Evaluation(NamedTuple):
    """Loss and confusion matrix of a classifier on a split: true classes in rows, answers in columns."""

    loss: float
    confusion_CC: Int[Tensor, "C C"]

    @property
    def num_examples(self) -> int:
        """How many sequences were classified."""
        return int(self.confusion_CC.sum())

    @property
    def accuracy(self) -> float:
        """Correct answers in percent."""
        return 100 * int(self.confusion_CC.diagonal().sum()) / max(self.num_examples, 1)

    @property
    def recall(self) -> list[float | None]:
        """Correct answers in percent of each class; None for a class without examples."""
        pairs = zip(self.confusion_CC.diagonal().tolist(), self.confusion_CC.sum(dim=1).tolist(), strict=True)
        return [100 * right / total if total else None for right, total in pairs]

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall in percent of the classes that have examples."""
        found = [recall for recall in self.recall if recall is not None]
        return sum(found) / max(len(found), 1)

    @property
    def macro_f1(self) -> float:
        """Mean F1 score in percent of the classes that occur, as examples or as answers."""
        right_C = self.confusion_CC.diagonal().double()
        total_C = (self.confusion_CC.sum(dim=0) + self.confusion_CC.sum(dim=1)).double()
        f1_C = (2 * right_C / total_C)[total_C > 0]
        return 100 * float(f1_C.mean()) if len(f1_C) else 0.0


@torch.inference_mode()
def evaluate(network: Trainable, batches: Iterable[SequenceBatch], processes: Processes = ALONE) -> Evaluation:
    """Classify every sequence once; several processes have batches in turns, and all get the bits of one alone."""
    num_classes, losses = network.classifier.output.out_features, []
    confusion_CC = torch.zeros(num_classes, num_classes, dtype=torch.long)
    for batch in (batch.to(network.device) for batch in batches):
        loss, counts_CC = _count(network.logits(batch), batch.label_B)
        losses.append(float(loss))
        confusion_CC += counts_CC.cpu()
    (total,), confusion_CC = _add_in_order(processes, [losses]), processes.add_up(confusion_CC)
    assert confusion_CC.any(), "a split to evaluate must not be empty"
    return Evaluation(total / int(confusion_CC.sum()), confusion_CC)


def _add_in_order(processes: Processes, columns: list[list[float]]) -> list[float]:
    """Return the sums of numbers that each process has of its own batches, rounded as if one had all of them."""
    value_NK = torch.tensor(columns, dtype=torch.float64).T
    return [functools.reduce(operator.add, column, 0.0) for column in processes.interleave(value_NK).T.tolist()]


def count_answers(logits_NC: Float[Tensor, "B C"], label_N: Int[Tensor, " B"]) -> Evaluation:
    """Return the evaluation of logits that were computed already."""
    total, confusion_CC = _count(logits_NC, label_N)
    return Evaluation(float(total) / max(len(label_N), 1), confusion_CC)


def _count(logits_BC: Float[Tensor, "B C"], label_B: Int[Tensor, " B"]) -> tuple[Tensor, Tensor]:
    """Return the sum of the losses, and how often each class was taken for each."""
    num_classes = logits_BC.shape[1]
    loss = torch.nn.functional.cross_entropy(logits_BC, label_B, reduction="sum")
    pairs = torch.bincount(label_B * num_classes + logits_BC.argmax(dim=1), minlength=num_classes**2)
    return loss, pairs.reshape(num_classes, -1)


@torch.inference_mode()
def predict_logits(network: Trainable, batches: Iterable[SequenceBatch]) -> Float[Tensor, "B C"]:
    """Return the logits of every sequence."""
    found = torch.cat([network.logits(batch.to(network.device)).cpu() for batch in batches])
    if not bool(found.isfinite().all()):
        raise RunError("a sequence holds numbers too large for this network; scale it as the training data was")
    return found


def predict_split(
    network: Trainable, split: Split, *, batch_size: int = BATCH_SIZE, processes: Processes = ALONE
) -> Float[Tensor, "B C"]:
    """Return the logits of a split in its own order, computed in the one that is fastest."""
    order_N, (rank, num_processes) = by_length(split), processes.turn
    output, is_own_N = network.classifier.output, np.arange(len(order_N)) // batch_size % num_processes == rank
    logits_NC = torch.zeros(len(order_N), output.out_features, dtype=output.weight.dtype)
    if is_own_N.any():
        own = in_order(split.select(order_N), batch_size, processes.turn)
        logits_NC[torch.from_numpy(is_own_N)] = predict_logits(network, own)
    return processes.add_up(logits_NC)[np.argsort(order_N)]


@torch.inference_mode()
def evaluate_auxiliary(
    network: Trainable, batches: Iterable[SequenceBatch], *, seed: int, processes: Processes = ALONE
) -> float:
    """Return the auxiliary loss per token on segments that are the same at every call, with true tokens throughout."""
    totals, counts, (rank, num_processes) = [], [], processes.turn
    terms = LossTerms(is_supervised=False, is_auxiliary=True, supervised_window=0)
    for index, batch in zip(itertools.count(rank, num_processes), batches, strict=False):
        draws = Draws(seed, "evaluation", index)
        loss = network.losses(batch.to(network.device), terms=terms, draws=draws, is_training=False).auxiliary
        assert loss is not None
        totals.append(float(loss.total))
        counts.append(float(loss.num_tokens))
    total, num_tokens = _add_in_order(processes, [totals, counts])
    return total / num_tokens if num_tokens else 0.0
