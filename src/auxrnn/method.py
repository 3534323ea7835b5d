"""The paper's two methods as PyTorch modules, for training loops of one's own: `RLSTM` and `PLSTM`.

They are the networks that `auxrnn train` builds: same parts, same losses, same names of weights.
"""

from typing import ClassVar, Literal

import torch
from torch import Generator, Tensor

from auxrnn.build import InputSpec, build_parts
from auxrnn.config import (
    DataConfig,
    GateInit,
    ModelConfig,
    ObjectiveConfig,
    Order,
    Placement,
    Readout,
    RunConfig,
    SegmentConfig,
    Window,
)
from auxrnn.models.network import UNLABELED, LossTerms, Network
from auxrnn.presets import METHOD
from auxrnn.structs import Draws, LossSum, SequenceBatch

Lengths = Tensor | list[int]
RECONSTRUCT_ONLY = {"placement": METHOD["placement"], "order": "reversed", "feedback": "sample", "tie_decoder": False}


class SequenceClassifier(Network):
    """What `RLSTM` and `PLSTM` share: logits, and losses with truncated back-propagation.

    Inputs are `x [B, T, D]` of floats, or `x [B, T]` of tokens if there is a `vocabulary_size`. Sequences of different
    lengths are padded at their end, with `lengths [B]`; what stands in the padding has no effect.
    """

    objective_name: ClassVar[Literal["reconstruct", "predict"]]

    def __init__(  # noqa: PLR0913 - the method's options by name
        self,
        input_size: int | None = None,
        *,
        num_classes: int,
        vocabulary_size: int | None = None,
        window: Window = 300,
        auxiliary_window: Window | None = None,
        segment_length: Window = 75,
        num_segments: int = 1,
        auxiliary_weight: float = METHOD["auxiliary_weight"],
        normalize_auxiliary: bool = METHOD["normalize_auxiliary"],
        placement: Placement = METHOD["placement"],
        order: Order = "reversed",
        feedback: Literal["sample", "argmax"] = "sample",
        hidden_size: int = 128,
        num_layers: int = 1,
        embedding_size: int = 128,
        decoder_layers: int = 2,
        tie_decoder: bool = False,
        head_size: int = 256,
        drop_connect: float = METHOD["drop_connect"],
        gate_init: GateInit = METHOD["gate_init"],
        longest: int = 1000,
        readout: Readout = "last",
    ) -> None:
        if (input_size is None) == (vocabulary_size is None):
            raise ValueError("pass input_size for sequences of vectors, or vocabulary_size for sequences of tokens")
        given = {"placement": placement, "order": order, "feedback": feedback, "tie_decoder": tie_decoder}
        if self.objective_name == "predict" and given != RECONSTRUCT_ONLY:
            raise ValueError(f"{', '.join(given)} have no effect on PLSTM; leave them out, or use RLSTM")
        model = ModelConfig(
            hidden_size=hidden_size,
            num_layers=num_layers,
            embedding_size=embedding_size,
            decoder_layers=decoder_layers,
            tie_decoder=tie_decoder,
            head_size=head_size,
            drop_connect=drop_connect,
            gate_init=gate_init,
            readout=readout,
        )
        loss = ObjectiveConfig(
            objective=self.objective_name,
            supervised_window=window,
            auxiliary_window=segment_length if auxiliary_window is None else auxiliary_window,
            auxiliary_weight=auxiliary_weight,
            feedback=feedback,
        )
        segments = SegmentConfig(
            num_segments=num_segments, segment_length=segment_length, placement=placement, order=order
        )
        config = RunConfig(data=DataConfig(data="tensors"), model=model, segments=segments, loss=loss)
        spec = InputSpec(input_size or 1, vocabulary_size, num_classes, num_steps=longest)
        super().__init__(**build_parts(config, spec))
        self.input_size, self.vocabulary_size, self.num_classes = input_size, vocabulary_size, num_classes
        self.window: Window = window
        self.auxiliary_weight, self.normalize_auxiliary = auxiliary_weight, normalize_auxiliary

    def forward(self, x: Tensor, lengths: Lengths | None = None) -> Tensor:
        """Return the logits `[B, C]`, without drop-connect; gradients reach the last `window` steps."""
        return self.logits(self._batch(x, None, lengths), window=self.window if torch.is_grad_enabled() else 0)

    def loss(
        self,
        x: Tensor,
        y: Tensor,
        lengths: Lengths | None = None,
        rng: Generator | None = None,
        *,
        true_probability: float = 1.0,
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """Return the classification loss plus `auxiliary_weight` times the auxiliary loss, with their gradients cut.

        `y [B]` holds classes, -1 for sequences without a label, which count in the auxiliary loss only. Anchors and
        dropped weights are drawn from `rng`, or from torch's global generator. `true_probability` is that of scheduled
        sampling: the probability that the decoder is fed a true token instead of its own prediction; the paper lowers
        it from 1 to 0 over 100,000 updates (`auxrnn.true_token_probability`). In evaluation mode nothing is dropped.
        """
        terms = LossTerms(True, True, self.window, label_smoothing)
        return self._loss(self._batch(x, y, lengths), terms, rng, true_probability)

    def pretrain_loss(
        self, x: Tensor, lengths: Lengths | None = None, rng: Generator | None = None, *, true_probability: float = 1.0
    ) -> Tensor:
        """Return the auxiliary loss alone, for pretraining on sequences without labels; options as in `loss`."""
        return self._loss(self._batch(x, None, lengths), LossTerms(False, True, 0), rng, true_probability)

    def _loss(self, batch: SequenceBatch, terms: LossTerms, rng: Generator | None, true_probability: float) -> Tensor:
        device = "cpu" if rng is None else rng.device
        draws = Draws(int(torch.randint(2**62, (), generator=rng, device=device)), "loss", 0)
        losses = self.losses(
            batch, terms=terms, draws=draws, true_probability=true_probability, is_training=self.training
        )
        if self.normalize_auxiliary and losses.auxiliary is not None:
            total, num_tokens = losses.auxiliary
            losses = losses._replace(auxiliary=LossSum(total / batch_constant_loss(batch), num_tokens))
        return losses.combine(self.auxiliary_weight)

    def _batch(self, x: Tensor, y: Tensor | None, lengths: Lengths | None) -> SequenceBatch:
        """Return the sequences as the library holds them: rows that end together."""
        self._check(x, y)
        x = x.to(self.classifier.output.weight.dtype) if x.is_floating_point() else x.long()
        label_B = torch.full((len(x),), UNLABELED, device=x.device) if y is None else y.long()
        return SequenceBatch(x, label_B) if lengths is None else align_right(x, label_B, lengths)

    def _check(self, x: Tensor, y: Tensor | None) -> None:
        is_token = self.vocabulary_size is not None
        wanted = "[B, T] of integers" if is_token else f"[B, T, {self.input_size}] of floats"
        is_shape_fit = x.dim() == 2 if is_token else x.dim() == 3 and x.shape[2] == self.input_size
        if x.is_floating_point() == is_token or not is_shape_fit or 0 in x.shape:
            raise ValueError(f"x has shape {list(x.shape)} and type {x.dtype}; this model takes {wanted}")
        if y is not None and (y.shape != x.shape[:1] or y.is_floating_point()):
            raise ValueError(f"y has shape {list(y.shape)} and type {y.dtype}; it must be [{len(x)}] of classes")


class RLSTM(SequenceClassifier):
    """An LSTM classifier whose auxiliary loss reconstructs segments of the past (section 3.1).

    The classification loss is back-propagated through the last `window` steps only. At `num_segments` random anchors a
    decoder rebuilds `segment_length` steps that the LSTM has read; that loss reaches `auxiliary_window` steps further
    back (default: `segment_length`). Both windows may be "full". With `normalize_auxiliary` the auxiliary loss is
    divided by that of a constant prediction, so that one `auxiliary_weight` suits inputs of any scale. `longest` is
    roughly the length of the longest sequences: chrono gates start with memories of all lengths up to it.

    The defaults are those of `auxrnn train`'s fast recipe, meant for Adam with a learning rate of 2e-3 to 8e-3. For the
    paper's: `segment_length=600, auxiliary_window=300, placement="past_future", gate_init="forget-one",
    drop_connect=0.5, auxiliary_weight=1.0, normalize_auxiliary=False`.
    """

    objective_name = "reconstruct"


class PLSTM(SequenceClassifier):
    """An LSTM classifier whose auxiliary loss predicts segments of the future, token by token (section 3.2).

    As `RLSTM`, but from `num_segments` random anchors on, layers above the LSTM predict the next `segment_length`
    steps, and that loss is cut every `auxiliary_window` steps. `decoder_layers` counts the main LSTM in. The options
    `placement`, `order`, `feedback` and `tie_decoder` are the `RLSTM`'s alone.
    """

    objective_name = "predict"


def batch_constant_loss(batch: SequenceBatch) -> Tensor:
    """Return the loss per step of the best constant prediction: the variance of vectors, the entropy of tokens."""
    num_columns = batch.x_BT.shape[1]
    first_B = num_columns - batch.length_B
    step_K = batch.x_BT[torch.arange(num_columns, device=first_B.device) >= first_B[:, None]]
    if step_K.is_floating_point():
        loss = step_K.detach().var(dim=0, correction=0).sum()
    else:
        loss = torch.special.entr(torch.bincount(step_K) / len(step_K)).sum()
    # Where nothing ever changes there is nothing to divide by.
    return torch.where(loss > 0, loss, 1.0)


def align_right(x: Tensor, label_B: Tensor, lengths: Lengths) -> SequenceBatch:
    """Return sequences that begin at column 0 and have these lengths, moved so that they end together."""
    length_B = torch.as_tensor(lengths, device=x.device).long()
    num_rows, num_columns = x.shape[:2]
    if length_B.shape != (num_rows,) or bool((length_B < 1).any()) or bool((length_B > num_columns).any()):
        raise ValueError(f"lengths must be {num_rows} numbers from 1 to {num_columns}, one for each row of x")
    first_B = num_columns - length_B
    # Padding repeats the row's first step, so that it is finite where the row is.
    column_BT = (torch.arange(num_columns, device=x.device) - first_B[:, None]).clamp(min=0)
    row_B1 = torch.arange(num_rows, device=x.device)[:, None]
    return SequenceBatch(x[row_B1, column_BT], label_B, first_B)
