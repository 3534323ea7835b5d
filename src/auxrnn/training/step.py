"""One batch in, losses and gradients out: where the supervised and the auxiliary loss meet (section 3.3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from auxrnn.bptt import Reading, last_states, read, read_all, read_with_mean
from auxrnn.config import Readout, Window
from auxrnn.errors import UsageError
from auxrnn.models.encoder import Encoder
from auxrnn.models.heads import Head
from auxrnn.structs import Draws, LossSum, RNNState, Segments, SequenceBatch


@runtime_checkable
class Objective(Protocol):
    """What the two auxiliary objectives share: where, from which states, and how much is lost."""

    def sample(self, seq_len_B: Int[Tensor, " B"], *, rng: torch.Generator) -> Segments:
        """Draw segments and their anchors."""

    def reading(self, batch: SequenceBatch, segments: Segments) -> Reading:
        """Ask for the main states that the segments start from."""

    def loss(
        self,
        encoder: Encoder,
        batch: SequenceBatch,
        segments: Segments,
        state: RNNState,
        *,
        draws: Draws | None,
        true_probability: float,
    ) -> LossSum:
        """Sum the losses of all tokens."""


class Network(nn.Module):
    """A recurrent system: the main network, the classifier on what it read, and what the auxiliary loss needs.

    With the readout `mean` the classifier sees the mean of all outputs beside the last one.
    """

    def __init__(
        self, encoder: Encoder, *, classifier: Head, objective: nn.Module | None, readout: Readout = "last"
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.classifier = classifier
        self.objective = objective
        self.readout = readout

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return self.classifier.output.weight.device

    def classify(
        self,
        state: RNNState,
        kept_CF: Float[Tensor, "C F"] | None = None,
        *,
        mean_BH: Float[Tensor, "B H"] | None = None,
    ) -> Float[Tensor, "B C"]:
        """Return the logits of the classes, from the top layer's last output and, if read out, the mean of all."""
        last_BH = state.h_LBH[-1]
        logits_BC: Tensor = self.classifier(last_BH if mean_BH is None else torch.cat([last_BH, mean_BH], 1), kept_CF)
        return logits_BC

    def logits(self, batch: SequenceBatch) -> Float[Tensor, "B C"]:
        """Read whole sequences as they are used, without gradients for the main network."""
        if self.readout == "mean":
            state, mean_BH = read_with_mean(self.encoder, batch.x_BT, window=0, first_B=batch.first_B)
            return self.classify(state, mean_BH=mean_BH)
        return self.classify(read(self.encoder, batch.x_BT, window=0, first_B=batch.first_B))


class Baseline(nn.Module):
    """A published model that takes whole sequences at once, and the classifier on the features that it gives.

    `reader(x_BT, first_B)` gives them; it may drop activations or normalize over the batch in training.
    """

    def __init__(self, reader: nn.Module, *, classifier: Head) -> None:
        super().__init__()
        self.reader = reader
        self.classifier = classifier

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return self.classifier.output.weight.device

    def logits(self, batch: SequenceBatch, draws: Draws | None = None) -> Float[Tensor, "B C"]:
        """Give the logits of the classes; with `draws` as in training, without as in use."""
        self.reader.train(draws is not None)
        if draws is None:
            used_BC: Tensor = self.classifier(self.reader(batch.x_BT, batch.first_B))
            return used_BC
        with _counted(draws.rng("dropout")):
            feature_BF = self.reader(batch.x_BT, batch.first_B)
        kept_CF = self.classifier.draw_kept(draws.rng("classifier drop-connect"))
        trained_BC: Tensor = self.classifier(feature_BF, kept_CF)
        return trained_BC


Trainable = Network | Baseline
"""Every system: all of training, evaluation and prediction is written against both."""


def as_recurrent(network: Trainable) -> Network:
    """Give a network as one that reads step by step, which not all do."""
    if isinstance(network, Baseline):
        raise UsageError("this network takes whole sequences at once, not step by step; take one that is recurrent")
    return network


@contextmanager
def _counted(rng: torch.Generator) -> Iterator[None]:
    """Let torch's own layers, which take no generator, draw from one that is counted."""
    with torch.random.fork_rng():
        torch.manual_seed(rng.initial_seed())
        yield


class Task(NamedTuple):
    """Which losses count, and how far the supervised one reaches."""

    is_supervised: bool
    is_auxiliary: bool
    supervised_window: Window
    label_smoothing: float = 0.0


class Losses(NamedTuple):
    """What one batch gave. A loss that does not count in this phase is None."""

    supervised: LossSum | None
    auxiliary: LossSum | None
    num_correct: Int[Tensor, ""] | None

    def combine(self, auxiliary_weight: float) -> Float[Tensor, ""]:
        """Divide each sum by its count, once, and add them up; alone, the auxiliary loss has no weight."""
        parts = []
        if self.supervised is not None:
            parts.append(self.supervised.mean())
        if self.auxiliary is not None:
            weight = 1.0 if self.supervised is None else auxiliary_weight
            parts.append(weight * self.auxiliary.mean())
        return torch.stack(parts).sum()


def compute_losses(
    network: Trainable, batch: SequenceBatch, *, task: Task, draws: Draws, true_probability: float
) -> Losses:
    """Read a batch once and give the losses that the task counts, ready for `backward`."""
    if isinstance(network, Baseline):
        assert not task.is_auxiliary, "a baseline learns from labels alone"
        logits_BC = network.logits(batch, draws)
        supervised, num_correct = classification_loss(logits_BC, batch.label_B, label_smoothing=task.label_smoothing)
        return Losses(supervised, None, num_correct)
    return _compute_recurrent(network, batch, task=task, draws=draws, true_probability=true_probability)


def _compute_recurrent(
    network: Network, batch: SequenceBatch, *, task: Task, draws: Draws, true_probability: float
) -> Losses:
    """Read main states once for both losses, each with the graph that it may use."""
    readings: list[Reading] = []
    segments = None
    if task.is_auxiliary:
        objective = as_objective(network)
        segments = objective.sample(batch.length_B, rng=draws.rng("segments"))
        readings.append(objective.reading(batch, segments))
    if task.is_supervised and network.readout == "last":
        readings.append(last_states(batch.x_BT, window=task.supervised_window))
    states = read_all(network.encoder, batch.x_BT, readings, first_B=batch.first_B) if readings else []
    auxiliary = supervised = num_correct = None
    if segments is not None:
        auxiliary = as_objective(network).loss(
            network.encoder, batch, segments, states[0], draws=draws, true_probability=true_probability
        )
    if task.is_supervised:
        kept_CF = network.classifier.draw_kept(draws.rng("classifier drop-connect"))
        mean_BH = None
        if network.readout == "mean":
            window = task.supervised_window
            state, mean_BH = read_with_mean(network.encoder, batch.x_BT, window=window, first_B=batch.first_B)
            states.append(state)
        logits_BC = network.classify(states[-1], kept_CF, mean_BH=mean_BH)
        supervised, num_correct = classification_loss(logits_BC, batch.label_B, label_smoothing=task.label_smoothing)
    return Losses(supervised, auxiliary, num_correct)


def classification_loss(
    logits_BC: Float[Tensor, "B C"], label_B: Int[Tensor, " B"], *, label_smoothing: float = 0.0
) -> tuple[LossSum, Int[Tensor, ""]]:
    """Sum the cross-entropies of the classes, and count the right answers."""
    total = F.cross_entropy(logits_BC, label_B, reduction="sum", label_smoothing=label_smoothing)
    num_correct = (logits_BC.argmax(dim=1) == label_B).sum()
    return LossSum(total, torch.tensor(len(label_B), device=label_B.device)), num_correct


def as_objective(network: Network) -> Objective:
    """Give the network's auxiliary objective, which a task with an auxiliary loss must have."""
    assert isinstance(network.objective, Objective), "a task with an auxiliary loss needs an objective"
    return network.objective


def back_propagate(network: nn.Module, loss: Float[Tensor, ""], *, clip_norm: float) -> Float[Tensor, ""]:
    """Set the gradients of a loss, clipped by their global norm; give the norm before clipping."""
    network.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return nn.utils.clip_grad_norm_(network.parameters(), clip_norm or float("inf"))
