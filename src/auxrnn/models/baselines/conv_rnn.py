"""The convolutional recurrent network of Xiao and Cho (2016), in their shape C3R1: three convolutions, one recurrence.

Dimension letters of this file: `W` frames (what is left of the steps after pools).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from auxrnn.models.baselines.layers import Dropout, align_left, find_real, fix_length

KERNEL_SIZES = (5, 5, 3)
POOL_SIZE = 2


class ConvRNN(nn.Module):
    """Embedded characters, three convolutions that halve the text each, and an LSTM that reads it in both directions.

    A text is cut to its first `num_steps` characters. Padding is masked: what a text gives does not depend on the
    batch it comes in.
    """

    def __init__(
        self, vocabulary_size: int, *, hidden_size: int, embedding_size: int, num_steps: int, dropout: float
    ) -> None:
        super().__init__()
        self.vocabulary_size = vocabulary_size
        self.num_steps = num_steps
        self.output_size = 2 * hidden_size
        self.embedding = nn.Embedding(vocabulary_size + 1, embedding_size, padding_idx=vocabulary_size)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding_size if index == 0 else hidden_size, hidden_size, kernel_size, padding="same")
            for index, kernel_size in enumerate(KERNEL_SIZES)
        )
        # One bidirectional nn.LSTM would need packed rows, which take five times as long on a CPU.
        self.forward_lstm = nn.LSTM(hidden_size, hidden_size, batch_first=True)
        self.backward_lstm = nn.LSTM(hidden_size, hidden_size, batch_first=True)
        self.dropout = Dropout(dropout)

    def forward(self, x_BT: Int[Tensor, "B T"], first_B: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B F"]:
        """Return the last states of both directions, forward first; the cost grows with the longest row."""
        text_BT, length_B = fix_length(x_BT, first_B, num_steps=self.num_steps, padding=self.vocabulary_size)
        h_BHW, length_B = self.convolve(text_BT[:, : x_BT.shape[1]], length_B)
        h_BWH = self.dropout(h_BHW).transpose(1, 2)
        return self.dropout(self.read_both_ways(h_BWH, length_B))  # type: ignore[no-any-return]

    def convolve(
        self, x_BT: Int[Tensor, "B T"], length_B: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B H W"], Int[Tensor, " B"]]:
        """Return the frames behind the last pool, zero behind each row's end, and how many each row has."""
        h_BHW = self.embedding(x_BT).transpose(1, 2)
        for convolution in self.convolutions:
            # Rectified frames are never below the zeros behind a row: an odd last frame is pooled with one of them.
            real_B1W = find_real(length_B, h_BHW.shape[2]).unsqueeze(1)
            h_BHW = F.relu(F.max_pool1d(convolution(h_BHW) * real_B1W, POOL_SIZE, ceil_mode=True))
            length_B = (length_B + POOL_SIZE - 1) // POOL_SIZE
        return h_BHW, length_B

    def read_both_ways(self, h_BWH: Float[Tensor, "B W H"], length_B: Int[Tensor, " B"]) -> Float[Tensor, "B F"]:
        """Return the last states of an LSTM over each row's frames, and of another over its frames in reverse."""
        reversed_BWH = align_left(h_BWH.flip(1), h_BWH.shape[1] - length_B).x_BT
        row_B = torch.arange(len(h_BWH), device=h_BWH.device)
        forward_BWH, _ = self.forward_lstm(h_BWH)
        backward_BWH, _ = self.backward_lstm(reversed_BWH)
        return torch.cat([forward_BWH[row_B, length_B - 1], backward_BWH[row_B, length_B - 1]], dim=1)
