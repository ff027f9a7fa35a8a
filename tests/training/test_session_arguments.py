"""What `arcwise.train` makes of arguments that are almost right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import arcwise
from arcwise.errors import ConfigError


def test_a_margin_object_is_a_loss(tmp_path: Path) -> None:
    run = arcwise.train("digits", loss=arcwise.ArcFace(0.3), dim=3, epochs=1, out=tmp_path / "run")
    assert run.config.loss.name == "arcface"
    assert run.config.loss.margin["m"] == 0.3


@pytest.mark.parametrize("wrong", [torch.nn.Linear, 3, len])
def test_a_backbone_that_is_no_module_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"instance of torch\.nn\.Module"):
        arcwise.train("digits", backbone=wrong, epochs=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_arrays_are_sent_to_an_npz(tmp_path: Path) -> None:
    arrays: Any = (torch.rand(4, 3), torch.zeros(4))
    with pytest.raises(ConfigError, match="got tuple"):
        arcwise.train(arrays, out=tmp_path / "run")


@pytest.mark.parametrize("file", ["config.toml", "comparison.json"])
def test_a_folder_that_arcwise_wrote_is_no_data_set(tmp_path: Path, file: str) -> None:
    (tmp_path / "was").mkdir()
    (tmp_path / "was" / file).write_text("")
    with pytest.raises(ConfigError, match="Add --resume"):
        arcwise.train(tmp_path / "was", out=tmp_path / "run")
