from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from arcwise.errors import RunError
from arcwise.progress import Reporter
from arcwise.reporting.grouping import gather

Maker = Callable[..., Path]


class Listening(Reporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def test_runs_that_differ_in_width_are_not_compared(tmp_path: Path, make_run: Maker) -> None:
    runs = [
        make_run(tmp_path / "a", dim=3),
        make_run(tmp_path / "b", dim=128),
        make_run(tmp_path / "c", "softmax", dim=3),
    ]
    groups = gather(runs, Reporter())
    assert [(group.dim, group.losses) for group in groups] == [(3, ("softmax", "arcface")), (128, ("arcface",))]


@pytest.mark.parametrize("difference", [{"data": "cifar10"}, {"epochs": 11}, {"backbone": "small"}])
def test_data_epochs_and_backbone_separate_groups(
    tmp_path: Path, make_run: Maker, difference: dict[str, object]
) -> None:
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", "softmax", **difference)]
    assert len(gather(runs, Reporter())) == 2


def test_seeds_of_one_loss_share_a_row(tmp_path: Path, make_run: Maker) -> None:
    runs = [make_run(tmp_path / f"seed{seed}", seed=seed) for seed in (0, 1)]
    (group,) = gather(runs, Reporter())
    assert group.losses == ("arcface",)
    assert group.num_seeds == 2


def test_the_same_seed_twice_is_no_spread_between_seeds(tmp_path: Path, make_run: Maker) -> None:
    runs = [make_run(tmp_path / name, seed=0) for name in ("one", "two")]
    (group,) = gather(runs, Reporter())
    assert group.losses == ("arcface (one)", "arcface (two)")


def test_one_loss_with_two_settings_makes_two_rows(tmp_path: Path, make_run: Maker) -> None:
    runs = [make_run(tmp_path / "plain"), make_run(tmp_path / "sharp", seed=1, loss_settings={"scale": 64.0})]
    (group,) = gather(runs, Reporter())
    assert group.losses == ("arcface (plain)", "arcface (sharp)")


def test_a_run_given_twice_counts_once(tmp_path: Path, make_comparison: Maker) -> None:
    folder = make_comparison(tmp_path / "compare")
    groups = gather([folder, folder / "softmax-seed0", folder], Reporter())
    assert len(groups) == 1


def test_what_is_not_a_run_is_named_and_left_out(tmp_path: Path, make_run: Maker) -> None:
    run = make_run(tmp_path / "run")
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    reporter = Listening()
    (group,) = gather([run, tmp_path / "notes.txt", tmp_path / "empty", tmp_path / "nowhere"], reporter)
    assert len(reporter.warnings) == 3
    assert "notes.txt is a file, not a run folder" in reporter.warnings[0]
    assert "neither config.toml nor comparison.json" in reporter.warnings[1]
    assert "There is no folder" in reporter.warnings[2]
    assert "3 of the given paths are left out" in group.notes[0]


def test_nothing_but_strangers_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"There is no folder .*Give a folder that arcwise train or arcwise compare wrote"
    ):
        gather([tmp_path / "nowhere"], Reporter())
    with pytest.raises(RunError, match="There is no finished run among what was given"):
        gather([tmp_path / "one", tmp_path / "two"], Reporter())
    with pytest.raises(RunError, match="what was given: nothing"):
        gather([], Reporter())


def test_a_run_without_any_number_is_an_error(tmp_path: Path, make_run: Maker) -> None:
    with pytest.raises(RunError, match="holds no measured number"):
        gather([make_run(tmp_path / "run", values={})], Reporter())
