from __future__ import annotations

import pytest
import torch

from arcwise.errors import ConfigError
from arcwise.losses import CenterLoss


def test_centres_follow_by_the_rule_of_the_paper() -> None:
    """Equation 4: Δc_j = Σ_i δ(y_i = j)(c_j − x_i) / (1 + Σ_i δ(y_i = j)), and c_j ← c_j − α·Δc_j."""
    term = CenterLoss(3, 4, alpha=0.3)
    term.centers.normal_()
    x, labels = torch.randn(6, 3), torch.tensor([0, 0, 2, -1, 0, 2])
    expected = term.centers.clone()
    for j in range(4):
        mine = [x[i] for i in range(6) if labels[i] == j]
        if mine:
            delta = torch.stack([expected[j] - row for row in mine]).sum(dim=0) / (1 + len(mine))
            expected[j] = expected[j] - 0.3 * delta
    term(x, labels)
    torch.testing.assert_close(term.centers, expected)
    assert not torch.equal(term.centers[0], torch.zeros(3))


def test_the_value_is_that_before_the_centres_moved() -> None:
    term = CenterLoss(2, 2)
    x = torch.tensor([[3.0, 4.0]])
    assert float(term(x, torch.tensor([1]))) == 12.5
    assert term.centers.tolist() == [[0, 0], [0.75, 1.0]]


@pytest.mark.parametrize("quiet", ["evaluation", "no gradients"])
def test_looking_moves_no_centre(quiet: str) -> None:
    term = CenterLoss(2, 2).train(quiet != "evaluation")
    with torch.set_grad_enabled(quiet != "no gradients"):
        term(torch.randn(5, 2), torch.zeros(5, dtype=torch.int64))
    assert torch.equal(term.centers, torch.zeros(2, 2))


def test_centres_end_at_the_means_of_their_classes() -> None:
    term = CenterLoss(3, 2)
    x, labels = torch.randn(40, 3) + 5, torch.arange(40) % 2
    for _ in range(50):
        term(x, labels)
    torch.testing.assert_close(term.centers, torch.stack([x[labels == j].mean(dim=0) for j in range(2)]))


def test_centres_are_moved_by_embeddings_and_not_by_an_optimiser() -> None:
    term = CenterLoss(3, 2)
    assert list(term.parameters()) == []
    assert term.state_dict().keys() == {"centers"}
    x = torch.randn(4, 3, dtype=torch.float16, requires_grad=True)
    term(x, torch.tensor([0, 1, 0, 1])).backward()
    assert not term.centers.requires_grad
    assert term.centers.dtype == torch.float32


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_an_alpha_that_is_no_share_is_named(alpha: float) -> None:
    with pytest.raises(ConfigError, match=r"alpha must be in \[0, 1\], a share of the way.*; got "):
        CenterLoss(3, 2, alpha)
