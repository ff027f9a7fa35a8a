from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from arcwise.cli.data import app
from arcwise.data import cache
from arcwise.data._registry import KNOWN
from arcwise.errors import ConfigError, DataError
from arcwise.progress import Reporter


def run(*words: str) -> None:
    app(list(words), result_action="return_value", exit_on_error=False)


def test_list_shows_every_set_on_eighty_columns(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    run("list")
    output, errors = capsys.readouterr()
    lines = output.splitlines()
    assert lines[0].split() == ["name", "in", "cache", "to", "fetch", "classes", "images", "each", "licence"]
    assert [line.split()[0] for line in lines[1:]] == list(KNOWN)
    assert max(map(len, lines)) <= 80
    assert "…" not in output
    assert str(home) in errors
    assert "Next: arcwise data get mnist" in errors


def test_list_as_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    with cache.writing("cifar10", Reporter()):
        cache.write("cifar10", {"a": torch.zeros(9)}, "a test")
    run("list", "--json")
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(KNOWN)
    assert rows["cifar10"]["cached"]
    assert not rows["mnist"]["cached"]
    assert rows["mnist"]["num_train"] == 60_000
    assert rows["mnist"]["shape"] == [1, 28, 28]


def test_get_of_an_embedded_set_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    run("get", "digits", "--quiet")
    output, errors = capsys.readouterr()
    assert output == "Digits is ready: 1,438 training and 359 test images, 8×8 grey, from scikit-learn's wheel.\n"
    assert errors == "Next: arcwise compare digits --losses softmax,arcface\n"


def test_get_of_an_unknown_name_says_what_was_meant() -> None:
    with pytest.raises(ConfigError, match=r'no data set called "cifar-100"\. Did you mean cifar10'):
        run("get", "cifar-100")


def test_get_from_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder that does not exist"):
        run("get", "mnist", "--data-dir", str(tmp_path / "no"))


@pytest.mark.network
def test_get_fetches_keeps_and_tells(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        run("get", "mnist", "--json")
    except DataError as error:
        pytest.skip(f"it cannot be fetched here: {error}")
    output, errors = capsys.readouterr()
    row = json.loads(output)
    assert row["cached"]
    assert Path(row["path"]).stat().st_size == row["bytes_on_disk"]
    assert "Fetching mnist from" in errors
    images = cache.read("mnist")
    assert images is not None
    assert np.isclose(float(images[0]["train_images"].double().mean()) / 255, 0.1307, atol=1e-4)
    run("list")
    assert "55 MB" in capsys.readouterr().out
