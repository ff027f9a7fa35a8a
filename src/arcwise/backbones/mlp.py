"""A perceptron with two hidden layers, for rows of features that something else made."""

from __future__ import annotations

from torch import Tensor, nn

from arcwise.backbones.embedding_layer import EmbeddingLayer
from arcwise.backbones.registry import register


class MLP(nn.Module):
    """Two hidden layers with batch norm, ReLU and a little dropout, then the embedding. Features are standardised before they come here.

    Args:
        shape: (features,).
        dim: the width of the embedding.
        hidden: the width of the hidden layers; None takes the power of two at or above twice the features, between 128 and 1024.
        dropout: the share of hidden values that are dropped in training.
    """

    def __init__(self, shape: tuple[int, ...], dim: int, *, hidden: int | None = None, dropout: float = 0.1) -> None:
        super().__init__()
        (features,) = shape
        width = hidden if hidden is not None else hidden_width(features)
        layers: list[nn.Module] = []
        for inputs in (features, width):
            layers += [
                nn.Linear(inputs, width, bias=False),
                nn.BatchNorm1d(width),
                nn.ReLU(inplace=True),
                nn.Dropout(dropout),
            ]
        self.layers = nn.Sequential(*layers)
        self.embedding = EmbeddingLayer(width, dim)

    def forward(self, x: Tensor) -> Tensor:
        embedding: Tensor = self.embedding(self.layers(x))
        return embedding


def hidden_width(features: int) -> int:
    """The power of two at or above twice the number of features, between 128 and 1024."""
    return min(1024, max(128, 1 << (2 * features - 1).bit_length()))


@register("mlp", min_size=None)
def mlp(shape: tuple[int, ...], dim: int) -> nn.Module:
    return MLP(shape, dim)
