from __future__ import annotations

import pytest
import torch
from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.heads import Head, MarginHead, SoftmaxHead

HEADS = {"margin": MarginHead(4, 3, scale=8.0), "softmax": SoftmaxHead(4, 3)}
every_head = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
X, LABELS = torch.ones(2, 4), torch.tensor([0, 2])


@every_head
@pytest.mark.parametrize(
    ("embeddings", "labels", "message"),
    [
        (torch.ones(2, 5), LABELS, "embeddings must have the shape (batch, 4); got (2, 5)."),
        (torch.ones(4), LABELS, "embeddings must have the shape (batch, 4); got (4,)."),
        (torch.ones(2, 4, 1), LABELS, "embeddings must have the shape (batch, 4); got (2, 4, 1)."),
        (X.long(), LABELS, "embeddings must be floating point numbers; got torch.int64."),
        (X, torch.tensor([0]), "labels must have the shape (2,), one for each embedding; got (1,)."),
        (X, torch.tensor([[0], [2]]), "labels must have the shape (2,), one for each embedding; got (2, 1)."),
        (X, torch.tensor(0), "labels must have the shape (2,), one for each embedding; got ()."),
        (X, torch.tensor([0.0, 2.0]), "labels must be whole numbers; got torch.float32."),
        (X, torch.tensor([True, False]), "labels must be whole numbers; got torch.bool."),
        (X, torch.tensor([0, 3]), "labels must be in 0 … 2, or −1 for a sample to ignore; got 0 … 3."),
        (X, torch.tensor([-2, 1]), "labels must be in 0 … 2, or −1 for a sample to ignore; got -2 … 1."),
        (X, LABELS.to("meta"), "labels are on meta and embeddings on cpu; move one to the other."),
    ],
)
def test_input_that_cannot_be_used_is_refused_in_a_sentence(
    head: Head, embeddings: Tensor, labels: Tensor, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        head(embeddings, labels)
    assert str(error.value) == message
    with pytest.raises(ConfigError) as error:
        head.logits(embeddings, labels)
    assert str(error.value) == message


@every_head
def test_wrong_embeddings_are_refused_by_cosines_and_logits_as_well(head: Head) -> None:
    for ask in (head.cosines, head.logits):
        with pytest.raises(ConfigError, match=r"^embeddings must have the shape \(batch, 4\); got \(2, 5\)\.$"):
            ask(torch.ones(2, 5))


@every_head
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_labels_of_any_whole_number_type_are_taken(head: Head, dtype: torch.dtype) -> None:
    assert torch.equal(head(X, LABELS.to(dtype)), head(X, LABELS))
    if dtype != torch.uint8:
        # Close, not equal: a product of one row may be summed in another order than one of two.
        torch.testing.assert_close(head(X, torch.tensor([0, -1]).to(dtype)), head(X[:1], LABELS[:1]))


@every_head
def test_the_labels_that_were_given_are_left_as_they_are(head: Head) -> None:
    labels = torch.tensor([-1, 2])
    head(X, labels, return_stats=True)
    head.logits(X, labels)
    assert labels.tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("dim", "num_classes", "message"),
    [
        (1, 3, "dim must be at least 2, since an angle needs two dimensions; got 1."),
        (0, 3, "dim must be at least 2, since an angle needs two dimensions; got 0."),
        (4, 1, "num_classes must be at least 2; got 1."),
        (4, -7, "num_classes must be at least 2; got -7."),
    ],
)
def test_a_head_that_cannot_tell_anything_apart_is_refused(dim: int, num_classes: int, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        SoftmaxHead(dim, num_classes)
    assert str(error.value) == message
