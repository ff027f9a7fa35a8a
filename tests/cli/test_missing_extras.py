"""Without the optional packages: a plain sentence with the command that installs them. The packages really cannot be imported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Command = Callable[..., Any]

BLOCK = """
import sys

class Without:
    def __init__(self, finder):
        self._finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {names} else self._finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self._finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""


@pytest.fixture
def without(process: Command, tmp_path: Path) -> Command:
    """Run the command in a process in which these packages are not installed."""

    def run(packages: list[str], *arguments: object) -> Any:
        (tmp_path / "hook").mkdir()
        (tmp_path / "hook" / "sitecustomize.py").write_text(BLOCK.format(names=set(packages)))
        return process(*arguments, PYTHONPATH=str(tmp_path / "hook"))

    return run


def features(path: Path) -> None:
    labels = np.arange(60) % 3
    noise = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    np.savez(path, features=np.eye(4, dtype=np.float32)[labels] + noise, labels=labels)


def test_digits_without_scikit_learn_name_the_install_command(without: Command) -> None:
    done = without(["sklearn"], "train", "digits")
    assert (done.code, done.out) == (2, "")
    assert "scikit-learn, which is not installed: pip install 'arcwise[digits]'" in done.sentence


def test_training_without_any_extra_leaves_the_figures_out_and_says_so(without: Command, tmp_path: Path) -> None:
    features(tmp_path / "features.npz")
    words = ("train", "features.npz", "--epochs", 1, "--json")
    done = without(["matplotlib", "mpl_toolkits", "typst", "sklearn", "scipy"], *words)
    assert done.code == 0, done.err
    assert "accuracy" in json.loads(done.out)
    assert "warning: no figures: " in done.err
    assert "matplotlib, which is not installed: pip install 'arcwise[viz]'" in done.err


def test_a_comparison_without_matplotlib_still_compares(without: Command, tmp_path: Path) -> None:
    features(tmp_path / "features.npz")
    done = without(["matplotlib", "mpl_toolkits"], "compare", "features.npz", "--epochs", 1)
    assert done.code == 0, done.err
    assert done.err.count("pip install 'arcwise[viz]'") == 1
    assert "accuracy" in done.out
    assert (tmp_path / "runs" / "features-compare" / "comparison.json").is_file()


def test_a_report_without_typst_names_the_install_command(without: Command, digits_run: Path) -> None:
    done = without(["typst"], "report", digits_run)
    assert (done.code, done.out) == (2, "")
    assert "typst, which is not installed: pip install 'arcwise[report]'" in done.sentence
    assert not (digits_run / "report.pdf").exists()
