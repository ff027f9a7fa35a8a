"""LongTail: the rarer a class, the larger its margin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, get_args

import torch
from torch import Tensor

from arcwise.margins.base import (
    Facts,
    Margin,
    Samples,
    State,
    check_angle,
    check_cosine,
    check_range,
    check_word,
    register,
)
from arcwise.margins.continuation import combined_curve

Kind = Literal["cos", "arc"]


@register("long-tail")
@dataclass(frozen=True)
class LongTail(Margin):
    """A margin for each class, the larger the fewer samples it has.  Cao et al. 2019.

    A class seen rarely varies more in test than its few samples show, so it is given more room at the expense of frequent ones. Counts come
    from `MarginHead(class_counts=...)`; without them the head counts the labels that it sees.

    Prefer `CosFace` where classes are of about the same size: there it is the same, with more to compute.

    Asks for: winning by m in the cosine for the rarest class, by less for frequent ones.
    Take it when: some classes have a hundred times as many samples as others.

    Formula:
        m_j = m·(n_min/n_j)^power, for a class of n_j samples, where the rarest has n_min; m for a class without samples
        target: s·(cos θ_y − m_y), or s·ψ(θ_y) with ArcFace's ψ and m_y for kind "arc"
        other classes: s·cos θ_j

    Args:
        m: the margin of the rarest class: a difference of cosines, 0 ≤ m < 2, or radians, 0 ≤ m < π/2, for kind "arc".
        power: how fast margins fall with the number of samples, 0 to 1. The paper derives 1/4.
        kind: "cos" for a margin on the cosine, as in the paper, "arc" for one on the angle.

    Paper:
        Kaidi Cao, Colin Wei, Adrien Gaidon, Nikos Arechiga, Tengyu Ma. Learning Imbalanced Datasets with Label-Distribution-Aware Margin
        Loss. NeurIPS 2019. arXiv:1906.07413
    """

    title: ClassVar[str] = "Long-Tail"
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.05, 0.6)}

    m: float = 0.5
    power: float = 0.25
    kind: Kind = "cos"

    def __post_init__(self) -> None:
        check_word("kind of LongTail", self.kind, get_args(Kind))
        (check_angle if self.kind == "arc" else check_cosine)("m", self.m)
        check_range("power", self.power, 0, 1, "how fast margins fall with the number of samples")

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        """For the rarest class."""
        return self._curve(cos_B, torch.full_like(cos_B, self.m))

    def psi(self, samples: Samples) -> Tensor:
        with torch.no_grad():
            m_B = self.class_margins(samples.state)[samples.labels_B.clamp_min(0)].to(samples.cos_B.dtype)
        return self._differentiable(samples.cos_B, lambda cos_B: self._curve(cos_B, m_B))

    def class_margins(self, state: State) -> Tensor:
        """(N,) the margin of each class."""
        counts_N = state["counts"]
        rarest = torch.where(counts_N > 0, counts_N, torch.inf).min()
        return self.m * (rarest / torch.where(counts_N > 0, counts_N, rarest)).nan_to_num(1.0) ** self.power

    def initial_state(self, facts: Facts) -> dict[str, Tensor]:
        given = facts.class_counts
        counts_N = given.detach().float().clone() if given is not None else torch.zeros(facts.num_classes)
        return {"counts": counts_N, "counting": torch.tensor(given is None)}

    def observe(self, samples: Samples) -> dict[str, Tensor]:
        state = samples.state
        seen_B = (samples.valid_B & state["counting"]).to(state["counts"].dtype)
        return {"counts": state["counts"].index_add(0, samples.labels_B.clamp_min(0), seen_B)}

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m)

    def _curve(self, cos_B: Tensor, m_B: Tensor) -> tuple[Tensor, Tensor]:
        if self.kind == "cos":
            return cos_B - m_B, torch.ones_like(cos_B)
        return combined_curve(cos_B, 1.0, m_B, 0.0, "continuous")
