"""T-DMCA (Liu et al., 2018): local and memory-compressed attention in turn, with convolutions between (section 4.1).

Adds the dimension letters `M` blocks of a whole batch and `U` steps that are looked at (keys).
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from auxrnn.models.baselines.layers import Dropout, clear_padding
from auxrnn.models.baselines.transformer import PreNormStack, Projections, StepEmbedding, attend
from auxrnn.structs import Steps

INNER_KERNEL, OUTER_KERNEL = 3, 31


class DMCA(nn.Module):
    """Layers of unmasked local and memory-compressed attention in turn, local first, averaged over the steps.

    A local layer costs time linear in T, a compressed one T * T / `compression`; memory grows with T.
    `dropout` acts where it does in the Transformer.
    """

    def __init__(  # noqa: PLR0913  the model's sizes, one argument each
        self,
        input_size: int,
        *,
        vocabulary_size: int | None,
        hidden_size: int,
        num_layers: int,
        num_heads: int,
        dropout: float,
        block_length: int,
        block_reach: int,
        compression: int,
    ) -> None:
        super().__init__()
        embedding = StepEmbedding(input_size, vocabulary_size=vocabulary_size, hidden_size=hidden_size, dropout=dropout)

        def make_attention(layer: int) -> nn.Module:
            maps = Projections(hidden_size, num_heads=num_heads)
            if layer % 2 == 0:
                return LocalAttention(maps, block_length=block_length, block_reach=block_reach)
            return CompressedAttention(maps, hidden_size=hidden_size, compression=compression)

        layers = [
            (make_attention(layer), ConvolutionalFeedForward(hidden_size, dropout=dropout))
            for layer in range(num_layers)
        ]
        self.output_size = hidden_size
        self.stack = PreNormStack(embedding, layers=layers, dropout=dropout)

    def forward(self, x_BT: Steps, first_B: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B H"]:
        """Return the features of each sequence; padding before `first_B` changes nothing."""
        features_BH: Tensor = self.stack(x_BT, first_B)
        return features_BH


class LocalAttention(nn.Module):
    """Each block of `block_length` steps looks at itself and at `block_reach` steps to either side."""

    def __init__(self, maps: Projections, *, block_length: int, block_reach: int) -> None:
        super().__init__()
        self.maps = maps
        self.block_length = block_length
        self.block_reach = block_reach

    def forward(self, x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """Return what each step found near itself; None means that all steps are real."""
        maps = self.maps
        query_BTH, key_BTH, value_BTH = maps.query(x_BTH), maps.key(x_BTH), maps.value(x_BTH)
        if x_BTH.shape[1] <= self.block_length:
            found_BTH = attend(query_BTH, key_BTH, value_BTH, num_heads=maps.num_heads, visible_BU=real_BT)
        else:
            found_BTH = self.attend_in_blocks(query_BTH, key_BTH, value_BTH, real_BT)
        output_BTH: Tensor = maps.output(found_BTH)
        return output_BTH

    def attend_in_blocks(
        self,
        query_BTH: Float[Tensor, "B T H"],
        key_BTH: Float[Tensor, "B T H"],
        value_BTH: Float[Tensor, "B T H"],
        real_BT: Bool[Tensor, "B T"] | None,
    ) -> Float[Tensor, "B T H"]:
        """Attend with one block of one row as a row of the batch."""
        num_rows, num_columns = query_BTH.shape[:2]
        if real_BT is None:
            real_BT = torch.ones(num_rows, num_columns, dtype=torch.bool, device=query_BTH.device)
        visible_MU = self.cut(real_BT.unsqueeze(2), reach=self.block_reach).squeeze(2)
        # A block behind the end of its row has nothing to see, and an empty softmax is not a number. What such a
        # block finds is never used, so it may see anything.
        visible_MU = visible_MU | ~visible_MU.any(dim=1, keepdim=True)
        found_MSH = attend(
            self.cut(query_BTH, reach=0),
            self.cut(key_BTH, reach=self.block_reach),
            self.cut(value_BTH, reach=self.block_reach),
            num_heads=self.maps.num_heads,
            visible_BU=visible_MU,
        )
        return found_MSH.reshape(num_rows, -1, found_MSH.shape[2])[:, :num_columns]

    def cut(self, x_BTH: Shaped[Tensor, "B T H"], *, reach: int) -> Shaped[Tensor, "M U H"]:
        """Cut rows into blocks with `reach` steps more on either side; zeros stand where a row has no step."""
        num_columns = x_BTH.shape[1]
        behind = math.ceil(num_columns / self.block_length) * self.block_length - num_columns
        padded_BTH = F.pad(x_BTH, (0, 0, reach, behind + reach))
        return padded_BTH.unfold(1, self.block_length + 2 * reach, self.block_length).transpose(2, 3).flatten(0, 1)


class CompressedAttention(nn.Module):
    """Each step looks at the whole row, of which every `compression` keys and values have become one."""

    def __init__(self, maps: Projections, *, hidden_size: int, compression: int) -> None:
        super().__init__()
        self.maps = maps
        self.compression = compression
        # A convolution that strides by its own width is a linear map of windows laid end to end, and faster as one.
        # Keys get no bias: it would shift all scores of a query alike, which the softmax does not notice.
        self.compress_key = nn.Linear(compression * hidden_size, hidden_size, bias=False)
        self.compress_value = nn.Linear(compression * hidden_size, hidden_size)

    def forward(self, x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """Return what each step found; a window with one real step counts, None means that all steps are real."""
        maps = self.maps
        found_BTH = attend(
            maps.query(x_BTH),
            self.compress_key(self.join(clear_padding(maps.key(x_BTH), real_BT))),
            self.compress_value(self.join(clear_padding(maps.value(x_BTH), real_BT))),
            num_heads=maps.num_heads,
            # Rows begin at column 0, so a window holds a real step if its first one is real.
            visible_BU=None if real_BT is None else real_BT[:, :: self.compression],
        )
        output_BTH: Tensor = maps.output(found_BTH)
        return output_BTH

    def join(self, x_BTH: Float[Tensor, "B T H"]) -> Float[Tensor, "B U J"]:
        """Lay the steps of each window end to end; zeros complete the last one."""
        padded_BTH = F.pad(x_BTH, (0, 0, 0, -x_BTH.shape[1] % self.compression))
        return padded_BTH.reshape(x_BTH.shape[0], -1, self.compression * x_BTH.shape[2])


class ConvolutionalFeedForward(nn.Module):
    """Two separable convolutions, a narrow and a wide one, with a ReLU between them."""

    def __init__(self, hidden_size: int, *, dropout: float) -> None:
        super().__init__()
        self.inner = SeparableConvolution(hidden_size, kernel_length=INNER_KERNEL)
        self.outer = SeparableConvolution(hidden_size, kernel_length=OUTER_KERNEL)
        self.dropout = Dropout(dropout)

    def forward(self, x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """Mix neighboring steps of a row; None means that all steps are real."""
        hidden_BTH = self.dropout(F.relu(self.inner(x_BTH, real_BT)))
        y_BTH: Tensor = self.outer(hidden_BTH, real_BT)
        return y_BTH


class SeparableConvolution(nn.Module):
    """A convolution over time in each channel, centered on its step, then a linear map of each step."""

    def __init__(self, hidden_size: int, *, kernel_length: int) -> None:
        super().__init__()
        # Each channel is a map of its own from `kernel_length` inputs to as many outputs: Glorot's bound for those.
        bound = math.sqrt(6 / (kernel_length + kernel_length))
        self.kernel_HS = nn.Parameter(torch.empty(hidden_size, kernel_length).uniform_(-bound, bound))
        self.mix = nn.Linear(hidden_size, hidden_size)

    def forward(self, x_BTH: Float[Tensor, "B T H"], real_BT: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """Return as many steps as came in; zeros stand outside a row."""
        x_BH1T = clear_padding(x_BTH, real_BT).transpose(1, 2).unsqueeze(2)
        # As an image of height 1: torch then keeps the channels last, which spares two transpositions.
        num_channels, length = self.kernel_HS.shape
        y_BH1T = F.conv2d(x_BH1T, self.kernel_HS[:, None, None], padding=(0, length // 2), groups=num_channels)
        mixed_BTH: Tensor = self.mix(y_BH1T.squeeze(2).transpose(1, 2))
        return mixed_BTH
