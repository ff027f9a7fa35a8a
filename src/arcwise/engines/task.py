"""What a head asks of an engine, and what it gets back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from arcwise.engines.stats import Stats
from arcwise.margins.base import Margin, State

NO_FILTER = 1.0


@dataclass(frozen=True)
class Task:
    """Everything about a loss but the embeddings, the centres and the labels.

    Attributes:
        margin: what training demands.
        scale: s.
        state: what the margin keeps and learns, by name.
        training: whether the margin takes note of the batch and may draw at random.
        centers_per_class: K; row j·K + k of the centres is sub-centre k of class j.
        filter_above: other classes whose cosine is above it are left out; 1 leaves out none.
    """

    margin: Margin
    scale: Tensor | float
    state: State = field(default_factory=dict)
    training: bool = False
    centers_per_class: int = 1
    filter_above: float = NO_FILTER


@dataclass(frozen=True)
class Outcome:
    """What came of a batch.

    Attributes:
        loss: the mean over the labelled samples, a scalar.
        stats: how the batch stands, measured without the margin.
        state: what the margin wants to keep from now on; empty unless training.
        own_center: (B,) which of its class's sub-centres each sample is nearest to.
    """

    loss: Tensor
    stats: Stats
    state: Mapping[str, Tensor]
    own_center: Tensor
