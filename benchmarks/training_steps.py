"""One whole training step of each of the four systems of the paper's Figure 3, on a batch of noise."""

import functools
import itertools
from dataclasses import dataclass
from typing import Any

import psutil
import torch
from torch import Tensor, nn

from auxrnn.bench import NUM_CLASSES, Call, SpeedSizes, torch_modules
from auxrnn.build import InputSpec, build_network
from auxrnn.config import RunConfig, SupervisedWindow, decided, unflatten
from auxrnn.models.network import LossTerms, Network, classification_loss
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.optimizers import RMSProp, back_propagate

FULL_BPTT = "full_bptt"
SYSTEMS: dict[str, dict[str, Any]] = {
    FULL_BPTT: {"objective": "none"},
    "r_lstm_1x600": {"num_segments": 1, "segment_length": 600, "auxiliary_window": 300},
    "r_lstm_20x30": {"num_segments": 20, "segment_length": 30, "auxiliary_window": 30},
    "p_lstm": {"objective": "predict", "num_segments": 1, "segment_length": 600, "auxiliary_window": 300},
}
TITLES = dict(zip(SYSTEMS, ("LSTM, full BPTT", "r-LSTM 1x600", "r-LSTM 20x30", "p-LSTM"), strict=True))
# Numbers of four bytes that torch's LSTM below a linear map needs for its backward pass, for each hidden unit of each
# step of each sequence: 18 and 21 measured on two processors, rounded up.
FLOATS_PER_UNIT = 22


@dataclass(frozen=True, kw_only=True)
class StepSizes(SpeedSizes):
    """Lengths of the sequences of a training step: dog images of 40 to 128 pixels a side, as in the paper."""

    lengths: tuple[int, ...] = (1_600, 2_304, 3_136, 5_184, 6_400, 9_216, 12_544, 16_384)
    step_rounds: int = 5
    product_size: int = 2_048


FULL = StepSizes()
QUICK = StepSizes(rounds=5, step_rounds=4, lengths=(1_600, 12_544))


def points(sizes: StepSizes) -> list[tuple[str, int]]:
    """Return the systems and lengths that fit into memory, and tell of those that do not."""
    free = psutil.virtual_memory().available
    found = []
    for num_steps, system in itertools.product(sizes.lengths, SYSTEMS):
        needed = 4 * FLOATS_PER_UNIT * sizes.hidden_size * sizes.batch_size * num_steps if system == FULL_BPTT else 0
        if needed < free:
            found.append((system, num_steps))
        else:
            print(
                f"{TITLES[system]} at {num_steps:,} steps needs {needed / 2**30:.0f} GiB, {free / 2**30:.0f} are free"
            )
    return found


@functools.cache
def build_step(system: str, num_steps: int, sizes: StepSizes) -> Call:
    """Return losses, gradients, clipping and update of a system on one batch; built once in each process."""
    config = configure(system, sizes)
    network = build_network(config, InputSpec(1, None, NUM_CLASSES, num_steps))
    assert isinstance(network, Network)
    rng = Draws(config.seed, "bench", 0).rng("pixels and classes")
    label_B = torch.randint(NUM_CLASSES, (sizes.batch_size,), generator=rng)
    x_BTD = torch.rand(sizes.batch_size, num_steps, 1, generator=rng)
    if system == FULL_BPTT:
        return full_step(FullBPTT(network), x_BTD.transpose(0, 1).contiguous(), label_B, config=config)
    return library_step(network, SequenceBatch(x_BTD, label_B), config=config)


def take_step(system: str, num_steps: int, sizes: StepSizes) -> None:
    """Train once."""
    build_step(system, num_steps, sizes)()


def configure(system: str, sizes: SpeedSizes) -> RunConfig:
    """Return the settings of a system: the paper's but for the sizes."""
    widths = {"hidden_size": sizes.hidden_size, "embedding_size": sizes.hidden_size, "batch_size": sizes.batch_size}
    return unflatten({"data": "noise", "supervised_window": 300} | widths | SYSTEMS[system])


class FullBPTT(nn.Module):
    """What a user of torch would train: its linear map and its LSTM, time-major, below the library's own classifier."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.embedding, self.lstm = torch_modules(network.encoder)
        self.classifier = network.classifier

    def forward(self, x_TBD: Tensor, draws: Draws) -> Tensor:
        """Return the logits of the classes."""
        last_BH = self.lstm(self.embedding(x_TBD))[1][0][0]
        mask_CF = self.classifier.draw_dropconnect_mask(draws.rng("classifier drop-connect"))
        logits_BC: Tensor = self.classifier(last_BH, mask_CF)
        return logits_BC


def full_step(network: FullBPTT, x_TBD: Tensor, label_B: Tensor, *, config: RunConfig) -> Call:
    """Return a training step of torch's LSTM with full back-propagation."""
    optimizer = RMSProp(network.parameters(), lr=config.schedule.lr)
    numbers = itertools.count()

    def step() -> None:
        network.zero_grad(set_to_none=True)
        loss, _ = classification_loss(network(x_TBD, Draws(config.seed, "bench", next(numbers))), label_B)
        loss.mean().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        nn.utils.clip_grad_norm_(network.parameters(), config.schedule.clip_norm)
        optimizer.step()

    return step


def library_step(network: Network, batch: SequenceBatch, *, config: RunConfig) -> Call:
    """Return a training step of the library, with scheduled sampling half way."""
    optimizer = RMSProp(network.parameters(), lr=config.schedule.lr)
    window: SupervisedWindow = decided(config.loss.supervised_window)
    terms = LossTerms(True, config.loss.objective != "none", window)
    numbers = itertools.count()

    def step() -> None:
        draws = Draws(config.seed, "bench", next(numbers))
        losses = network.losses(batch, terms=terms, draws=draws, true_probability=0.5)
        back_propagate(network, losses.combine(config.loss.auxiliary_weight), clip_norm=config.schedule.clip_norm)
        optimizer.step()

    return step
