"""Rows of unit length, with gradients that stay finite for every finite row."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _UnitRows(torch.autograd.Function):
    """x̂ = x/‖x‖ and its Jacobian dx = (g − (g·x̂) x̂)/‖x‖, written out."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: torch.dtype) -> Tensor:
        wide = x.to(dtype)
        # Dividing by the largest entry first keeps the squares of huge and of tiny rows representable.
        largest = wide.abs().amax(dim=1, keepdim=True)
        largest = torch.where(largest > 0, largest, torch.ones_like(largest))
        scaled = wide / largest
        length = scaled.square().sum(dim=1, keepdim=True).sqrt()
        x_hat = torch.where(length > 0, scaled / length.clamp_min(0.5), torch.zeros_like(scaled))
        ctx.save_for_backward(x_hat, length * largest)
        ctx.input_dtype = x.dtype
        return x_hat

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        x_hat, norm = ctx.saved_tensors
        along = (g * x_hat).sum(dim=1, keepdim=True)
        # A row of zeros has no direction to turn; a row so short that the gradient would overflow gets the largest finite one.
        jacobian = (g - along * x_hat) / torch.where(norm > 0, norm, torch.full_like(norm, torch.inf))
        bound = torch.finfo(ctx.input_dtype).max
        return jacobian.clamp(-bound, bound).to(ctx.input_dtype), None


def unit_rows(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """A copy of x with every row scaled to length 1, computed and returned in `dtype` (float32 at least by default).

    A row of zeros stays zero and gets no gradient.
    """
    dtype = dtype if dtype is not None else torch.promote_types(x.dtype, torch.float32)
    return _UnitRows.apply(x, dtype)  # type: ignore[no-any-return, no-untyped-call]
