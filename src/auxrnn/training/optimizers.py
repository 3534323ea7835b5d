"""Gradients and updates: clipping, the paper's RMSProp, and the optimizers of the systems beside it."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from auxrnn.config import OptimizerName


def back_propagate(network: nn.Module, loss: Float[Tensor, ""], *, clip_norm: float) -> Float[Tensor, ""]:
    """Set the gradients of a loss, clipped by their global norm; return the norm before clipping."""
    network.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return nn.utils.clip_grad_norm_(network.parameters(), clip_norm or float("inf"))


class RMSProp(torch.optim.Optimizer):
    """Divide each gradient by a running root mean square of its past values, as the paper does and TensorFlow did.

    The mean square starts at one and epsilon stands inside the root. torch's starts at zero, so that its first steps
    have the size of several learning rates in every weight, whatever the gradient.
    """

    def __init__(self, params: Iterable[Tensor], *, lr: float, decay: float = 0.9, epsilon: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "decay": decay, "epsilon": epsilon})
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["mean_square"] = torch.ones_like(parameter)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            params = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not params:
                continue
            grads = [parameter.grad for parameter in params]
            mean_squares = [self.state[parameter]["mean_square"] for parameter in params]
            torch._foreach_mul_(mean_squares, group["decay"])
            torch._foreach_addcmul_(mean_squares, grads, grads, 1 - group["decay"])
            roots = torch._foreach_sqrt(torch._foreach_add(mean_squares, group["epsilon"]))
            torch._foreach_addcdiv_(params, grads, roots, -group["lr"])
        return loss


class OptimizerKind(NamedTuple):
    """How an optimizer is created, and the tensors that it keeps for each parameter, by name."""

    make: Callable[[Iterable[Tensor], float], torch.optim.Optimizer]
    kept: tuple[str, ...]


KINDS: dict[OptimizerName, OptimizerKind] = {
    "rmsprop": OptimizerKind(lambda params, lr: RMSProp(params, lr=lr), ("mean_square",)),
    # tensor2tensor's, for the Transformers.
    "adam": OptimizerKind(
        lambda params, lr: torch.optim.Adam(params, lr=lr, betas=(0.9, 0.997), eps=1e-9),
        ("step", "exp_avg", "exp_avg_sq"),
    ),
    # Zhang et al. (2015) and Conneau et al. (2016).
    "sgd": OptimizerKind(lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9), ("momentum_buffer",)),
    # Xiao and Cho (2016).
    "adadelta": OptimizerKind(
        lambda params, lr: torch.optim.Adadelta(params, lr=lr, rho=0.95, eps=1e-5),
        ("step", "square_avg", "acc_delta"),
    ),
}


def make_optimizer(name: OptimizerName, network: nn.Module, *, lr: float) -> torch.optim.Optimizer:
    """Return a fresh optimizer of all weights of a network."""
    return KINDS[name].make(network.parameters(), lr)


def collect_state(optimizer: torch.optim.Optimizer, network: nn.Module) -> dict[str, Tensor]:
    """Return the state of an optimizer, by the kind of tensor and the name of the weights."""
    return {
        f"{kept}.{name}": value
        for name, parameter in network.named_parameters()
        for kept, value in optimizer.state[parameter].items()
        if isinstance(value, Tensor)
    }


def restore_state(
    optimizer: torch.optim.Optimizer, network: nn.Module, tensors: dict[str, Tensor], *, kind: OptimizerName
) -> None:
    """Restore the state that `collect_state` returned, as far as it is among these tensors."""
    for name, parameter in network.named_parameters():
        for kept in KINDS[kind].kept:
            value = tensors.get(f"{kept}.{name}")
            if value is not None:
                # Counts of updates stay on the CPU, where torch keeps them.
                optimizer.state[parameter][kept] = value.to(parameter.device) if value.dim() else value
