"""Rows of unit length, with gradients that stay finite for every finite row."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _UnitRows(torch.autograd.Function):
    """x̂ = x/‖x‖ and its Jacobian dx = (g − (g·x̂) x̂)/‖x‖, written out."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: torch.dtype) -> Tensor:
        wide = x.to(dtype)
        # Dividing by the largest entry first keeps the squares of huge and of tiny rows representable.
        largest = wide.abs().amax(dim=1, keepdim=True)
        scaled = wide / torch.where(largest == 0, torch.ones_like(largest), largest)
        length = scaled.square().sum(dim=1, keepdim=True).sqrt()
        # The length is 0 or at least 1, or NaN, which must not be hidden.
        x_hat = scaled / torch.where(length == 0, torch.ones_like(length), length)
        ctx.save_for_backward(x_hat, length * largest)
        ctx.input_dtype = x.dtype
        return x_hat

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        x_hat, norm = ctx.saved_tensors
        along = (g * x_hat).sum(dim=1, keepdim=True)
        # A row of zeros has no direction to turn; a row so short that the gradient would overflow gets the largest finite one.
        # Longer rows may overflow: that is how a gradient scaler for float16 learns that its scale is too large.
        jacobian = (g - along * x_hat) / torch.where(norm == 0, torch.full_like(norm, torch.inf), norm)
        bound = torch.finfo(ctx.input_dtype).max
        jacobian = torch.where(norm < 1, jacobian.clamp(-bound, bound), jacobian)
        return jacobian.to(ctx.input_dtype), None


def unit_rows(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """A copy of x with every row scaled to length 1, computed and returned in `dtype` (float32 at least by default).

    A row of zeros stays zero and gets no gradient.
    """
    dtype = dtype if dtype is not None else torch.promote_types(x.dtype, torch.float32)
    return _UnitRows.apply(x, dtype)  # type: ignore[no-any-return, no-untyped-call]


class _RowLengths(torch.autograd.Function):
    """‖x‖ and its gradient g·x̂, which is as finite as g whatever the row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        dtype = torch.promote_types(x.dtype, torch.float32)
        wide = x.to(dtype)
        largest = wide.abs().amax(dim=1)
        safe = torch.where(largest == 0, torch.ones_like(largest), largest)
        scaled = wide / safe.unsqueeze(1)
        length = scaled.square().sum(dim=1).sqrt()
        ctx.save_for_backward(scaled / torch.where(length == 0, torch.ones_like(length), length).unsqueeze(1))
        ctx.input_dtype = x.dtype
        # A row near the end of the range may be longer than any number.
        return (length * largest).clamp_max(torch.finfo(dtype).max)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x_hat,) = ctx.saved_tensors
        dx: Tensor = (g.unsqueeze(1) * x_hat).to(ctx.input_dtype)
        return dx


def row_lengths(x: Tensor) -> Tensor:
    """(B,) the length of every row, in float32 at least."""
    return _RowLengths.apply(x)  # type: ignore[no-any-return, no-untyped-call]
