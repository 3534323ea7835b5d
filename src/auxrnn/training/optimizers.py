"""How gradients become updates: the paper's RMSProp, and what the systems beside it were trained with."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from auxrnn.config import OptimizerName
from auxrnn.training.rmsprop import RMSProp


class Kind(NamedTuple):
    """A kind of optimizer: how it is made, and the tensors that it keeps for each parameter, by name."""

    make: Callable[[Iterable[Tensor], float], torch.optim.Optimizer]
    kept: tuple[str, ...]


KINDS: dict[OptimizerName, Kind] = {
    "rmsprop": Kind(lambda params, lr: RMSProp(params, lr=lr), ("mean_square",)),
    # tensor2tensor's, for the Transformers.
    "adam": Kind(
        lambda params, lr: torch.optim.Adam(params, lr=lr, betas=(0.9, 0.997), eps=1e-9),
        ("step", "exp_avg", "exp_avg_sq"),
    ),
    # Zhang et al. (2015) and Conneau et al. (2016).
    "sgd": Kind(lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9), ("momentum_buffer",)),
    # Xiao and Cho (2016).
    "adadelta": Kind(
        lambda params, lr: torch.optim.Adadelta(params, lr=lr, rho=0.95, eps=1e-5),
        ("step", "square_avg", "acc_delta"),
    ),
}


def make_optimizer(name: OptimizerName, network: nn.Module, *, lr: float) -> torch.optim.Optimizer:
    """Make a fresh optimizer of all weights of a network."""
    return KINDS[name].make(network.parameters(), lr)


def collect_state(optimizer: torch.optim.Optimizer, network: nn.Module) -> dict[str, Tensor]:
    """Give all that an optimizer remembers, by what it is and the name of the weights."""
    return {
        f"{kept}.{name}": value
        for name, parameter in network.named_parameters()
        for kept, value in optimizer.state[parameter].items()
        if isinstance(value, Tensor)
    }


def restore_state(
    optimizer: torch.optim.Optimizer, network: nn.Module, tensors: dict[str, Tensor], *, kind: OptimizerName
) -> None:
    """Let a fresh optimizer remember what `collect_state` gave, if it stands among these tensors."""
    for name, parameter in network.named_parameters():
        for kept in KINDS[kind].kept:
            value = tensors.get(f"{kept}.{name}")
            if value is not None:
                # Counts of updates stay on the CPU, where torch keeps them.
                optimizer.state[parameter][kept] = value.to(parameter.device) if value.dim() else value
