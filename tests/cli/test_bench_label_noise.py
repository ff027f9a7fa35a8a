from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Command = Callable[..., Any]
SHORT = ("--shares", "0.3", "--losses", "arcface", "--seeds", 1, "--epochs", 2, "--dim", 4)


@pytest.fixture
def features(tmp_path: Path) -> str:
    labels = np.arange(120) % 3
    rows = 2 * np.eye(3, 6)[labels] + 0.3 * np.random.default_rng(0).standard_normal((120, 6))
    np.savez(tmp_path / "clouds.npz", features=rows.astype(np.float32), labels=labels)
    return "clouds.npz"


def test_the_curve_is_printed_drawn_and_kept(arcwise: Command, features: str) -> None:
    done = arcwise("bench", "label-noise", features, *SHORT)
    assert done.code == 0
    assert done.out.startswith("\nruns/clouds-label-noise\n")
    assert "Shuffled labels among as many first of the list" in done.out
    assert done.out.endswith("\nNext: arcwise report runs/clouds-label-noise/shuffled-0.3\n")
    assert Path("runs/clouds-label-noise/figures/label_noise.png").is_file()
    assert arcwise("bench", "label-noise", features, *SHORT).code == 2
    again = arcwise("bench", "label-noise", features, *SHORT, "--resume", "--no-figures", "--json")
    assert json.loads(again.out)["shares"] == [0.0, 0.3]


def test_shares_that_are_no_numbers_are_one_sentence(arcwise: Command, features: str) -> None:
    done = arcwise("bench", "label-noise", features, "--shares", "0,a fifth")
    assert done.code == 2
    assert done.sentence == "arcwise: --shares takes numbers separated by commas, as in 0,0.1,0.2; got '0,a fifth'."
    assert not Path("runs").exists()
