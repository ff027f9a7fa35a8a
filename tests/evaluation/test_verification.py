from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.errors import DataError
from arcwise.evaluation import verification as verify
from arcwise.evaluation.angles import angle_between, unit_rows
from arcwise.progress import Reporter, Stage

BIN = 1 / 400
# The package's function of the same name hides the module from attribute access.
MODULE = import_module("arcwise.evaluation.verification")


def clouds(num: int, dim: int, classes: int, spread: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (num,), generator=generator)
    return torch.randn(classes, dim, generator=generator)[labels] + spread * torch.randn(
        num, dim, generator=generator
    ), labels


def angles_and_kinds(embeddings: Tensor, labels: Tensor) -> tuple[list[float], list[bool]]:
    """Every pair once, by a plain double loop."""
    unit = unit_rows(embeddings)
    angles, genuine = [], []
    for i in range(len(unit)):
        for j in range(i + 1, len(unit)):
            angles.append(math.degrees(angle_between(unit[i], unit[j]).item()))
            genuine.append(bool(labels[i] == labels[j]))
    return angles, genuine


@pytest.mark.parametrize(("dim", "spread"), [(2, 0.5), (3, 1.0), (16, 2.0)])
def test_it_agrees_with_the_definition_pair_by_pair(dim: int, spread: float) -> None:
    embeddings, labels = clouds(70, dim, 4, spread)
    found = verify(embeddings, labels)
    angles, kinds = angles_and_kinds(embeddings, labels)
    genuine = np.array([angle for angle, same in zip(angles, kinds, strict=True) if same])
    impostor = np.array([angle for angle, same in zip(angles, kinds, strict=True) if not same])
    assert (found.num_genuine, found.num_impostor) == (len(genuine), len(impostor))
    assert found.auc == pytest.approx((genuine[:, None] < impostor[None]).mean(), abs=2e-4)
    at = found.threshold_degrees
    for slack in (-BIN, BIN):
        # One bin to either side of the threshold both error rates are the stated one, up to the pairs in those bins.
        assert (impostor < at + slack).mean() == pytest.approx(found.eer, abs=0.006)
        assert (genuine >= at + slack).mean() == pytest.approx(found.eer, abs=0.006)
    assert list(found.genuine) == np.histogram(genuine, bins=180, range=(0, 180))[0].tolist()
    assert list(found.impostor) == np.histogram(impostor, bins=180, range=(0, 180))[0].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_the_roc_curve_of_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    embeddings, labels = clouds(150, 5, 6, 1.0, seed)
    found = verify(embeddings, labels)
    angles, genuine = angles_and_kinds(embeddings, labels)
    passed, accepted, _ = metrics.roc_curve(genuine, [-angle for angle in angles], drop_intermediate=False)
    refused = 1 - accepted
    k = int(np.argmax(passed >= refused))
    share = (refused[k - 1] - passed[k - 1]) / ((passed[k] - passed[k - 1]) + (refused[k - 1] - refused[k]))
    assert found.eer == pytest.approx(passed[k - 1] + share * (passed[k] - passed[k - 1]), abs=1e-3)
    assert found.auc == pytest.approx(metrics.roc_auc_score(genuine, [-angle for angle in angles]), abs=1e-4)


def test_tiles_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = clouds(130, 3, 5, 1.0)
    whole = verify(embeddings, labels)
    monkeypatch.setattr(MODULE, "TILE", 48)
    assert verify(embeddings, labels) == whole


def test_float32_cosines_of_many_samples_give_the_same_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = clouds(400, 8, 5, 1.0)
    precise = verify(embeddings, labels)
    monkeypatch.setattr(MODULE, "FLOAT64_ROWS", 0)
    quick = verify(embeddings, labels)
    assert quick.eer == pytest.approx(precise.eer, abs=1e-4)
    assert quick.auc == pytest.approx(precise.auc, abs=1e-5)
    assert quick.num_genuine == precise.num_genuine


def test_perfect_separation_has_no_errors_and_a_threshold_in_the_middle_of_the_gap() -> None:
    degrees = torch.tensor([0.0, 10.0, 90.0, 100.0]) * math.pi / 180
    found = verify(torch.stack([degrees.cos(), degrees.sin()], dim=1), torch.tensor([0, 0, 1, 1]))
    assert (found.eer, found.auc) == (0.0, 1.0)
    assert found.threshold_degrees == pytest.approx((10 + 80) / 2, abs=2 * BIN)


def test_an_order_worse_than_chance_has_an_error_rate_above_one_half() -> None:
    degrees = torch.tensor([0.0, 170.0, 5.0, 175.0]) * math.pi / 180
    found = verify(torch.stack([degrees.cos(), degrees.sin()], dim=1), torch.tensor([0, 0, 1, 1]))
    # Genuine pairs at 170° twice; impostors at 5° twice, 165° and 175°.
    assert found.auc == pytest.approx(0.25)
    assert found.eer == pytest.approx(0.75)


def test_pairs_that_are_all_tied_are_a_coin_toss() -> None:
    found = verify(torch.ones(6, 3), torch.tensor([0, 0, 0, 1, 1, 1]))
    assert found.eer == pytest.approx(0.5)
    assert found.auc == pytest.approx(0.5)
    assert found.genuine[0] == found.num_genuine


def test_opposite_embeddings_land_in_the_last_bin() -> None:
    found = verify(torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), torch.tensor([0, 0, 1]))
    assert (found.genuine[0], found.impostor[179]) == (1, 2)


def test_angles_far_below_a_degree_are_told_apart() -> None:
    degrees = torch.tensor([0.0, 0.01, 0.06, 0.07], dtype=torch.float64) * math.pi / 180
    found = verify(torch.stack([degrees.cos(), degrees.sin()], dim=1), torch.tensor([0, 0, 1, 1]))
    assert found.eer == 0.0
    assert found.threshold_degrees == pytest.approx(0.03, abs=2 * BIN)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 10.0))
def test_rotating_and_scaling_the_embeddings_changes_no_rate(seed: int, scale: float) -> None:
    embeddings, labels = clouds(40, 4, 3, 0.7, seed)
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(seed)))[0]
    before, after = verify(embeddings, labels), verify(scale * embeddings @ rotation, labels)
    assert after.auc == pytest.approx(before.auc, abs=5e-3)
    assert after.eer == pytest.approx(before.eer, abs=1e-2)


def test_float16_embeddings_are_measured_as_the_numbers_they_hold() -> None:
    embeddings, labels = clouds(60, 4, 3, 1.0)
    half = embeddings.half()
    assert verify(half, labels) == verify(half.double(), labels)


def test_samples_without_a_label_take_no_part() -> None:
    embeddings, labels = clouds(60, 4, 3, 1.0)
    padded = torch.cat([torch.zeros(5, 4), embeddings])
    assert verify(padded, torch.cat([torch.full((5,), -1), labels])) == verify(embeddings, labels)


def test_a_single_class_has_no_impostors() -> None:
    with pytest.raises(DataError, match="got 3 samples of a single class"):
        verify(torch.ones(3, 2), torch.tensor([4, 4, 4]))


def test_one_sample_a_class_has_no_genuine_pairs() -> None:
    with pytest.raises(DataError, match="got 3 classes with one sample each"):
        verify(torch.ones(3, 2), torch.tensor([0, 1, 2]))


def test_an_embedding_without_a_direction_is_named() -> None:
    embeddings = torch.ones(4, 2)
    embeddings[3] = 0
    with pytest.raises(DataError, match="length zero have no direction: 1 of 4, in rows 3"):
        verify(embeddings, torch.tensor([0, 0, 1, 1]))


def test_the_result_can_be_shown_and_written_as_json() -> None:
    found = verify(*clouds(50, 3, 4, 1.0))
    read = json.loads(json.dumps(found.to_dict()))
    assert len(read["histogram"]["degrees"]) == len(read["histogram"]["genuine"]) + 1 == 181
    assert sum(read["histogram"]["impostor"]) == read["num_impostor"]
    assert dict(found.table())["equal error rate"] == f"{100 * found.eer:.2f} %"


class Keeper(Reporter):
    """Remembers its stages."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        self.stages.append(Stage(title, total))
        yield self.stages[-1]


def test_progress_counts_every_pair() -> None:
    reporter = Keeper()
    verify(*clouds(50, 3, 4, 1.0), reporter=reporter)
    (stage,) = reporter.stages
    assert stage.done == stage.total == 50 * 49 // 2
