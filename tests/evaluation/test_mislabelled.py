from __future__ import annotations

import json
import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.errors import ConfigError, DataError
from arcwise.evaluation import likely_mislabelled
from arcwise.evaluation import mislabelled as module

CLASSES, DIM = 5, 6


def clouds(num: int = 80, seed: int = 0, spread: float = 0.3) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings, labels of which every tenth is wrong, and the true class centres."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.arange(num) % CLASSES
    centers = 3 * torch.eye(CLASSES, DIM) + 0.3 * torch.randn(CLASSES, DIM, generator=generator)
    embeddings = centers[true] + spread * torch.randn(num, DIM, generator=generator)
    labels = torch.where(torch.arange(num) % 10 == 0, (true + 1) % CLASSES, true)
    return embeddings, labels, centers


def degrees_between(a: Tensor, b: Tensor) -> float:
    cosine = torch.dot(a.double(), b.double()) / a.double().norm() / b.double().norm()
    return math.degrees(math.acos(float(cosine.clamp(-1, 1))))


def naive(embeddings: Tensor, labels: Tensor, centers: Tensor) -> list[tuple[int, int, float, float]]:
    """(row, suggested, own angle, other angle) by the definition, in the order of the ranking."""
    judged = []
    for row in range(len(labels)):
        own = int(labels[row])
        if own < 0:
            continue
        angles = {j: degrees_between(embeddings[row], centers[j]) for j in range(len(centers)) if centers[j].any()}
        other = min((j for j in angles if j != own), key=lambda j: angles[j])
        judged.append((row, other, angles[own], angles[other]))
    return sorted(judged, key=lambda entry: entry[3] - entry[2])


@pytest.fixture(params=[1, 37, 1 << 24])
def in_tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE", request.param)


@pytest.mark.usefixtures("in_tiles")
def test_the_ranking_is_that_of_the_definition() -> None:
    embeddings, labels, centers = clouds()
    labels[7] = -1
    ranked = likely_mislabelled(embeddings, labels, centers)
    expected = naive(embeddings, labels, centers)
    assert [(s.row, s.suggested) for s in ranked] == [entry[:2] for entry in expected]
    for suspect, (row, _, own, other) in zip(ranked, expected, strict=True):
        assert suspect.label == labels[row]
        assert suspect.own_angle == pytest.approx(own, abs=1e-4)
        assert suspect.other_angle == pytest.approx(other, abs=1e-4)
        assert suspect.score == suspect.own_angle - suspect.other_angle
    assert ranked.num_judged == len(expected) == 79
    assert ranked.num_suspect == sum(own > other for _, _, own, other in expected)


def test_wrong_labels_come_first_with_the_class_that_they_should_have() -> None:
    embeddings, labels, centers = clouds()
    for given_centers in (centers, None):
        ranked = likely_mislabelled(embeddings, labels, given_centers)
        assert {suspect.row for suspect in ranked if suspect.score > 0} == set(range(0, 80, 10))
        assert all(suspect.suggested == suspect.row % CLASSES for suspect in ranked if suspect.score > 0)


@pytest.mark.usefixtures("in_tiles")
def test_without_centres_a_sample_has_no_say_in_where_its_own_class_is() -> None:
    embeddings, labels, _ = clouds(30, spread=2.0)
    ranked = likely_mislabelled(embeddings, labels)
    unit = torch.nn.functional.normalize(embeddings.double())
    for suspect in ranked:
        others = (labels == suspect.label) & (torch.arange(30) != suspect.row)
        assert suspect.own_angle == pytest.approx(degrees_between(unit[suspect.row], unit[others].sum(0)), abs=1e-5)
        angles = {
            j: degrees_between(unit[suspect.row], unit[labels == j].sum(0))
            for j in range(CLASSES)
            if j != suspect.label
        }
        assert suspect.suggested == min(angles, key=lambda j: angles[j])
        assert suspect.other_angle == pytest.approx(min(angles.values()), abs=1e-5)


def test_without_centres_the_only_sample_of_a_class_cannot_be_judged() -> None:
    embeddings, labels, _ = clouds(21)
    labels[20] = 9
    ranked = likely_mislabelled(embeddings, labels)
    assert ranked.num_judged == 20
    assert 20 not in ranked.rows


@settings(deadline=None)
@given(seed=st.integers(0, 1000), factor=st.floats(1e-3, 1e3))
def test_neither_lengths_nor_a_rotation_change_the_ranking(seed: int, factor: float) -> None:
    embeddings, labels, centers = clouds(40, seed)
    rotation = torch.linalg.qr(torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(seed)))[0]
    stretched = embeddings * torch.linspace(0.5, 2, 40)[:, None]
    plain = likely_mislabelled(embeddings, labels, centers)
    for other in (
        likely_mislabelled(stretched, labels, centers * factor),
        likely_mislabelled(embeddings @ rotation, labels, centers @ rotation),
    ):
        torch.testing.assert_close(other.score, plain.score, atol=2e-3, rtol=0)


def test_only_the_top_is_listed_and_all_are_counted() -> None:
    embeddings, labels, centers = clouds()
    whole, top = likely_mislabelled(embeddings, labels, centers), likely_mislabelled(embeddings, labels, centers, top=3)
    assert torch.equal(top.rows, whole.rows[:3])
    assert (len(top), top.num_judged, top.num_suspect) == (3, 80, 8)


def test_the_list_names_paths_and_classes() -> None:
    embeddings, labels, centers = clouds()
    paths = [f"{row}.png" for row in range(80)]
    ranked = likely_mislabelled(embeddings, labels, centers, paths=paths)
    first = ranked[0]
    assert first.path == f"{first.row}.png"
    header, row, *rest = ranked.table(classes="abcde")
    assert len(header) == len(row) == 6
    assert row[:3] == [first.path, "abcde"[first.label], "abcde"[first.suggested]]
    assert len(rest) == module.SHOWN - 1
    assert likely_mislabelled(embeddings, labels, centers).table(rows=1)[1][0] == f"row {first.row}"
    record = json.loads(json.dumps(ranked.to_dict()))
    assert record["ranked"][0]["row"] == first.row
    assert record["ranked"][0]["score"] == pytest.approx(first.score)
    assert (record["num_judged"], record["num_suspect"]) == (80, 8)


def test_a_class_without_a_centre_attracts_nobody_and_its_samples_are_not_judged() -> None:
    embeddings, labels, centers = clouds()
    centers[3] = 0
    ranked = likely_mislabelled(embeddings, labels, centers)
    assert 3 not in ranked.suggested
    assert 3 not in ranked.labels
    assert ranked.num_judged == int((labels != 3).sum())


def test_an_embedding_of_length_zero_is_named() -> None:
    embeddings, labels, centers = clouds()
    embeddings[4] = 0
    with pytest.raises(DataError, match="embeddings of length zero have no direction: 1 of 80, in rows 4"):
        likely_mislabelled(embeddings, labels, centers)


@pytest.mark.parametrize("centers", [torch.ones(1, DIM), None])
def test_one_class_leaves_no_other_to_be_mistaken_for(centers: Tensor | None) -> None:
    message = "a label can only be doubted where there is another class; got the centre of one class. Pass those of two or more."
    with pytest.raises(DataError, match=re.escape(message)):
        likely_mislabelled(torch.ones(4, DIM), torch.zeros(4, dtype=torch.int64), centers)


def test_centres_that_do_not_cover_the_labels_are_refused() -> None:
    embeddings, labels, centers = clouds()
    message = "centers must have one row for each class, and the largest label is 4; got the shape (3, 6). Pass head.dominant_centers()."
    with pytest.raises(DataError, match=re.escape(message)):
        likely_mislabelled(embeddings, labels, centers[:3])


def test_paths_that_do_not_fit_and_a_top_below_nothing_are_refused() -> None:
    embeddings, labels, centers = clouds()
    with pytest.raises(
        DataError, match=re.escape("paths must name each of the 80 embeddings; got 2. Pass one for each, or none.")
    ):
        likely_mislabelled(embeddings, labels, centers, paths=["a", "b"])
    with pytest.raises(
        ConfigError, match=re.escape("top must be 0 or more samples to list; got -1. Leave it out to list all.")
    ):
        likely_mislabelled(embeddings, labels, centers, top=-1)


def test_a_ranking_is_held_against_the_truth_by_the_definition() -> None:
    embeddings, labels, centers = clouds(spread=1.2)
    wrong = torch.arange(80) % 10 == 0
    ranked = likely_mislabelled(embeddings, labels, centers)
    places = [place for place, suspect in enumerate(ranked) if wrong[suspect.row]]
    found = ranked.against(wrong)
    assert found.num_wrong == 8
    assert found.found == sum(place < 8 for place in places) / 8
    assert found.average_precision == pytest.approx(sum((n + 1) / (place + 1) for n, place in enumerate(places)) / 8)
    assert 0 < found.found < 1


def test_what_is_not_listed_is_not_found() -> None:
    embeddings, labels, centers = clouds()
    found = likely_mislabelled(embeddings, labels, centers, top=4).against(torch.arange(80) % 10 == 0)
    assert (found.num_wrong, found.found, found.average_precision) == (8, 0.5, 0.5)


def test_nothing_can_be_found_where_nothing_is_wrong() -> None:
    embeddings, labels, centers = clouds()
    found = likely_mislabelled(embeddings, labels, centers).against(torch.zeros(80))
    assert found.num_wrong == 0
    assert math.isnan(found.found)
    assert math.isnan(found.average_precision)
