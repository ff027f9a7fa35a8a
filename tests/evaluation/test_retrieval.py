"""Against a loop over queries and ranks, written from section 3.2 of Musgrave, Belongie and Lim 2020."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.errors import ConfigError, DataError
from arcwise.evaluation import Retrieval, recall_at_1, retrieval
from arcwise.progress import Reporter, Stage

# The package's function of the same name hides the module from attribute access.
MODULE = import_module("arcwise.evaluation.retrieval")
# Directions whose cosines are multiples of one half, exactly: ties are ties.
DIRECTIONS = torch.tensor(
    [*torch.eye(4).tolist(), *(-torch.eye(4)).tolist(), *product((0.5, -0.5), repeat=4)], dtype=torch.float64
)


def relevant(embeddings: Tensor, labels: Tensor, query: int) -> list[bool]:
    """Whether the first, second … nearest other sample is of the query's class; in a tie the samples of other classes come first."""
    rows: list[list[float]] = embeddings.double().tolist()
    classes: list[int] = labels.tolist()

    def cosine(i: int) -> float:
        dot = sum(a * b for a, b in zip(rows[query], rows[i], strict=True))
        return dot / (math.hypot(*rows[query]) * math.hypot(*rows[i]))

    others = [i for i, y in enumerate(classes) if i != query and y >= 0]
    ranked = sorted(others, key=lambda i: (-cosine(i), classes[i] == classes[query]))
    return [classes[i] == classes[query] for i in ranked]


def map_at_r(found: list[bool], r: int) -> float:
    return sum(sum(found[: i + 1]) / (i + 1) for i in range(r) if found[i]) / r


def expected(embeddings: Tensor, labels: Tensor, ks: tuple[int, ...]) -> tuple[dict[int, float], float, float]:
    classes = labels.tolist()
    queries = [i for i, y in enumerate(classes) if y >= 0 and classes.count(y) > 1]
    found = {i: relevant(embeddings, labels, i) for i in queries}
    r = {i: classes.count(classes[i]) - 1 for i in queries}
    recall = {k: sum(any(found[i][:k]) for i in queries) / len(queries) for k in sorted({1, *ks})}
    by_map = sum(map_at_r(found[i], r[i]) for i in queries) / len(queries)
    return recall, by_map, sum(sum(found[i][: r[i]]) / r[i] for i in queries) / len(queries)


def clouds(num: int = 60, dim: int = 3, classes: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (num,), generator=generator)
    centres = torch.randn(classes, dim, generator=generator)
    return centres[labels] + torch.randn(num, dim, generator=generator), labels


def assert_is(result: Retrieval, truth: tuple[dict[int, float], float, float]) -> None:
    recall, by_map, r_precision = truth
    assert result.recall == pytest.approx(recall)
    assert list(result.recall) == list(recall)
    assert result.map_at_r == pytest.approx(by_map, abs=1e-6)
    assert result.r_precision == pytest.approx(r_precision)


@pytest.mark.parametrize(
    ("right", "score"), [([1], 0.10), ([1, 10], 0.12), ([1, 2], 0.20), (list(range(1, 11)), 1.0)], ids=str
)
def test_the_loop_gives_the_papers_own_examples(right: list[int], score: float) -> None:
    assert map_at_r([place in right for place in range(1, 11)], 10) == pytest.approx(score)


@pytest.mark.parametrize("dim", [2, 3, 16])
@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_the_definition_query_by_query(dim: int, seed: int) -> None:
    embeddings, labels = clouds(dim=dim, seed=seed)
    assert_is(retrieval(embeddings, labels, ks=(2, 7)), expected(embeddings, labels, (2, 7)))


@settings(max_examples=100, deadline=None)
@given(
    samples=st.lists(st.tuples(st.integers(0, len(DIRECTIONS) - 1), st.integers(-1, 3)), min_size=2, max_size=14),
    ks=st.lists(st.integers(1, 20), max_size=3),
)
def test_ties_ignored_labels_and_lone_samples_are_as_in_the_definition(
    samples: list[tuple[int, int]], ks: list[int]
) -> None:
    directions, classes = zip(*samples, strict=True)
    embeddings, labels = DIRECTIONS[list(directions)], torch.tensor(classes)
    if all(y < 0 or classes.count(y) < 2 for y in classes):
        with pytest.raises(DataError):
            retrieval(embeddings, labels, ks=ks)
        return
    result = retrieval(embeddings, labels, ks=ks)
    assert_is(result, expected(embeddings, labels, tuple(ks)))
    assert recall_at_1(embeddings, labels) == result.recall_at_1
    assert result.num_queries == sum(y >= 0 and classes.count(y) > 1 for y in classes)
    assert result.num_samples == sum(y >= 0 for y in classes)
    assert result.num_classes == len({y for y in classes if y >= 0})


def test_embeddings_that_fell_together_earn_nothing_while_samples_of_other_classes_are_left() -> None:
    embeddings, labels = torch.tensor([[0.0, 2.0, 0.0]]).expand(30, 3), torch.arange(3).repeat_interleave(10)
    result = retrieval(embeddings, labels, ks=(1, 10, 20, 21))
    assert result.recall == {1: 0, 10: 0, 20: 0, 21: 1}
    assert (result.map_at_r, result.r_precision) == (0, 0)
    assert recall_at_1(embeddings, labels) == 0


def test_classes_that_are_single_points_apart_are_perfect() -> None:
    labels = torch.arange(12) % 3
    result = retrieval(torch.eye(3)[labels], labels)
    assert (result.recall_at_1, result.map_at_r, result.r_precision) == (1, 1, 1)
    assert recall_at_1(torch.eye(3)[labels], labels) == 1


def test_one_class_alone_has_nothing_to_be_confused_with() -> None:
    assert retrieval(torch.randn(4, 3), torch.zeros(4)).map_at_r == 1
    assert recall_at_1(torch.randn(4, 3), torch.zeros(4)) == 1


def test_k_past_the_last_sample_finds_everything() -> None:
    embeddings, labels = clouds(10, classes=2)
    assert retrieval(embeddings, labels, ks=(1000,)).recall[1000] == 1


@pytest.mark.parametrize("cells", [1, 130, 1000])
def test_tiles_change_nothing(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = clouds()
    embeddings[20:30] = embeddings[20]
    whole, quick = retrieval(embeddings, labels), recall_at_1(embeddings, labels)
    monkeypatch.setattr(MODULE, "TILE_CELLS", cells)
    tiled = retrieval(embeddings, labels)
    assert tiled.recall == whole.recall
    assert tiled.map_at_r == pytest.approx(whole.map_at_r)
    assert tiled.r_precision == pytest.approx(whole.r_precision)
    assert recall_at_1(embeddings, labels) == quick


def test_float32_cosines_of_many_samples_give_the_same_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = clouds(300)
    precise = retrieval(embeddings, labels)
    monkeypatch.setattr(MODULE, "FLOAT64_ROWS", 0)
    assert retrieval(embeddings, labels).map_at_r == pytest.approx(precise.map_at_r, abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-20, 1e20))
def test_turning_and_scaling_the_embeddings_or_renaming_the_classes_changes_nothing(seed: int, scale: float) -> None:
    embeddings, labels = clouds(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64, generator=generator))[0]
    lengths = scale * (0.5 + torch.rand(len(embeddings), 1, generator=generator, dtype=torch.float64))
    renamed = torch.randperm(5, generator=generator)[labels]
    before, after = retrieval(embeddings, labels), retrieval(lengths * embeddings.double() @ rotation, renamed)
    assert_is(after, (before.recall, before.map_at_r, before.r_precision))


def test_it_agrees_with_pytorch_metric_learning() -> None:
    package = "pytorch_metric_learning"
    reason = "pytorch-metric-learning is not installed, so there is no peer to compare with"
    calculator = pytest.importorskip(f"{package}.utils.accuracy_calculator", reason=reason)
    inference = pytest.importorskip(f"{package}.utils.inference", reason=reason)
    distances = pytest.importorskip(f"{package}.distances", reason=reason)
    embeddings, labels = clouds(80)
    labels[:4] = torch.arange(10, 14)  # alone in their classes
    measured = calculator.AccuracyCalculator(
        include=("precision_at_1", "r_precision", "mean_average_precision_at_r"),
        k="max_bin_count",
        knn_func=inference.CustomKNN(distances.CosineSimilarity()),
    ).get_accuracy(embeddings, labels)
    result = retrieval(embeddings, labels)
    assert result.recall_at_1 == pytest.approx(measured["precision_at_1"])
    assert result.r_precision == pytest.approx(measured["r_precision"])
    assert result.map_at_r == pytest.approx(measured["mean_average_precision_at_r"], abs=1e-6)


@pytest.mark.parametrize("ks", [(0,), (5, -1)])
def test_a_k_that_counts_no_neighbour_is_named(ks: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=r"the k of Recall@k counts neighbours and is at least 1; got \("):
        retrieval(*clouds(), ks=ks)


def test_classes_of_one_sample_each_leave_nothing_to_look_for() -> None:
    embeddings, labels = torch.randn(4, 3), torch.tensor([0, 1, -1, 7])
    with pytest.raises(DataError, match=r"got 3 samples of as many classes\. Pass at least two samples of some class"):
        retrieval(embeddings, labels)
    assert recall_at_1(embeddings, labels) == 0


@pytest.mark.parametrize("measure", [retrieval, recall_at_1])
def test_an_embedding_without_a_direction_is_named_unless_it_is_ignored(measure: object) -> None:
    assert callable(measure)
    embeddings, labels = torch.randn(6, 3), torch.tensor([0, 0, 1, 1, 2, 2])
    embeddings[3] = 0
    with pytest.raises(DataError, match="embeddings of length zero have no direction: 1 of 6, in rows 3"):
        measure(embeddings, labels)
    measure(embeddings, torch.where(torch.arange(6) == 3, -1, labels))


def test_the_result_can_be_shown_and_written_as_json() -> None:
    result = retrieval(*clouds(), ks=(5, 1, 5))
    assert [name for name, _ in result.table()] == ["Recall@1", "Recall@5", "MAP@R", "R-precision", "queries"]
    assert dict(result.table())["MAP@R"] == f"{100 * result.map_at_r:.2f} %"
    assert dict(result.table())["queries"] == "60"
    read = json.loads(json.dumps(result.to_dict()))
    assert read["recall"] == {"1": result.recall_at_1, "5": result.recall[5]}
    assert (read["num_queries"], read["num_samples"], read["num_classes"]) == (60, 60, 5)


class Keeper(Reporter):
    """Remembers its stages."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        self.stages.append(Stage(title, total))
        yield self.stages[-1]


def test_progress_counts_every_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "TILE_CELLS", 500)
    reporter = Keeper()
    retrieval(*clouds(), reporter=reporter)
    (stage,) = reporter.stages
    assert (stage.title, stage.done, stage.total) == ("retrieval, all samples", 60, 60)
