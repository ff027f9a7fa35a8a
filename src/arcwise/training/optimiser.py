"""The optimiser and its learning rate, a pure function of the step."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from arcwise.training.config import TrainConfig


def make_optimiser(modules: Iterable[nn.Module], config: TrainConfig) -> torch.optim.Optimizer:
    """SGD with Nesterov momentum, or AdamW; weight decay on the matrices of the backbone only.

    The backbone is the first of the modules. Class centres, proxies, biases and normalisation weights are not decayed. A centre's norm
    has no say in its direction; decaying it would only raise its effective learning rate.
    """
    backbone, *others = modules
    decayed: list[nn.Parameter] = []
    free = [p for module in others for p in module.parameters()]
    for parameter in backbone.parameters():
        (decayed if parameter.dim() >= 2 else free).append(parameter)
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": free, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    if config.optimiser == "adamw":
        return torch.optim.AdamW(groups, lr=config.lr, fused=True)
    return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, nesterov=config.momentum > 0, fused=True)


def learning_rate(step: int, total: int, config: TrainConfig) -> float:
    """The rate for step 0 … total − 1: a straight line up over `warmup_share` of the run, and a straight line down to 0."""
    peak = config.warmup_share * total
    share = (step + 1) / (peak + 1) if step < peak else (total - step) / (total - peak)
    return config.lr * share


def set_learning_rate(optimiser: torch.optim.Optimizer, lr: float) -> None:
    """Use `lr` from now on."""
    for group in optimiser.param_groups:
        group["lr"] = lr
