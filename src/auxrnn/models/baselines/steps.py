"""What a step looks like to an attention model: its embedding and its place in the sequence, as in tensor2tensor."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from auxrnn.models.baselines.dropout import Dropout
from auxrnn.structs import Steps

MAX_TIMESCALE = 1e4


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
    """Give the sines, then the cosines, of each position at timescales from 1 to `MAX_TIMESCALE`, as `like` is held.

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
