"""The very deep convolutional networks of Conneau, Schwenk, Barrault and LeCun (2016), without shortcuts.

Dimension letters of this file: `H` filters, `W` frames (what is left of the steps after pools).
"""

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from auxrnn.models.baselines.layers import fix_length

KERNEL_SIZE = 3
NUM_FILTERS = (64, 128, 256, 512)
NUM_CONVOLUTIONS = {9: (2, 2, 2, 2), 17: (4, 4, 4, 4), 29: (10, 10, 4, 4)}
NUM_KEPT = 8
FEWEST_STEPS = (NUM_KEPT - 1) * 2 ** (len(NUM_FILTERS) - 1) + 1
"""How short a text may be: each pool halves its frames, rounded up, and k-max pooling needs k."""
DENSE_SIZE = 2048


class VDCNN(nn.Module):
    """Embedded characters, `depth` convolutions in four stages that halve the text in between, two dense layers.

    A text is cut to its first `num_steps` characters; behind a shorter one stands a padding character with a vector of
    its own. Their optional shortcuts around pairs of convolutions are left out.
    """

    def __init__(self, vocabulary_size: int, *, depth: Literal[9, 17, 29], embedding_size: int, num_steps: int) -> None:
        super().__init__()
        if num_steps < FEWEST_STEPS:
            raise ValueError(
                f"num_steps is {num_steps}, too short to keep the {NUM_KEPT} largest frames of a VDCNN; "
                f"it must be at least {FEWEST_STEPS}"
            )
        self.vocabulary_size = vocabulary_size
        self.num_steps = num_steps
        self.output_size = DENSE_SIZE
        self.embedding = nn.Embedding(vocabulary_size + 1, embedding_size)
        self.convolution = nn.Conv1d(embedding_size, NUM_FILTERS[0], KERNEL_SIZE, padding="same")
        self.stages = nn.Sequential(*make_stages(depth))
        self.dense = nn.Sequential(
            nn.Linear(NUM_FILTERS[-1] * NUM_KEPT, DENSE_SIZE), nn.ReLU(), nn.Linear(DENSE_SIZE, DENSE_SIZE), nn.ReLU()
        )
        for module in self.modules():
            if isinstance(module, nn.Conv1d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x_BT: Int[Tensor, "B T"], first_B: Int[Tensor, " B"] | None = None) -> Float[Tensor, "B F"]:
        """Return the last dense layer's features; the cost is that of `num_steps` steps, however short the rows."""
        text_BT, _ = fix_length(x_BT, first_B, num_steps=self.num_steps, padding=self.vocabulary_size)
        h_BHW = self.stages(self.convolution(self.embedding(text_BT).transpose(1, 2)))
        return self.dense(keep_largest(h_BHW, num_kept=NUM_KEPT).flatten(1))  # type: ignore[no-any-return]


def keep_largest(h_BHW: Float[Tensor, "B H W"], *, num_kept: int) -> Float[Tensor, "B H K"]:
    """Keep each filter's `num_kept` largest values, in the order of time (k-max pooling)."""
    frame_BHK = h_BHW.topk(num_kept, dim=2, sorted=False).indices.sort(dim=2).values
    return h_BHW.gather(2, frame_BHK)


def make_stages(depth: Literal[9, 17, 29]) -> list[nn.Module]:
    """Make the convolutions behind the first one, with a pool between any two stages."""
    layers: list[nn.Module] = []
    input_size = NUM_FILTERS[0]
    for num_filters, num_convolutions in zip(NUM_FILTERS, NUM_CONVOLUTIONS[depth], strict=True):
        if num_filters != NUM_FILTERS[0]:
            layers.append(nn.MaxPool1d(KERNEL_SIZE, stride=2, padding=KERNEL_SIZE // 2))
        for _ in range(num_convolutions):
            # Half of one of their convolutional blocks; batch norm has the bias.
            convolution = nn.Conv1d(input_size, num_filters, KERNEL_SIZE, padding="same", bias=False)
            layers.append(nn.Sequential(convolution, nn.BatchNorm1d(num_filters), nn.ReLU(inplace=True)))
            input_size = num_filters
    return layers
