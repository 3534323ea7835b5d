"""All steps of a uRNN whose recurrent matrix is multiplied out, as one operation with its own backward pass.

    z_t = h_{t-1} W + input_t,    h_t = modReLU(z_t)

on complex numbers given as all real parts, then all imaginary parts (`R` counts both). Autograd would add up a whole
matrix of gradients at every step; here the steps go back through the states alone, and W gets one product at the end.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

# Added to a squared modulus, so that the direction z / |z| has a finite gradient at zero.
SMALLEST_SQUARE = 1e-10


def walk_dense(
    input_TBR: Float[Tensor, "T B R"],
    start_BR: Float[Tensor, "B R"],
    matrix_RR: Float[Tensor, "R R"],
    bias_H: Float[Tensor, " H"],
    idle_BT: Bool[Tensor, "B T"] | None,
) -> Float[Tensor, "T B R"]:
    """Give the state after every step; an idle one changes nothing."""
    states_TBR: Tensor = _Walk.apply(input_TBR, start_BR, matrix_RR, bias_H, idle_BT)  # type: ignore[no-untyped-call]
    return states_TBR


class _Walk(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input_TBR: Tensor, start_BR: Tensor, matrix_RR: Tensor, bias_H: Tensor, idle_BT: Any) -> Any:
        z_TBR, h_TBR, h_BR = torch.empty_like(input_TBR), torch.empty_like(input_TBR), start_BR
        steps = zip(input_TBR, z_TBR, _split(z_TBR), h_TBR, _split(h_TBR), strict=True)
        for step, (input_BR, z_BR, z_B2H, next_BR, next_B2H) in enumerate(steps):
            torch.addmm(input_BR, h_BR, matrix_RR, out=z_BR)
            torch.mul(z_B2H, _find_scale(_invert(z_B2H), bias_H)[:, None], out=next_B2H)
            if idle_BT is not None:
                next_BR.copy_(torch.where(idle_BT[:, step, None], h_BR, next_BR))
            h_BR = next_BR
        ctx.save_for_backward(start_BR, matrix_RR, bias_H, idle_BT, z_TBR, h_TBR)
        return h_TBR

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (gradient_TBR,) = gradients
        start_BR, matrix_RR, bias_H, idle_BT, z_TBR, h_TBR = ctx.saved_tensors
        inverse_TBH = _invert(_split(z_TBR))
        scale_TBH = _find_scale(inverse_TBH, bias_H)
        # How the scale grows with the bias, and what makes it shrink as z grows.
        slope_TBH = inverse_TBH * (scale_TBH > 0)
        bend_TBH = bias_H * slope_TBH * inverse_TBH.square()
        toward_TBH, dz_TBR, dh_BR = torch.empty_like(scale_TBH), torch.empty_like(z_TBR), torch.zeros_like(start_BR)
        back_RR = matrix_RR.T.contiguous()
        parts = (gradient_TBR, _split(z_TBR), scale_TBH[:, :, None], bend_TBH, toward_TBH, dz_TBR, _split(dz_TBR))
        steps = list(zip(*parts, strict=True))
        for step in range(len(steps) - 1, -1, -1):
            gradient_BR, z_B2H, scale_B1H, bend_BH, toward_BH, dz_BR, dz_B2H = steps[step]
            dh_BR = dh_BR + gradient_BR
            active_BR = dh_BR if idle_BT is None else dh_BR.masked_fill(idle_BT[:, step, None], 0)
            active_B2H = active_BR.view(z_B2H.shape)
            torch.sum(active_B2H * z_B2H, dim=1, out=toward_BH)
            torch.mul(active_B2H, scale_B1H, out=dz_B2H)
            dz_B2H.addcmul_(z_B2H, (toward_BH * bend_BH)[:, None], value=-1)
            passed_BR = dz_BR @ back_RR
            dh_BR = passed_BR if idle_BT is None else torch.where(idle_BT[:, step, None], dh_BR, passed_BR)
        before_TBR = torch.cat([start_BR[None], h_TBR[:-1]])
        dmatrix_RR = before_TBR.flatten(0, 1).T @ dz_TBR.flatten(0, 1)
        return dz_TBR, dh_BR, dmatrix_RR, (toward_TBH * slope_TBH).sum(dim=(0, 1)), None


def _split(x_TBR: Tensor) -> Tensor:
    """Look at real and imaginary parts side by side: [T, B, 2, H]."""
    return x_TBR.view(*x_TBR.shape[:-1], 2, -1)


def _invert(z_B2H: Tensor) -> Tensor:
    """Give 1 / |z|."""
    real_BH, imaginary_BH = z_B2H.unbind(-2)
    return torch.addcmul(real_BH * real_BH, imaginary_BH, imaginary_BH).add_(SMALLEST_SQUARE).rsqrt_()


def _find_scale(inverse_BH: Tensor, bias_H: Tensor) -> Tensor:
    """Give what modReLU multiplies a complex number with."""
    return (inverse_BH * bias_H).add_(1).relu_()
