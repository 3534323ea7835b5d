"""The Transformer's encoder (Vaswani et al., 2017) as tensor2tensor's `transformer_tiny` builds it (section 4.1)."""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from auxrnn.models.baselines.attention import PreNormBlock, PreNormStack, SelfAttention, StepEmbedding
from auxrnn.models.baselines.layers import Dropout
from auxrnn.structs import Steps


class Transformer(nn.Module):
    """Self-attention over the whole sequence, averaged over its steps.

    Time grows with the square of T, memory with T. `dropout` acts on the embedding, inside the feed-forward part and
    on what each part adds, not on attention weights.
    """

    def __init__(
        self,
        input_size: int,
        *,
        vocabulary_size: int | None,
        hidden_size: int,
        num_layers: int,
        num_heads: int,
        filter_size: int,
        dropout: float,
    ) -> None:
        super().__init__()
        embedding = StepEmbedding(input_size, vocabulary_size=vocabulary_size, hidden_size=hidden_size, dropout=dropout)
        blocks = [
            PreNormBlock(
                SelfAttention(hidden_size, num_heads=num_heads),
                feed_forward=FeedForward(hidden_size, filter_size=filter_size, dropout=dropout),
                hidden_size=hidden_size,
                dropout=dropout,
            )
            for _ in range(num_layers)
        ]
        self.output_size = hidden_size
        self.stack = PreNormStack(embedding, blocks=blocks)

    def forward(self, x_BT: Steps, first_B: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B H"]:
        """Return the features of each sequence; padding before `first_B` changes nothing."""
        features_BH: Tensor = self.stack(x_BT, first_B)
        return features_BH


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between them, for each step by itself."""

    def __init__(self, hidden_size: int, *, filter_size: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(hidden_size, filter_size)
        self.outer = nn.Linear(filter_size, hidden_size)
        self.dropout = Dropout(dropout)

    def forward(self, x_BTH: Float[Tensor, "B T H"], _real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """Map each step, real or not."""
        y_BTH: Tensor = self.outer(self.dropout(F.relu(self.inner(x_BTH))))
        return y_BTH
