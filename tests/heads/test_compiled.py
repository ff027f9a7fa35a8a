"""torch.compile on a backbone and a head. The backend traces and differentiates as the real one does, without a C++ compiler."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from margin_cases import head_of
from torch import Tensor, nn

import arcwise
from arcwise.heads import Head, MarginHead, SoftmaxHead
from arcwise.margins import names

# Tracing a function with a backward of its own, torch makes an object of it and warns about that itself.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")

X, LABELS = torch.linspace(-3, 3, 60).sin().view(12, 5), torch.arange(12) % 6


class Model(nn.Module):
    def __init__(self, head: Head) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))
        self.head = head

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        return self.head(self.backbone(x), labels)


@pytest.fixture(autouse=True)
def _nothing_compiled_before() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def heads() -> dict[str, Head]:
    return {"softmax": SoftmaxHead(4, 6), **{name: head_of(name) for name in names()}}


@pytest.mark.parametrize("name", ["softmax", *names()])
def test_backbone_and_head_compile_as_one_graph_and_equal_eager(name: str) -> None:
    eager = Model(heads()[name])
    if name == "elasticface":
        eager.eval()  # a compiled graph draws other numbers
    twin = copy.deepcopy(eager)
    compiled = torch.compile(twin, backend="aot_eager", fullgraph=True)
    labels = LABELS.clone()
    labels[3] = -1
    for _ in range(2):
        expected, loss = eager(X, labels), compiled(X, labels)
        expected.backward()
        loss.backward()
        torch.testing.assert_close(loss, expected)
    for ours, theirs in zip(twin.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    for kept, expected in zip(twin.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(kept, expected)


def test_stats_come_out_of_a_compiled_head() -> None:
    head = MarginHead(4, 6, arcwise.ArcFace(0.5), 12.0)
    x = X[:, :4]

    def measured(x: Tensor, labels: Tensor) -> tuple[Tensor, arcwise.Stats]:
        return head(x, labels, return_stats=True)

    loss, stats = torch.compile(measured, backend="aot_eager", fullgraph=True)(x, LABELS)
    expected, expected_stats = head(x, LABELS, return_stats=True)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(stats.target_cosine, expected_stats.target_cosine)
    assert torch.equal(stats.correct, expected_stats.correct)


def test_a_label_out_of_range_still_stops_a_compiled_head() -> None:
    compiled = torch.compile(MarginHead(4, 6, arcwise.ArcFace(0.5), 12.0), backend="aot_eager")
    compiled(X[:, :4], LABELS)
    with pytest.raises(RuntimeError, match="labels must be in 0 … 5, or −1 for a sample to ignore"):
        compiled(X[:, :4], LABELS + 1)


# A graph that ends before the head hands it a tensor whose .grad torch itself looks at.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_a_warm_up_does_not_compile_a_graph_for_every_step() -> None:
    model = Model(MarginHead(4, 6, arcwise.ArcFace(0.5), 12.0, warmup_steps=12))
    eager = copy.deepcopy(model)
    graphs: list[torch.fx.GraphModule] = []

    def counting(graph: torch.fx.GraphModule, _: list[Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    compiled = torch.compile(model, backend=counting)
    for _ in range(16):
        torch.testing.assert_close(compiled(X, LABELS), eager(X, LABELS))
    assert isinstance(model.head, MarginHead)
    assert model.head.margin_fraction == 1
    assert len(graphs) <= 4
