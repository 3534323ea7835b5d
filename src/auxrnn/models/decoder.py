"""The auxiliary network that rebuilds a segment token by token, with scheduled sampling (Bengio et al., 2015).

`O` is what the decoder gives for a token: the D features of a vector, or V logits of a character.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from auxrnn.kernels import lstm as kernel
from auxrnn.models.cells.recurrence import FeedsBack, Recurrence
from auxrnn.models.encoder import Embedding
from auxrnn.models.heads import Head
from auxrnn.structs import RNNState

Feedback = Callable[[Float[Tensor, "M O"], Float[Tensor, " M"]], Tensor]
"""Turns what the decoder gave, and a uniform draw a row, into the next token it is fed."""


class Sampling(NamedTuple):
    """Which input tokens are true, the first always; the others are what the decoder predicted, by a uniform draw."""

    is_true_MS: Bool[Tensor, "M S"]
    uniform_MS: Float[Tensor, "M S"]

    def find_own(self) -> Bool[Tensor, "M S"]:
        """Mark the tokens that the decoder predicts itself."""
        is_own_MS = ~self.is_true_MS
        is_own_MS[:, :1] = False
        return is_own_MS


class Decoder(nn.Module):
    """Recurrent layers of its own, started from the main network's state, and a head on every step.

    It reads through the main network's embedding, which is passed in because it belongs to the encoder. Tied, its
    layers are the main network's own (Dai and Le, 2015).
    """

    cell: Recurrence

    def __init__(self, cell: Recurrence, *, head: Head, feedback: Feedback, is_tied: bool = False) -> None:
        super().__init__()
        if is_tied:
            # As a plain attribute, its weights are not counted, saved and updated twice.
            object.__setattr__(self, "cell", cell)
        else:
            self.cell = cell
        self.head = head
        self.feedback = feedback

    def start(self, main: RNNState) -> RNNState:
        """Start the bottom layers from the main network's top layers, one to one, and the layers above afresh."""
        num_shared = min(self.cell.num_layers, main.h_LBH.shape[0])
        fresh = self.cell.initial_state(main.h_LBH.shape[1])
        h_LMH = torch.cat([main.h_LBH[-num_shared:], fresh.h_LBH[num_shared:]])
        c_LMH = torch.cat([main.c_LBH[-num_shared:], fresh.c_LBH[num_shared:]])
        return RNNState(h_LMH, c_LMH)

    def forward(
        self,
        embedding: Embedding,
        x_MS: Shaped[Tensor, "M S *D"],
        start: RNNState,
        *,
        kept_OF: Float[Tensor, "O F"] | None,
        sampling: Sampling | None = None,
    ) -> Float[Tensor, "M S O"]:
        """Give the prediction after each of the tokens `x_MS`, some of them replaced as `sampling` says."""
        if sampling is None:
            h_MSH = self.cell.run(x_MS, start, embedding=embedding).h_BTH
        elif (fused := self._find_fused(x_MS, embedding)) is not None:
            h_MSH, _ = fused.run_fed(x_MS, start, self._make_feeding(sampling, kept_OF), embedding=embedding)
        else:
            fed_MS = self.feed(embedding, x_MS, start, sampling=sampling, kept_OF=kept_OF)
            h_MSH = self.cell.run(fed_MS, start, embedding=embedding).h_BTH
        output_MSO: Tensor = self.head(h_MSH, kept_OF)
        return output_MSO

    def feed(
        self,
        embedding: Embedding,
        x_MS: Shaped[Tensor, "M S *D"],
        start: RNNState,
        *,
        sampling: Sampling,
        kept_OF: Float[Tensor, "O F"] | None,
    ) -> Shaped[Tensor, "M S *D"]:
        """Replace the tokens not marked true by the decoder's own predictions, token by token.

        What is fed back carries no gradient (section 3.3).
        """
        is_own_MS = sampling.find_own()
        with torch.no_grad():
            fused = self._find_fused(x_MS, embedding)
            if fused is not None:
                _, own_MS = fused.run_fed(x_MS, start, self._make_feeding(sampling, kept_OF), embedding=embedding)
            else:
                own_MS = self._feed_in_torch(embedding, x_MS, start, sampling, kept_OF)
        return _choose(is_own_MS, own_MS, x_MS)

    def _find_fused(self, x_MS: Shaped[Tensor, "M S *D"], embedding: Embedding) -> FeedsBack | None:
        """Give the recurrence that predicts and feeds back in the pass that training differentiates, if it can."""
        is_known = self.head.hidden is not None and self.feedback in FUSED_FEEDBACK
        cell = self.cell
        return cell if is_known and isinstance(cell, FeedsBack) and cell.can_run_fed(x_MS, embedding) else None

    def _make_feeding(self, sampling: Sampling, kept_OF: Float[Tensor, "O F"] | None) -> kernel.Feeding:
        assert self.head.hidden is not None
        head = [self.head.hidden.weight, self.head.hidden.bias, self.head.output_weight(kept_OF), self.head.output.bias]
        uniform_MS = sampling.uniform_MS.float()
        return kernel.Feeding(head, sampling.find_own(), uniform_MS, FUSED_FEEDBACK[self.feedback])

    def _feed_in_torch(
        self,
        embedding: Embedding,
        x_MS: Shaped[Tensor, "M S *D"],
        start: RNNState,
        sampling: Sampling,
        kept_OF: Float[Tensor, "O F"] | None,
    ) -> Shaped[Tensor, "M S *D"]:
        """Predict token by token, without a graph. Rows whose tokens are all true are not run."""
        is_own_MS = sampling.find_own()
        row_R = is_own_MS.any(dim=1).nonzero()[:, 0]
        if len(row_R) == 0:
            return x_MS
        x_RS, is_own_RS, uniform_RS = x_MS[row_R], is_own_MS[row_R], sampling.uniform_MS[row_R]
        state = start.select(row_R)
        for step in range(int(is_own_RS.any(dim=0).nonzero().max())):
            run = self.cell.run(x_RS[:, step : step + 1], state, embedding=embedding)
            state = run.state
            guess_R = self.feedback(self.head(run.h_BTH[:, 0], kept_OF), uniform_RS[:, step])
            x_RS[:, step + 1] = _choose(is_own_RS[:, step + 1], guess_R, x_RS[:, step + 1])
        return x_MS.index_copy(0, row_R, x_RS)


def feed_vector(output_MO: Float[Tensor, "M O"], uniform_M: Float[Tensor, " M"]) -> Float[Tensor, "M O"]:  # noqa: ARG001 - the shape of Feedback
    """Feed the predicted vector itself."""
    return output_MO


def feed_sampled(output_MO: Float[Tensor, "M O"], uniform_M: Float[Tensor, " M"]) -> Shaped[Tensor, " M"]:
    """Feed a character drawn from the softmax, by the draw that was made beforehand."""
    cumulative_MO = output_MO.softmax(dim=1).cumsum(dim=1)
    return (cumulative_MO[:, :-1] < uniform_M[:, None]).sum(dim=1)


def feed_argmax(output_MO: Float[Tensor, "M O"], uniform_M: Float[Tensor, " M"]) -> Shaped[Tensor, " M"]:  # noqa: ARG001 - the shape of Feedback
    """Feed the likeliest character."""
    return output_MO.argmax(dim=1)


FUSED_FEEDBACK: dict[Feedback, int] = {
    feed_vector: kernel.FEED_VECTOR,
    feed_sampled: kernel.FEED_SAMPLED,
    feed_argmax: kernel.FEED_ARGMAX,
}
"""The rules that the fused kernel knows."""


def _choose(condition: Bool[Tensor, "*M"], yes: Tensor, no: Tensor) -> Tensor:
    """Choose whole tokens, which may be vectors or single numbers."""
    return torch.where(condition.reshape(*condition.shape, *[1] * (yes.dim() - condition.dim())), yes, no)
