"""The input embedding and the main recurrent network.

An embedding is linear, so it is folded into the input weights of whatever recurrence reads it:
W_ih (E x + b) = (W_ih E) x + W_ih b. The same function, and a pixel costs D multiply-adds a gate instead of E, a token
one row of a table.
"""

import functools

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from auxrnn.models.cells.recurrence import InputMap, PicksUp, Recurrence
from auxrnn.models.cells.walking import walk
from auxrnn.structs import Places, RNNState, Run, Steps

# A folded table has a column for each token and must be made anew in every step: not worth it for words.
LARGEST_TABLE = 512


class VectorEmbedding(nn.Module):
    """A linear map of each input vector, never applied by itself but folded into the weights that read it."""

    is_foldable = True

    def __init__(self, input_size: int, *, embedding_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.embedding_size = embedding_size
        self.weight_ED = nn.Parameter(nn.init.xavier_uniform_(torch.empty(embedding_size, input_size)))
        self.bias_E = nn.Parameter(torch.zeros(embedding_size))

    def fold(self, weights: InputMap) -> InputMap:
        """Give the weights that read the input itself and do what `weights` does on the embedded input."""
        weight_GE, bias_G = weights
        return InputMap(weight_GE @ self.weight_ED, bias_G + weight_GE @ self.bias_E)

    def embed(self, x_BTD: Float[Tensor, "B T D"], weights: InputMap) -> tuple[Float[Tensor, "B T D"], InputMap]:
        """Give the steps themselves and the folded weights."""
        return x_BTD, self.fold(weights)


class NoEmbedding(nn.Module):
    """Vectors as they are: the paper's ablation without an embedding."""

    is_foldable = True

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.input_size = self.embedding_size = input_size

    def fold(self, weights: InputMap) -> InputMap:
        """Give the weights unchanged."""
        return weights

    def embed(self, x_BTD: Float[Tensor, "B T D"], weights: InputMap) -> tuple[Float[Tensor, "B T D"], InputMap]:
        """Give both unchanged."""
        return x_BTD, weights


class TokenEmbedding(nn.Module):
    """One learned vector for each token of a vocabulary."""

    def __init__(self, vocabulary_size: int, *, embedding_size: int) -> None:
        super().__init__()
        self.embedding_size = embedding_size
        self.is_foldable = vocabulary_size <= LARGEST_TABLE
        self.weight_VE = nn.Parameter(nn.init.xavier_uniform_(torch.empty(vocabulary_size, embedding_size)))

    def fold(self, weights: InputMap) -> InputMap:
        """Give the weights that read one-hot tokens: a table with a column for each."""
        return InputMap(weights.weight_GI @ self.weight_VE.T, weights.bias_G)

    def embed(self, x_BT: Int[Tensor, "B T"], weights: InputMap) -> tuple[Float[Tensor, "B T E"], InputMap]:
        """Look the tokens up."""
        return F.embedding(x_BT, self.weight_VE), weights


Embedding = VectorEmbedding | NoEmbedding | TokenEmbedding


class Encoder(nn.Module):
    """The main network: embedded steps through a recurrence. How far gradients reach is decided in `bptt`."""

    def __init__(self, embedding: Embedding, *, cell: Recurrence) -> None:
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
        """Read a stretch of steps; rows may begin late or end early, as in `Recurrence.run`."""
        return self.cell.run(x_BT, state, embedding=self.embedding, begin_B=begin_B, end_B=end_B)

    def visit(
        self, x_BT: Steps, state: RNNState, places: Places, *, begin_B: Int[Tensor, " B"] | None = None
    ) -> RNNState:
        """Give the states after so many columns of some rows: picked up in one pass, or walked to."""
        if isinstance(self.cell, PicksUp):
            return self.cell.visit(x_BT, state, places, embedding=self.embedding, begin_B=begin_B)
        run = functools.partial(self.cell.run, embedding=self.embedding)
        return walk(run, x_BT, state, places, begin_B=begin_B)
