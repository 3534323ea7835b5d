"""The Transformer's encoder (Vaswani et al., 2017) as tensor2tensor's `transformer_tiny` builds it (section 4.1).

Its parts also make up T-DMCA (`dmca.py`). Attention runs on torch's fused kernel: no matrix of queries by keys is ever
held. Adds the dimension letters `U` steps that are looked at (keys), `A` heads, `X` features of a head.
"""

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from auxrnn.models.baselines.layers import Dropout, align_left, average_real, find_real
from auxrnn.structs import Steps

NORM_EPSILON = 1e-6
MAX_TIMESCALE = 1e4


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
        layers = [
            (
                SelfAttention(hidden_size, num_heads=num_heads),
                FeedForward(hidden_size, filter_size=filter_size, dropout=dropout),
            )
            for _ in range(num_layers)
        ]
        self.output_size = hidden_size
        self.stack = PreNormStack(embedding, layers=layers, dropout=dropout)

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


class StepEmbedding(nn.Module):
    """Vectors through a linear map, or tokens through a table, scaled, plus sinusoidal positions; then dropout.

    A `vocabulary_size` says that the steps are tokens; `input_size` then plays no part. Rows must begin at column 0.
    """

    def __init__(self, input_size: int, *, vocabulary_size: int | None, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.embedding: nn.Linear | nn.Embedding
        # Small weights and a large factor: steps are about as large as positions, and tensor2tensor's learning rates
        # fit. Without it, pixels are lost beside their places and nothing is learned for hundreds of updates.
        self.scale = math.sqrt(hidden_size)
        if vocabulary_size is None:
            self.embedding = nn.Linear(input_size, hidden_size)
        else:
            self.embedding = nn.Embedding(vocabulary_size, hidden_size)
            nn.init.normal_(self.embedding.weight, std=1 / math.sqrt(hidden_size))
        self.dropout = Dropout(dropout)

    def forward(self, x_BT: Steps) -> Float[Tensor, "B T H"]:
        """Embed the steps and add where they stand."""
        x_BTH = self.scale * self.embedding(x_BT)
        place_TH = compute_positions(x_BTH.shape[1], hidden_size=self.hidden_size, like=self.embedding.weight)
        kept_BTH: Tensor = self.dropout(x_BTH + place_TH)
        return kept_BTH


def compute_positions(num_columns: int, *, hidden_size: int, like: Tensor) -> Float[Tensor, "T H"]:
    """Return the sines, then the cosines, of each position at timescales from 1 to `MAX_TIMESCALE`, as `like` is held.

    An odd `hidden_size` leaves its last channel zero.
    """
    num_timescales = hidden_size // 2
    # Numbers of 16 bits cannot count far.
    dtype = torch.promote_types(like.dtype, torch.float32)
    exponent_E = torch.arange(num_timescales, dtype=dtype, device=like.device) / max(num_timescales - 1, 1)
    position_T = torch.arange(num_columns, dtype=dtype, device=like.device)
    angle_TE = position_T.unsqueeze(1) * MAX_TIMESCALE**-exponent_E
    place_TH = torch.cat([angle_TE.sin(), angle_TE.cos()], dim=1)
    return F.pad(place_TH, (0, hidden_size % 2)).to(like.dtype)


class Projections(nn.Module):
    """The four linear maps of attention, without biases as in tensor2tensor."""

    def __init__(self, hidden_size: int, *, num_heads: int) -> None:
        super().__init__()
        if hidden_size % num_heads:
            raise ValueError(f"hidden_size is {hidden_size}; it must be a multiple of num_heads, {num_heads}")
        self.num_heads = num_heads
        self.query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.key = nn.Linear(hidden_size, hidden_size, bias=False)
        self.value = nn.Linear(hidden_size, hidden_size, bias=False)
        self.output = nn.Linear(hidden_size, hidden_size, bias=False)


class SelfAttention(nn.Module):
    """Each step looks at all real steps of its row."""

    def __init__(self, hidden_size: int, *, num_heads: int) -> None:
        super().__init__()
        self.maps = Projections(hidden_size, num_heads=num_heads)

    def forward(self, x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """Return what each step found; None means that all steps are real, which saves the mask."""
        maps = self.maps
        found_BTH = attend(
            maps.query(x_BTH), maps.key(x_BTH), maps.value(x_BTH), num_heads=maps.num_heads, visible_BU=real_BT
        )
        output_BTH: Tensor = maps.output(found_BTH)
        return output_BTH


def attend(
    query_BTH: Float[Tensor, "B T H"],
    key_BUH: Float[Tensor, "B U H"],
    value_BUH: Float[Tensor, "B U H"],
    *,
    num_heads: int,
    visible_BU: Bool[Tensor, "B U"] | None,
) -> Float[Tensor, "B T H"]:
    """Return for each query the mean of the visible values, weighted by how well its key fits.

    At least one key of each row must be visible. There is no dropout on the weights: the fused kernel has none.
    """
    # One mask for all queries and heads: the kernel broadcasts it, so it costs B * U elements.
    mask_B11U = None if visible_BU is None else visible_BU[:, None, None]
    query_BATX, key_BAUX, value_BAUX = (
        x_BTH.reshape(*x_BTH.shape[:2], num_heads, -1).transpose(1, 2) for x_BTH in (query_BTH, key_BUH, value_BUH)
    )
    found_BATX = F.scaled_dot_product_attention(query_BATX, key_BAUX, value_BAUX, attn_mask=mask_B11U)
    return found_BATX.transpose(1, 2).flatten(2)


class PreNormBlock(nn.Module):
    """Attention, then a feed-forward part; each reads normalized steps and adds its output, with dropout, to them."""

    def __init__(self, attention: nn.Module, feed_forward: nn.Module, *, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(hidden_size, eps=NORM_EPSILON)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(hidden_size, eps=NORM_EPSILON)
        self.feed_forward = feed_forward
        self.dropout = Dropout(dropout)

    def forward(self, x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """Return the next layer's steps; None means that all of them are real."""
        y_BTH: Tensor = x_BTH + self.dropout(self.attention(self.attention_norm(x_BTH), real_BT))
        z_BTH: Tensor = y_BTH + self.dropout(self.feed_forward(self.feed_forward_norm(y_BTH), real_BT))
        return z_BTH


class PreNormStack(nn.Module):
    """Layers of attention and feed-forward part over embedded steps, a last norm, and the mean over a row's steps.

    Its linear maps start Glorot-uniform ("uniform unit scaling" in tensor2tensor) with zero biases.
    """

    def __init__(
        self, embedding: StepEmbedding, *, layers: Iterable[tuple[nn.Module, nn.Module]], dropout: float
    ) -> None:
        super().__init__()
        size = embedding.hidden_size
        self.embedding = embedding
        self.blocks = nn.ModuleList(PreNormBlock(*layer, hidden_size=size, dropout=dropout) for layer in layers)
        self.norm = nn.LayerNorm(size, eps=NORM_EPSILON)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def forward(self, x_BT: Steps, first_B: Int[Tensor, " B"] | None) -> Float[Tensor, "B H"]:
        """Return the features of each sequence; without `first_B` nothing is masked."""
        x_BT, length_B = align_left(x_BT, first_B)
        real_BT = None if first_B is None else find_real(length_B, x_BT.shape[1])
        h_BTH = self.embedding(x_BT)
        for block in self.blocks:
            h_BTH = block(h_BTH, real_BT)
        mean_BH = average_real(F.layer_norm(h_BTH, self.norm.normalized_shape, eps=NORM_EPSILON), real_BT)
        # The norm's own scale and shift come behind the mean, which they commute with: in front of it their gradients
        # would be sums of B * T small terms and lose digits.
        return mean_BH * self.norm.weight + self.norm.bias
