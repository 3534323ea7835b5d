"""The input embedding, the main recurrent network, and the heads that read its outputs (section 4.1).

An embedding is linear, so it is folded into the input weights of whatever recurrence reads it:
W_ih (E x + b) = (W_ih E) x + W_ih b. The same function, and a pixel costs D multiply-adds a gate instead of E, a token
one row of a table.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from auxrnn.models.cells.recurrence import InputMap, Recurrence
from auxrnn.structs import RNNState, Run, StateQuery, Steps

# A folded table has a column for each token and is computed anew in every step: not worth it for words.
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
        """Return the weights that read the input itself and do what `weights` does on the embedded input."""
        weight_GE, bias_G = weights
        return InputMap(weight_GE @ self.weight_ED, bias_G + weight_GE @ self.bias_E)

    def embed(self, x_BTD: Float[Tensor, "B T D"], weights: InputMap) -> tuple[Float[Tensor, "B T D"], InputMap]:
        """Return the steps themselves and the folded weights."""
        return x_BTD, self.fold(weights)


class NoEmbedding(nn.Module):
    """Vectors as they are: the paper's ablation without an embedding."""

    is_foldable = True

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.input_size = self.embedding_size = input_size

    def fold(self, weights: InputMap) -> InputMap:
        """Return the weights unchanged."""
        return weights

    def embed(self, x_BTD: Float[Tensor, "B T D"], weights: InputMap) -> tuple[Float[Tensor, "B T D"], InputMap]:
        """Return both unchanged."""
        return x_BTD, weights


class TokenEmbedding(nn.Module):
    """One learned vector for each token of a vocabulary."""

    def __init__(self, vocabulary_size: int, *, embedding_size: int) -> None:
        super().__init__()
        self.embedding_size = embedding_size
        self.is_foldable = vocabulary_size <= LARGEST_TABLE
        self.weight_VE = nn.Parameter(nn.init.xavier_uniform_(torch.empty(vocabulary_size, embedding_size)))

    def fold(self, weights: InputMap) -> InputMap:
        """Return the weights that read one-hot tokens: a table with a column for each."""
        return InputMap(weights.weight_GI @ self.weight_VE.T, weights.bias_G)

    def embed(self, x_BT: Int[Tensor, "B T"], weights: InputMap) -> tuple[Float[Tensor, "B T E"], InputMap]:
        """Return the vectors of the tokens, and the weights unchanged."""
        return F.embedding(x_BT, self.weight_VE), weights


Embedding = VectorEmbedding | NoEmbedding | TokenEmbedding


class Encoder(nn.Module):
    """The main network: embedded steps through a recurrence. How far gradients reach is decided in `bptt`."""

    def __init__(self, embedding: Embedding, *, cell: Recurrence) -> None:
        super().__init__()
        self.embedding = embedding
        self.cell = cell

    def initial_state(self, num_rows: int) -> RNNState:
        """Return the state before the first step of each row."""
        return self.cell.initial_state(num_rows)

    def forward(self, x_BT: Steps, state: RNNState, *, begin_B: Int[Tensor, " B"] | None = None) -> Run:
        """Return the outputs after each step and the state after the last; rows may begin late."""
        run: Run = self.cell(x_BT, state, embedding=self.embedding, begin_B=begin_B)
        return run

    def states_at(
        self, x_BT: Steps, state: RNNState, query: StateQuery, *, begin_B: Int[Tensor, " B"] | None = None
    ) -> RNNState:
        """Return the states after so many columns of some rows, from one pass."""
        return self.cell.states_at(x_BT, state, query, embedding=self.embedding, begin_B=begin_B)


class Head(nn.Module):
    """Linear, ReLU, linear; in training, weights of the second layer are dropped at random (Wan et al., 2013).

    With a `head_size` of 0 there is no first layer.
    """

    def __init__(self, input_size: int, *, head_size: int, output_size: int, drop_connect: float) -> None:
        super().__init__()
        self.drop_connect = drop_connect
        self.hidden = nn.Linear(input_size, head_size) if head_size else None
        self.output = nn.Linear(head_size or input_size, output_size)
        for layer in (self.hidden, self.output):
            if layer is not None:
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def draw_dropconnect_mask(self, rng: torch.Generator) -> Float[Tensor, "C F"]:
        """Draw which weights one training step keeps, scaled so that the expected output stays the same.

        One draw serves all rows and time steps of the training step.
        """
        keep_probability = 1 - self.drop_connect
        is_kept_CF = torch.rand(self.output.weight.shape, generator=rng) < keep_probability
        return is_kept_CF.to(self.output.weight) / keep_probability

    def forward(
        self, x_BH: Float[Tensor, "*B H"], mask_CF: Float[Tensor, "C F"] | None = None
    ) -> Float[Tensor, "*B C"]:
        """Return the outputs; `mask_CF` from `draw_dropconnect_mask` in training, None at evaluation."""
        hidden_BF = x_BH if self.hidden is None else F.relu(self.hidden(x_BH))
        return F.linear(hidden_BF, self.output_weight(mask_CF), self.output.bias)

    def output_weight(self, mask_CF: Float[Tensor, "C F"] | None) -> Float[Tensor, "C F"]:
        """Return the second layer's weights with the mask applied."""
        return self.output.weight if mask_CF is None else mask_CF * self.output.weight
