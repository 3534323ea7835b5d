"""The four networks of the paper's Figure 3, and one whole training step of each."""

import itertools
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from auxrnn.bench.peers import make_linear, make_lstm, run_lstm, take_weights
from auxrnn.bench.sizes import Sizes
from auxrnn.bench.timing import Call
from auxrnn.config import RunConfig, Window, decided
from auxrnn.networks import InputSpec, build_network
from auxrnn.plain_config import unflatten
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.rmsprop import RMSProp
from auxrnn.training.step import Network, Task, as_recurrent, back_propagate, classification_loss, compute_losses

FULL_BPTT = "full_bptt"
TITLES = {
    FULL_BPTT: "LSTM, full BPTT",
    "r_lstm_1x600": "r-LSTM 1x600",
    "r_lstm_20x30": "r-LSTM 20x30",
    "p_lstm": "p-LSTM",
}
SETTINGS: dict[str, dict[str, Any]] = {
    FULL_BPTT: {"objective": "none"},
    "r_lstm_1x600": {"num_segments": 1, "segment_length": 600, "auxiliary_window": 300},
    "r_lstm_20x30": {"num_segments": 20, "segment_length": 30, "auxiliary_window": 30},
    "p_lstm": {"objective": "predict", "num_segments": 1, "segment_length": 600, "auxiliary_window": 300},
}
SUPERVISED_WINDOW = 300
TRUE_PROBABILITY = 0.5
# Stanford Dogs, whose lengths these are.
NUM_CLASSES = 120


def configure(system: str, sizes: Sizes) -> RunConfig:
    """Give the settings of a system, the paper's but for the sizes."""
    hidden = {"hidden_size": sizes.hidden_size, "embedding_size": sizes.hidden_size}
    return unflatten(
        {"data": "noise", "supervised_window": SUPERVISED_WINDOW, "batch_size": sizes.batch_size}
        | hidden
        | SETTINGS[system]
    )


def build(config: RunConfig, *, num_steps: int) -> Network:
    """Build a network for sequences of gray pixels."""
    return as_recurrent(build_network(config, InputSpec(1, None, NUM_CLASSES, num_steps)))


def build_step(system: str, sizes: Sizes, *, num_steps: int) -> Call:
    """Give a training step of a system: losses, gradients, clipping and the update, on one batch of noise."""
    config = configure(system, sizes)
    network = build(config, num_steps=num_steps)
    rng = Draws(config.seed, "bench", 0).rng("pixels and classes")
    label_B = torch.randint(NUM_CLASSES, (sizes.batch_size,), generator=rng)
    if system == FULL_BPTT:
        x_TBD = torch.rand(num_steps, sizes.batch_size, 1, generator=rng)
        return _full_step(FullBPTT(network), x_TBD, label_B, config=config)
    x_BTD = torch.rand(sizes.batch_size, num_steps, 1, generator=rng)
    return _auxiliary_step(network, SequenceBatch(x_BTD, label_B), config=config)


class FullBPTT(nn.Module):
    """What a user of torch would train: its linear map and its LSTM, time-major, below the library's own classifier."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        weights = take_weights(network.encoder)
        self.embedding = make_linear(weights.embedding_ED, weights.embedding_bias_E)
        self.lstm = make_lstm(weights.weight_GE, weights.weight_GH, weights.bias_G)
        self.classifier = network.classifier

    def forward(self, x_TBD: Float[Tensor, "T B D"], kept_CF: Float[Tensor, "C F"]) -> Float[Tensor, "B C"]:
        """Give the logits of the classes."""
        logits_BC: Tensor = self.classifier(run_lstm(self.lstm, self.embedding(x_TBD)), kept_CF)
        return logits_BC


def _full_step(network: FullBPTT, x_TBD: Tensor, label_B: Tensor, *, config: RunConfig) -> Call:
    optimizer = RMSProp(network.parameters(), lr=config.schedule.lr)
    numbers = itertools.count()

    def step() -> None:
        network.zero_grad(set_to_none=True)
        draws = Draws(config.seed, "bench", next(numbers))
        logits_BC = network(x_TBD, network.classifier.draw_kept(draws.rng("classifier drop-connect")))
        loss, _ = classification_loss(logits_BC, label_B)
        loss.mean().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        nn.utils.clip_grad_norm_(network.parameters(), config.schedule.clip_norm)
        optimizer.step()

    return step


def _auxiliary_step(network: Network, batch: SequenceBatch, *, config: RunConfig) -> Call:
    optimizer = RMSProp(network.parameters(), lr=config.schedule.lr)
    window: Window = decided(config.loss.supervised_window)
    task = Task(is_supervised=True, is_auxiliary=True, supervised_window=window)
    numbers = itertools.count()

    def step() -> None:
        draws = Draws(config.seed, "bench", next(numbers))
        losses = compute_losses(network, batch, task=task, draws=draws, true_probability=TRUE_PROBABILITY)
        loss = losses.combine(config.loss.auxiliary_weight)
        back_propagate(network, loss, clip_norm=config.schedule.clip_norm)
        optimizer.step()

    return step
