"""The character-level convolutional networks of Zhang, Zhao and LeCun (2015).

Dimension letters of this file: `K` columns of a kernel, `H` filters, `W` frames (what is left of the steps after
convolutions and pools).
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from auxrnn.models.baselines.layers import Dropout, fix_length

LAYERS = ((7, 3), (7, 3), (3, 1), (3, 1), (3, 1), (3, 3))
"""Kernel size of each convolution, without padding, and of the non-overlapping max-pool behind it (1: none)."""
SIZES = {"small": (256, 1024, 0.05), "large": (1024, 2048, 0.02)}
"""Filters, dense units, and the standard deviation of the first weights (their tables 1 and 2)."""


class CharCNN(nn.Module):
    """Six convolutions over one-hot characters, and two dense layers with dropout.

    A text is cut to its first `num_steps` characters; behind a shorter one the characters are all-zero vectors.
    """

    def __init__(
        self, vocabulary_size: int, *, size: Literal["small", "large"], num_steps: int, dropout: float
    ) -> None:
        super().__init__()
        if num_steps < count_steps(1):
            raise ValueError(
                f"num_steps is {num_steps}, too short for the pools of a char-CNN; it must be at least {count_steps(1)}"
            )
        num_filters, dense_size, init_std = SIZES[size]
        self.vocabulary_size = vocabulary_size
        self.num_steps = num_steps
        self.num_frames = count_frames(num_steps)
        self.output_size = dense_size
        self.first = nn.Conv1d(vocabulary_size, num_filters, LAYERS[0][0])
        self.others = nn.ModuleList(nn.Conv1d(num_filters, num_filters, kernel_size) for kernel_size, _ in LAYERS[1:])
        self.dense = nn.Sequential(
            nn.Linear(num_filters * self.num_frames, dense_size),
            nn.ReLU(),
            Dropout(dropout),
            nn.Linear(dense_size, dense_size),
            nn.ReLU(),
            Dropout(dropout),
        )
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=init_std)

    def forward(self, x_BT: Int[Tensor, "B T"], first_B: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B F"]:
        """Return the last dense layer's features; the cost of the convolutions grows with the longest row."""
        text_BT, length_B = fix_length(x_BT, first_B, num_steps=self.num_steps, padding=self.vocabulary_size)
        num_frames = min(self.num_frames, count_unlike_frames(int(length_B.max())))
        h_BHW = self.convolve(text_BT[:, : count_steps(num_frames)])
        # Frames that see padding alone are all alike.
        missing_BHW = h_BHW[..., -1:].expand(-1, -1, self.num_frames - num_frames)
        return self.dense(torch.cat([h_BHW, missing_BHW], dim=2).flatten(1))  # type: ignore[no-any-return]

    def convolve(self, x_BT: Int[Tensor, "B T"]) -> Float[Tensor, "B H W"]:
        """Return the frames behind the last pool, as many as `x_BT` has columns for."""
        h_BHW = F.relu(F.max_pool1d(convolve_one_hot(x_BT, self.first), LAYERS[0][1]))
        for convolution, (_, pool_size) in zip(self.others, LAYERS[1:], strict=True):
            # The larger of two numbers is rectified to the larger of the rectified two: pooling first saves work.
            h_BHW = F.relu(F.max_pool1d(convolution(h_BHW), pool_size))
        return h_BHW


def convolve_one_hot(x_BT: Int[Tensor, "B T"], convolution: nn.Conv1d) -> Float[Tensor, "B H W"]:
    """Return what `convolution` does on the one-hot vectors of tokens; one more than the last token is all zeros.

    Every column of a kernel is a table with a row for each token, and a frame is the sum of K rows: no products.
    """
    (kernel_size,) = convolution.kernel_size
    assert convolution.bias is not None
    weight_KVH = F.pad(convolution.weight.permute(2, 1, 0), (0, 0, 0, 1))
    # A frame sums K rows, so each brings its share of the bias.
    table_KVH = weight_KVH + convolution.bias / kernel_size
    first_row_K = torch.arange(kernel_size, device=x_BT.device) * table_KVH.shape[1]
    row_BWK = x_BT.unfold(1, kernel_size, 1) + first_row_K
    h_WH = F.embedding_bag(row_BWK.flatten(0, 1), table_KVH.flatten(0, 1), mode="sum")
    return h_WH.reshape(*row_BWK.shape[:2], -1).transpose(1, 2)


def count_frames(num_steps: int) -> int:
    """Return how many frames a text of `num_steps` characters has behind the last pool."""
    for kernel_size, pool_size in LAYERS:
        num_steps = (num_steps - kernel_size + 1) // pool_size
    return num_steps


def count_steps(num_frames: int) -> int:
    """Return how many characters `num_frames` frames see: the shortest text that has so many."""
    for kernel_size, pool_size in reversed(LAYERS):
        num_frames = num_frames * pool_size + kernel_size - 1
    return num_frames


def count_unlike_frames(length: int) -> int:
    """Return how many frames suffice for a text of `length` characters: those that see any, and one that does not."""
    columns_per_frame = count_steps(2) - count_steps(1)
    return -(-length // columns_per_frame) + 1
