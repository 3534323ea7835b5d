"""A whole classifier of sequences and its losses: recurrent (`Network`) or not (`Baseline`), with the same methods.

Here the supervised and the auxiliary loss meet (section 3.3).
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from auxrnn import bptt, exact
from auxrnn.auxiliary import Objective
from auxrnn.config import Readout, SupervisedWindow
from auxrnn.models import dropout
from auxrnn.models.encoder import Encoder, Head
from auxrnn.structs import Draws, LossSum, RNNState, SequenceBatch, Share

UNLABELED = -1
"""The label of a sequence whose class is unknown; it counts in the auxiliary loss alone."""


class LossTerms(NamedTuple):
    """Which losses count, and how far the gradient of the supervised one reaches."""

    is_supervised: bool
    is_auxiliary: bool
    supervised_window: SupervisedWindow
    label_smoothing: float = 0.0


class Losses(NamedTuple):
    """The losses of one batch. A loss that does not count is None."""

    supervised: LossSum | None
    auxiliary: LossSum | None
    num_correct: Int[Tensor, ""] | None

    def combine(self, auxiliary_weight: float) -> Float[Tensor, ""]:
        """Divide each sum by its count, once, and add them up; without labels the auxiliary loss is not weighted."""
        parts = []
        if self.supervised is not None:
            parts.append(self.supervised.mean())
        if self.auxiliary is not None:
            weight = 1.0 if self.supervised is None else auxiliary_weight
            parts.append(weight * self.auxiliary.mean())
        return torch.stack(parts).sum()


class Network(nn.Module):
    """A recurrent classifier: the main network, the head on its outputs, and the auxiliary objective.

    With the readout `mean` the head sees the mean of all outputs beside the last one.
    """

    def __init__(
        self, encoder: Encoder, *, classifier: Head, objective: Objective | None, readout: Readout = "last"
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.classifier = classifier
        self.objective = objective
        self.readout = readout

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.classifier.output.weight.device

    def logits(self, batch: SequenceBatch, *, window: SupervisedWindow = 0) -> Float[Tensor, "B C"]:
        """Return the logits of the classes without drop-connect; gradients reach the last `window` steps."""
        return self._classify(batch, window, None, None)

    def losses(
        self,
        batch: SequenceBatch,
        *,
        terms: LossTerms,
        draws: Draws,
        true_probability: float = 1.0,
        is_training: bool = True,
    ) -> Losses:
        """Return the losses that `terms` names, ready for `backward`.

        Both share one pass over the batch, unless the readout is `mean` or the window exact. `true_probability` is that
        of scheduled sampling. Outside of training nothing is dropped and no token sampled.
        """
        drawn = draws if is_training else None
        with _dropping(drawn, batch.share, self.encoder, self.objective):
            segments, windows = None, []
            if terms.is_auxiliary:
                assert self.objective is not None, "an auxiliary loss needs an objective"
                segments = self.objective.sample(batch.length_B, rng=draws.rng("segments"), share=batch.share)
                windows.append(self.objective.gradient_window(batch, segments))
            window, is_last = terms.supervised_window, terms.is_supervised and self.readout == "last"
            if is_last and window != "exact":
                windows.append(bptt.final_window(batch.x_BT, window=window))
            states = bptt.states_at(self.encoder, batch.x_BT, windows, first_B=batch.first_B) if windows else []
            auxiliary = supervised = num_correct = None
            if segments is not None and self.objective is not None:
                auxiliary = self.objective.loss(
                    self.encoder, batch, segments, states[0], draws=drawn, true_probability=true_probability
                )
            if terms.is_supervised:
                state = states[-1] if is_last and window != "exact" else None
                logits_BC = self._classify(batch, terms.supervised_window, state, _draw_mask(self.classifier, drawn))
                supervised, num_correct = classification_loss(
                    logits_BC, batch.label_B, smoothing=terms.label_smoothing, weight_B=batch.weight_B
                )
        return Losses(supervised, auxiliary, num_correct)

    def classify(
        self,
        state: RNNState,
        mask_CF: Float[Tensor, "C F"] | None = None,
        *,
        mean_BH: Float[Tensor, "B H"] | None = None,
    ) -> Float[Tensor, "B C"]:
        """Return the logits for the top layer's last output and, with the readout `mean`, the mean of all outputs."""
        last_BH = state.h_LBH[-1]
        logits_BC: Tensor = self.classifier(last_BH if mean_BH is None else torch.cat([last_BH, mean_BH], 1), mask_CF)
        return logits_BC

    def _classify(
        self,
        batch: SequenceBatch,
        window: SupervisedWindow,
        state: RNNState | None,
        mask_CF: Float[Tensor, "C F"] | None,
    ) -> Float[Tensor, "B C"]:
        """Return the logits of a batch, from its final states if they are known already."""
        if state is not None:
            return self.classify(state, mask_CF)
        read: Callable[..., RNNState] = exact.final_states
        read_with_mean: Callable[..., tuple[RNNState, Tensor]] = exact.final_states_and_mean
        if window != "exact":
            read = partial(bptt.final_states, window=window)
            read_with_mean = partial(bptt.final_states_and_mean, window=window)
        if self.readout == "last":
            return self.classify(read(self.encoder, batch.x_BT, first_B=batch.first_B), mask_CF)
        state, mean_BH = read_with_mean(self.encoder, batch.x_BT, first_B=batch.first_B)
        return self.classify(state, mask_CF, mean_BH=mean_BH)


class Baseline(nn.Module):
    """A published model that takes whole sequences at once, and the head on its features.

    `reader(x_BT, first_B)` returns the features; it may use dropout or batch normalization in training.
    """

    def __init__(self, reader: nn.Module, *, classifier: Head) -> None:
        super().__init__()
        self.reader = reader
        self.classifier = classifier

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.classifier.output.weight.device

    def logits(self, batch: SequenceBatch) -> Float[Tensor, "B C"]:
        """Return the logits of the classes as in evaluation."""
        return self._classify(batch, None)

    def losses(
        self,
        batch: SequenceBatch,
        *,
        terms: LossTerms,
        draws: Draws,
        true_probability: float = 1.0,  # noqa: ARG002 - there is no scheduled sampling here
        is_training: bool = True,
    ) -> Losses:
        """Return the supervised loss, ready for `backward`; a baseline has no auxiliary one."""
        assert not terms.is_auxiliary, "a baseline learns from labels alone"
        logits_BC = self._classify(batch, draws if is_training else None)
        supervised, num_correct = classification_loss(
            logits_BC, batch.label_B, smoothing=terms.label_smoothing, weight_B=batch.weight_B
        )
        return Losses(supervised, None, num_correct)

    def _classify(self, batch: SequenceBatch, draws: Draws | None) -> Float[Tensor, "B C"]:
        with _dropping(draws, batch.share, self.reader):
            feature_BF = self.reader(batch.x_BT, batch.first_B)
        logits_BC: Tensor = self.classifier(feature_BF, _draw_mask(self.classifier, draws))
        return logits_BC


Trainable = Network | Baseline
"""Every system: all of training, evaluation and prediction is written against both."""


def classification_loss(
    logits_BC: Float[Tensor, "B C"],
    label_B: Int[Tensor, " B"],
    *,
    smoothing: float = 0.0,
    weight_B: Float[Tensor, " B"] | None = None,
) -> tuple[LossSum, Int[Tensor, ""]]:
    """Return the cross-entropies summed over the labeled rows, each with its weight, and the number of correct answers.

    The sum counts rows, whatever their weights: these have a mean of 1 over the training split, not in each batch.
    """
    options: dict[str, Any] = {"label_smoothing": smoothing, "ignore_index": UNLABELED}
    if weight_B is None:
        total = F.cross_entropy(logits_BC, label_B, reduction="sum", **options)
    else:
        total = (weight_B * F.cross_entropy(logits_BC, label_B, reduction="none", **options)).sum()
    num_correct = (logits_BC.argmax(dim=1) == label_B).sum()
    return LossSum(total, (label_B != UNLABELED).sum()), num_correct


@contextlib.contextmanager
def _dropping(draws: Draws | None, share: Share | None, *parts: Any) -> Iterator[None]:
    """Let dropout layers of those parts that are modules drop what `draws` says, and nothing without it or later.

    With a share, they draw for the whole batch.
    """
    modules = [part for part in parts if isinstance(part, nn.Module)]
    for module in modules:
        module.train(draws is not None)
    before = dropout.SHARE.set(share)
    try:
        # They draw from torch's global generator alone.
        with torch.random.fork_rng(enabled=draws is not None):
            if draws is not None:
                torch.manual_seed(draws.rng("dropout").initial_seed())
            yield
    finally:
        dropout.SHARE.reset(before)
        for module in modules:
            module.eval()


def _draw_mask(classifier: Head, draws: Draws | None) -> Float[Tensor, "C F"] | None:
    return None if draws is None else classifier.draw_dropconnect_mask(draws.rng("classifier drop-connect"))
