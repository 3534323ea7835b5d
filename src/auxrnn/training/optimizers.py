"""How a phase learns: which losses count, at what rate (sections 3.3 and 4.1), clipping, and the optimizers.

The paper's is RMSProp; the others belong to the systems beside it.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from auxrnn.config import LRSchedule, OptimizerName
from auxrnn.models.cells.recurrence import Recurrence


def back_propagate(
    network: nn.Module, loss: Float[Tensor, ""], *, clip_norm: float, add_up: Callable[[], object] = lambda: None
) -> Float[Tensor, ""]:
    """Set the gradients of a loss, clipped by their global norm; return the norm before clipping.

    `add_up` is called before they are clipped, to add those of other processes.
    """
    network.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    add_up()
    return nn.utils.clip_grad_norm_(network.parameters(), clip_norm or float("inf"))


class RMSProp(torch.optim.Optimizer):
    """Divide each gradient by a running root mean square of its past values, as the paper does and TensorFlow did.

    The mean square starts at one and epsilon stands inside the root. torch's starts at zero, so that its first steps
    have the size of several learning rates in every weight, whatever the gradient.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        *,
        lr: float,
        decay: float = 0.9,
        epsilon: float = 1e-10,
    ) -> None:
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

    make: Callable[..., torch.optim.Optimizer]
    kept: tuple[str, ...]


KINDS: dict[OptimizerName, OptimizerKind] = {
    "rmsprop": OptimizerKind(RMSProp, ("mean_square",)),
    # tensor2tensor's, for the Transformers.
    "adam": OptimizerKind(partial(torch.optim.Adam, betas=(0.9, 0.997), eps=1e-9), ("step", "exp_avg", "exp_avg_sq")),
    # Zhang et al. (2015) and Conneau et al. (2016).
    "sgd": OptimizerKind(partial(torch.optim.SGD, momentum=0.9), ("momentum_buffer",)),
    # Xiao and Cho (2016).
    "adadelta": OptimizerKind(partial(torch.optim.Adadelta, rho=0.95, eps=1e-5), ("step", "square_avg", "acc_delta")),
}


SLOW = 0.25
"""What part of the learning rate a recurrence's slow parameters have."""


def make_optimizer(name: OptimizerName, network: nn.Module, *, lr: float) -> torch.optim.Optimizer:
    """Return a fresh optimizer of all weights of a network; each group of them has a `scale` of its rate."""
    slow = [part for module in network.modules() if isinstance(module, Recurrence) for part in module.slow_parameters()]
    slow_ids = set(map(id, slow))
    usual = [parameter for parameter in network.parameters() if id(parameter) not in slow_ids]
    groups = [{"params": usual, "scale": 1.0}, {"params": slow, "scale": SLOW}]
    optimizer = KINDS[name].make([group for group in groups if group["params"]], lr=lr)
    set_rate(optimizer, lr)
    return optimizer


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Set the learning rate, from which each group has its own."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group["scale"]


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
            if (value := tensors.get(f"{kept}.{name}")) is not None:
                # Counts of updates stay on the CPU, where torch keeps them.
                optimizer.state[parameter][kept] = value.to(parameter.device) if value.dim() else value


class Phase(NamedTuple):
    """A stretch of updates with the same losses; each phase starts with a fresh optimizer."""

    name: str
    num_steps: int
    is_supervised: bool
    is_auxiliary: bool
    lr: float
    halving_steps: float
    warmup_steps: int = 0
    lr_schedule: LRSchedule = "halving"

    def lr_at(self, step: int) -> float:
        """Return the learning rate of update `step` (0-based) of this phase.

        `halving`: halved once in pretraining, halfway; with labels, after every `halving_steps`. `cosine`: a linear
        warm-up of at most a tenth of the phase, then down to zero. `inverse-sqrt`: a linear warm-up, then down with the
        root of the step.
        """
        if self.lr_schedule == "cosine":
            warmup = min(self.warmup_steps, self.num_steps // 10)
            if step < warmup:
                return self.lr * (step + 1) / warmup
            return self.lr * (1 + math.cos(math.pi * (step - warmup) / max(self.num_steps - warmup, 1))) / 2
        if self.lr_schedule == "inverse-sqrt":
            return float(self.lr * min((step + 1) / self.warmup_steps, (self.warmup_steps / (step + 1)) ** 0.5))
        if self.is_supervised:
            return float(self.lr * 0.5 ** (step // self.halving_steps))
        return self.lr if 2 * step < self.num_steps else self.lr / 2


def true_token_probability(step: int, *, sampling_steps: int) -> float:
    """Return the probability that the decoder is fed a true token: from 1 down to 0, linearly over `sampling_steps`.

    `step` counts the updates of both phases; with 0 `sampling_steps` tokens are always true.
    """
    return max(0.0, 1 - step / sampling_steps) if sampling_steps else 1.0
