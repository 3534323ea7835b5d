"""RMSProp with the paper's semantics, which are TensorFlow's.

The mean square starts at one and epsilon stands inside the root. torch's starts at zero, so that its first steps have
the size of several learning rates in every weight, whatever the gradient.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class RMSProp(torch.optim.Optimizer):
    """Divide each gradient by a running root mean square of its past values."""

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
