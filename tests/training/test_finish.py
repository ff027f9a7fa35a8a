from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import nn

from arcwise import SoftmaxHead
from arcwise.backbones import count_parameters
from arcwise.data import Dataset
from arcwise.progress import Reporter
from arcwise.training import RunFolder
from arcwise.training.build import Model, build_model
from arcwise.training.config import Config, LossConfig
from arcwise.training.finish import measure

MakeConfig = Callable[..., Config]


@pytest.fixture(params=["arcface", "softmax"])
def measured(
    request: pytest.FixtureRequest, tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> tuple[RunFolder, Model, dict[str, Any]]:
    loss = LossConfig("softmax") if request.param == "softmax" else None
    config = make_config(loss=loss, seed=4)
    folder = RunFolder.create(tmp_path / "run", config)
    model = build_model(config, small_digits)
    return folder, model, measure(folder, config, small_digits, model, 1.5, Reporter())


def test_what_is_returned_is_what_is_written_as_plain_json(
    measured: tuple[RunFolder, Model, dict[str, Any]], small_digits: Dataset
) -> None:
    folder, model, record = measured
    text = folder.evaluation_file.read_text()
    assert json.loads(text, parse_constant=pytest.fail) == json.loads(json.dumps(record))
    assert record["num_train"] == 240
    assert record["num_test"] == 60
    assert record["num_parameters"] == count_parameters(model.backbone)
    assert record["train_seconds"] == 1.5
    assert record["classes"] == list(small_digits.classes)
    assert record["licence"] == small_digits.licence
    assert len(record["robustness"]) > 1


def test_the_final_embeddings_give_the_measured_numbers_again(
    measured: tuple[RunFolder, Model, dict[str, Any]], small_digits: Dataset
) -> None:
    folder, model, record = measured
    final = folder.load_embeddings("final")
    torch.testing.assert_close(final["embeddings"], model.embed(small_digits.test.images))
    train = model.embed(small_digits.train.images).double()
    labels = small_digits.train.labels
    means = torch.stack([nn.functional.normalize(train[labels == c]).mean(0) for c in range(10)])
    means = nn.functional.normalize(means)
    torch.testing.assert_close(final["class_means"], means.float())
    raw = torch.stack([train[labels == c].mean(0) for c in range(10)])
    torch.testing.assert_close(final["raw_class_means"], raw.float())
    predicted = (nn.functional.normalize(final["embeddings"].double()) @ means.T).argmax(1)
    assert torch.equal(final["predicted"], predicted)
    assert record["accuracy"] == pytest.approx((predicted == final["labels"]).double().mean().item())
    by_head = model.head.logits(final["embeddings"]).argmax(1)
    assert record["classifier_accuracy"] == pytest.approx((by_head == final["labels"]).double().mean().item())
    assert ("bias" in final) == isinstance(model.head, SoftmaxHead)
    with safe_open(folder.embeddings / "final.safetensors", "pt") as file:
        assert json.loads(file.metadata()["classes"]) == list(small_digits.classes)
