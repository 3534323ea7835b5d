"""The auxiliary network that rebuilds a segment token by token, with scheduled sampling (Bengio et al., 2015).

`O` is the decoder's output for a token: the D features of a vector, or V logits of a character.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from auxrnn.kernels import gated as kernel
from auxrnn.models.cells.gated import Gated
from auxrnn.models.cells.recurrence import Recurrence
from auxrnn.models.encoder import Embedding, Head
from auxrnn.structs import RNNState

FeedbackRule = Callable[[Float[Tensor, "M O"], Float[Tensor, " M"]], Tensor]
"""Turns the decoder's output, and a uniform draw a row, into its next input token."""


class Sampling(NamedTuple):
    """Which input tokens are true, the first always; the others are what the decoder predicted.

    Of a step's output, the uniform draw of that step chooses the token to feed back at the next one.
    """

    is_true_MS: Bool[Tensor, "M S"]
    uniform_MS: Float[Tensor, "M S"]

    def find_fed_back(self) -> Bool[Tensor, "M S"]:
        """Mark the tokens that the decoder predicts itself."""
        is_fed_back_MS = ~self.is_true_MS
        is_fed_back_MS[:, :1] = False
        return is_fed_back_MS


class Decoder(nn.Module):
    """Recurrent layers of its own, started from the main network's state, and a head on every step.

    It reads through the main network's embedding, which is passed in because it belongs to the encoder. Tied, its
    layers are the main network's own (Dai and Le, 2015).
    """

    cell: Recurrence

    def __init__(self, cell: Recurrence, *, head: Head, feedback: FeedbackRule, is_tied: bool = False) -> None:
        super().__init__()
        if is_tied:
            # As a plain attribute, its weights are not counted, saved and updated twice.
            object.__setattr__(self, "cell", cell)
        else:
            self.cell = cell
        self.head = head
        self.feedback = feedback

    def start(self, main: RNNState) -> RNNState:
        """Start the bottom layers from the main network's top layers, one to one, and the layers above from zeros."""
        num_shared = min(self.cell.num_layers, main.h_LBH.shape[0])
        fresh = self.cell.initial_state(main.h_LBH.shape[1])
        parts = zip(main, fresh, strict=True)
        return RNNState(*(torch.cat([part[-num_shared:], zeros[num_shared:]]) for part, zeros in parts))

    def forward(
        self,
        embedding: Embedding,
        x_MS: Shaped[Tensor, "M S *D"],
        start: RNNState,
        *,
        dropconnect_mask_OF: Float[Tensor, "O F"] | None,
        sampling: Sampling | None = None,
    ) -> Float[Tensor, "M S O"]:
        """Return the prediction after each of the tokens `x_MS`, some of them replaced as `sampling` says."""
        if sampling is None:
            h_MSH, _ = self.cell(x_MS, start, embedding=embedding)
        else:
            h_MSH, _ = self.generate(embedding, x_MS, start, sampling, dropconnect_mask_OF)
        output_MSO: Tensor = self.head(h_MSH, dropconnect_mask_OF)
        return output_MSO

    def generate(
        self,
        embedding: Embedding,
        x_MS: Shaped[Tensor, "M S *D"],
        start: RNNState,
        sampling: Sampling,
        dropconnect_mask_OF: Float[Tensor, "O F"] | None = None,
    ) -> tuple[Float[Tensor, "M S H"], Shaped[Tensor, "M S *D"]]:
        """Return outputs and tokens, those that are not true replaced by the decoder's own predictions, one by one.

        What is fed back carries no gradient (section 3.3).
        """
        is_fed_back_MS = sampling.find_fed_back()
        cell, hidden, rule = self.cell, self.head.hidden, FUSED_FEEDBACK.get(self.feedback)
        if isinstance(cell, Gated) and cell.can_generate(x_MS, embedding) and hidden is not None and rule is not None:
            head = [hidden.weight, hidden.bias, self.head.output_weight(dropconnect_mask_OF), self.head.output.bias]
            feedback = kernel.Feedback(head, is_fed_back_MS, sampling.uniform_MS.float(), rule)
            return cell.generate(x_MS, start, feedback, embedding=embedding)
        predicted_MS = self._predict_tokens(embedding, x_MS, start, sampling, dropconnect_mask_OF)
        x_MS = _choose(is_fed_back_MS, predicted_MS, x_MS)
        h_MSH, _ = cell(x_MS, start, embedding=embedding)
        return h_MSH, x_MS

    @torch.no_grad()
    def _predict_tokens(
        self,
        embedding: Embedding,
        x_MS: Shaped[Tensor, "M S *D"],
        start: RNNState,
        sampling: Sampling,
        dropconnect_mask_OF: Float[Tensor, "O F"] | None,
    ) -> Shaped[Tensor, "M S *D"]:
        """Predict token by token. Rows whose tokens are all true are not run."""
        is_fed_back_MS = sampling.find_fed_back()
        row_R = is_fed_back_MS.any(dim=1).nonzero()[:, 0]
        if len(row_R) == 0:
            return x_MS
        x_RS, is_fed_back_RS, uniform_RS = x_MS[row_R], is_fed_back_MS[row_R], sampling.uniform_MS[row_R]
        state = start.select(row_R)
        for step in range(int(is_fed_back_RS.any(dim=0).nonzero().max())):
            h_R1H, state = self.cell(x_RS[:, step : step + 1], state, embedding=embedding)
            guess_R = self.feedback(self.head(h_R1H[:, 0], dropconnect_mask_OF), uniform_RS[:, step])
            x_RS[:, step + 1] = _choose(is_fed_back_RS[:, step + 1], guess_R, x_RS[:, step + 1])
        return x_MS.index_copy(0, row_R, x_RS)


def feed_vector(output_MO: Float[Tensor, "M O"], uniform_M: Float[Tensor, " M"]) -> Float[Tensor, "M O"]:  # noqa: ARG001 - the shape of FeedbackRule
    """Feed the predicted vector itself."""
    return output_MO


def feed_vector_and_mask(output_MO: Float[Tensor, "M O"], uniform_M: Float[Tensor, " M"]) -> Float[Tensor, "M D"]:  # noqa: ARG001 - the shape of FeedbackRule
    """Feed the predicted vector, all of whose values count as there."""
    return torch.cat([output_MO, torch.ones_like(output_MO)], dim=1)


def feed_sampled(output_MO: Float[Tensor, "M O"], uniform_M: Float[Tensor, " M"]) -> Shaped[Tensor, " M"]:
    """Feed a character drawn from the softmax, by the draw that was made beforehand."""
    cumulative_MO = output_MO.softmax(dim=1).cumsum(dim=1)
    return (cumulative_MO[:, :-1] < uniform_M[:, None]).sum(dim=1)


def feed_argmax(output_MO: Float[Tensor, "M O"], uniform_M: Float[Tensor, " M"]) -> Shaped[Tensor, " M"]:  # noqa: ARG001 - the shape of FeedbackRule
    """Feed the likeliest character."""
    return output_MO.argmax(dim=1)


FUSED_FEEDBACK: dict[FeedbackRule, int] = {
    feed_vector: kernel.FEED_VECTOR,
    feed_sampled: kernel.FEED_SAMPLED,
    feed_argmax: kernel.FEED_ARGMAX,
}
"""The rules that the fused kernel knows."""


def _choose(condition: Bool[Tensor, "*M"], yes: Tensor, no: Tensor) -> Tensor:
    """Choose whole tokens, which may be vectors or single numbers."""
    return torch.where(condition.reshape(*condition.shape, *[1] * (yes.dim() - condition.dim())), yes, no)
