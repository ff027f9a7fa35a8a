from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arcwise import SoftmaxHead
from arcwise.training.meters import Meters

CPU = torch.device("cpu")


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 1000))
def test_the_averages_are_those_over_all_labelled_samples(sizes: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    head, meters = SoftmaxHead(4, 3), Meters(CPU)
    losses, right, angles = [], [], []
    for size in sizes:
        embeddings, labels = torch.randn(size, 4), torch.randint(-1, 3, (size,))
        loss, stats = head(embeddings, labels, return_stats=True)
        meters.add(loss, stats)
        for embedding, label in zip(embeddings, labels.tolist(), strict=True):
            if label < 0:
                continue
            logits = head.logits(embedding[None])[0].detach()
            losses.append(float(torch.logsumexp(logits, 0) - logits[label]))
            right.append(int(logits.argmax()) == label)
            centre = head.weight[label].detach()
            angles.append(math.degrees(math.acos(float(embedding @ centre / embedding.norm() / centre.norm()))))
    read = meters.read()
    count = max(len(losses), 1)
    assert read["loss"] == pytest.approx(sum(losses) / count, rel=1e-4, abs=1e-5)
    assert read["accuracy"] == pytest.approx(sum(right) / count)
    assert read["target_angle"] == pytest.approx(sum(angles) / count, abs=0.1)


def test_after_a_reset_nothing_is_left() -> None:
    head, meters = SoftmaxHead(4, 3), Meters(CPU)
    meters.add(*head(torch.randn(5, 4), torch.zeros(5, dtype=torch.int64), return_stats=True))
    assert meters.read()["loss"] > 0
    meters.reset()
    assert meters.read() == {"loss": 0, "accuracy": 0, "target_angle": 0}


def test_a_loss_that_is_not_finite_shows() -> None:
    head, meters = SoftmaxHead(4, 3), Meters(CPU)
    embeddings = torch.full((2, 4), math.nan)
    meters.add(*head(embeddings, torch.zeros(2, dtype=torch.int64), return_stats=True))
    assert math.isnan(meters.read()["loss"])
