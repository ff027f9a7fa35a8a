"""What training makes small: the head's loss and the terms beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from arcwise.engines import Stats
from arcwise.heads import Head
from arcwise.losses import Term


@dataclass(frozen=True)
class Parts:
    """What the loss of a batch is made of.

    Attributes:
        stats: of the head.
        values: by name, each without its weight and without gradients; the head's own loss is "head_loss". Empty where there are no
            terms.
    """

    stats: Stats
    values: Mapping[str, Tensor]


class Objective(nn.Module):
    """The head's loss plus each term times its weight, all on the same embeddings and the same centres.

    Args:
        head: it computes the loss, and gives the terms its centres.
        terms: by name, each with its weight.
    """

    def __init__(self, head: Head, terms: Mapping[str, tuple[Term, float]]) -> None:
        super().__init__()
        self.head = head
        self.terms = nn.ModuleDict({name: term for name, (term, _) in terms.items()})
        self.weights = {name: weight for name, (_, weight) in terms.items()}

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names under which the parts of the loss are told."""
        return ("head_loss", *self.terms) if len(self.terms) else ()

    def forward(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Parts]:
        """The whole loss, and what it is made of."""
        loss, stats = self.head(embeddings, labels, return_stats=True)
        if not len(self.terms):
            return loss, Parts(stats, {})
        values = {"head_loss": loss.detach()}
        for name, term in self.terms.items():
            value = term(embeddings, labels, self.head.dominant_centers() if term.needs_centers else None)
            values[name] = value.detach()
            loss = loss + self.weights[name] * value
        return loss, Parts(stats, values)
