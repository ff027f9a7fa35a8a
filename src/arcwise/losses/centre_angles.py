"""The mean angle from class centres to all others, tile by tile: no (N, N) is ever stored, neither for the value nor for its gradient."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

ROWS, COLUMNS = 1024, 4096


class _MeanAngleToOthers(torch.autograd.Function):
    """Σ_r a_r · mean over j ≠ class(r) of θ(ŵ_class(r), ŵ_j), whose gradient is gathered on the same way through the tiles."""

    @staticmethod
    def forward(ctx: Any, w_hat_ND: Tensor, classes_R: Tensor, share_R: Tensor) -> Tensor:
        N = len(w_hat_ND)
        floor = math.sqrt(torch.finfo(w_hat_ND.dtype).eps)
        total = torch.zeros((), dtype=torch.float64, device=w_hat_ND.device)
        gradient_ND = torch.zeros_like(w_hat_ND) if ctx.needs_input_grad[0] else None
        columns_N = torch.arange(N, device=w_hat_ND.device)
        share_R = share_R.to(w_hat_ND.dtype) / max(N - 1, 1)
        for classes_T, share_T in zip(classes_R.split(ROWS), share_R.split(ROWS), strict=True):
            rows_TD = w_hat_ND[classes_T]
            for columns_S in columns_N.split(COLUMNS):
                part = slice(int(columns_S[0]), int(columns_S[0]) + len(columns_S))
                others_TS = classes_T.unsqueeze(1) != columns_S
                cos_TS = (rows_TD @ w_hat_ND[part].T).clamp_(-1.0, 1.0)
                sin_TS = ((1 - cos_TS) * (1 + cos_TS)).sqrt_()
                theta_T = torch.where(others_TS, torch.atan2(sin_TS, cos_TS), 0.0).sum(dim=1)
                total += (theta_T * share_T).sum(dtype=torch.float64)
                if gradient_ND is not None:
                    slope_TS = torch.where(others_TS, -share_T.unsqueeze(1) / sin_TS.clamp_min_(floor), 0.0)
                    gradient_ND.index_add_(0, classes_T, slope_TS @ w_hat_ND[part])
                    gradient_ND[part] += slope_TS.T @ rows_TD
        if gradient_ND is not None:
            ctx.save_for_backward(gradient_ND)
        return total.to(w_hat_ND.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        (gradient_ND,) = ctx.saved_tensors
        return g * gradient_ND, None, None


def mean_angle_to_others(w_hat_ND: Tensor, classes_R: Tensor, share_R: Tensor) -> Tensor:
    """How far centres stand from all others, in radians.

    Args:
        w_hat_ND: (N, D) centres of length 1.
        classes_R: (R,) the classes to look from, each as often as it is to count.
        share_R: (R,) how much each of them counts; 0 leaves it out.
    """
    return _MeanAngleToOthers.apply(w_hat_ND, classes_R, share_R)  # type: ignore[no-any-return, no-untyped-call]
