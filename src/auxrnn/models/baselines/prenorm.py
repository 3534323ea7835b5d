"""The frame that attention models share: embedded steps, pre-norm residual blocks, a mean over the real steps."""

from collections.abc import Iterable

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from auxrnn.models.baselines.alignment import align_left, average_real, find_real
from auxrnn.models.baselines.dropout import Dropout
from auxrnn.models.baselines.steps import StepEmbedding
from auxrnn.structs import Steps

NORM_EPSILON = 1e-6


class PreNormBlock(nn.Module):
    """Attention, then a feed-forward part; each reads normalized steps and adds its output, with dropout, to them."""

    def __init__(self, attention: nn.Module, *, feed_forward: nn.Module, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(hidden_size, eps=NORM_EPSILON)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(hidden_size, eps=NORM_EPSILON)
        self.feed_forward = feed_forward
        self.dropout = Dropout(dropout)

    def forward(self, x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """Give the next layer's steps; None says that all of them are real."""
        y_BTH: Tensor = x_BTH + self.dropout(self.attention(self.attention_norm(x_BTH), real_BT))
        z_BTH: Tensor = y_BTH + self.dropout(self.feed_forward(self.feed_forward_norm(y_BTH), real_BT))
        return z_BTH


class PreNormStack(nn.Module):
    """Blocks over embedded steps, a last normalization, and the mean over each row's own steps.

    Its linear maps start Glorot-uniform with zero biases, whatever the parts brought.
    """

    def __init__(self, embedding: StepEmbedding, *, blocks: Iterable[PreNormBlock]) -> None:
        super().__init__()
        self.output_size = embedding.hidden_size
        self.embedding = embedding
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(embedding.hidden_size, eps=NORM_EPSILON)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                initialize_linear(layer)

    def forward(self, x_BT: Steps, first_B: Int[Tensor, " B"] | None) -> Float[Tensor, "B H"]:
        """Give the features of each sequence; without `first_B` nothing is masked."""
        x_BT, length_B = align_left(x_BT, first_B)
        real_BT = None if first_B is None else find_real(length_B, x_BT.shape[1])
        h_BTH = self.embedding(x_BT)
        for block in self.blocks:
            h_BTH = block(h_BTH, real_BT)
        mean_BH = average_real(F.layer_norm(h_BTH, self.norm.normalized_shape, eps=NORM_EPSILON), real_BT)
        # The norm's own scale and shift come behind the mean, which they commute with: in front of it their gradients
        # would be sums of B * T small terms and lose digits.
        return mean_BH * self.norm.weight + self.norm.bias


def initialize_linear(layer: nn.Linear) -> None:
    """Draw Glorot-uniform weights; tensor2tensor calls this "uniform unit scaling"."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
