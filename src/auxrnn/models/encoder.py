"""The input embedding and the main recurrent network.

The embedding of vectors is linear, so it is folded into the input weights of whatever recurrence reads it:
W_ih (E x + b) = (W_ih E) x + W_ih b. The same function, and a pixel costs D multiply-adds a gate instead of E.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from auxrnn.models.cells.lstm import LSTM, InputMap
from auxrnn.structs import RNNState, Run, Steps


class VectorEmbedding(nn.Module):
    """A linear map of each input vector, never applied by itself but folded into the weights that read it."""

    def __init__(self, input_size: int, *, embedding_size: int) -> None:
        super().__init__()
        self.embedding_size = embedding_size
        self.weight_ED = nn.Parameter(nn.init.xavier_uniform_(torch.empty(embedding_size, input_size)))
        self.bias_E = nn.Parameter(torch.zeros(embedding_size))

    def prepare(self, x_BTD: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Give the steps as the folded weights read them: unchanged."""
        return x_BTD

    def fold(self, weights: InputMap) -> InputMap:
        """Give the weights that read the input itself and do what `weights` does on the embedded input."""
        weight_GE, bias_G = weights
        return InputMap(weight_GE @ self.weight_ED, bias_G + weight_GE @ self.bias_E)


class NoEmbedding(nn.Module):
    """Vectors as they are: the paper's ablation without an embedding."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.embedding_size = input_size

    def prepare(self, x_BTD: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Give the steps unchanged."""
        return x_BTD

    def fold(self, weights: InputMap) -> InputMap:
        """Give the weights unchanged."""
        return weights


class TokenEmbedding(nn.Module):
    """One learned vector for each token of a vocabulary."""

    def __init__(self, vocabulary_size: int, *, embedding_size: int) -> None:
        super().__init__()
        self.embedding_size = embedding_size
        self.weight_VE = nn.Parameter(nn.init.xavier_uniform_(torch.empty(vocabulary_size, embedding_size)))

    def prepare(self, x_BT: Int[Tensor, "B T"]) -> Float[Tensor, "B T E"]:
        """Look the tokens up."""
        return F.embedding(x_BT, self.weight_VE)

    def fold(self, weights: InputMap) -> InputMap:
        """Give the weights unchanged: they read the looked-up vectors."""
        return weights


Embedding = VectorEmbedding | NoEmbedding | TokenEmbedding


class Encoder(nn.Module):
    """The main network: embedded steps through a recurrence. How far gradients reach is decided in `bptt`."""

    def __init__(self, embedding: Embedding, *, cell: LSTM) -> None:
        super().__init__()
        self.embedding = embedding
        self.cell = cell

    def initial_state(self, num_rows: int) -> RNNState:
        """Give the state before the first step of each row."""
        return self.cell.initial_state(num_rows)

    def run(
        self,
        x_BT: Steps,
        state: RNNState,
        *,
        begin_B: Int[Tensor, " B"] | None = None,
        end_B: Int[Tensor, " B"] | None = None,
    ) -> Run:
        """Read a stretch of steps; rows may begin late or end early, as in `LSTM.run`."""
        return self.cell.run(
            self.embedding.prepare(x_BT),
            state,
            input_map=self.embedding.fold(self.cell.input_map()),
            begin_B=begin_B,
            end_B=end_B,
        )
