from __future__ import annotations

import importlib
import importlib.metadata
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from arcwise.benchmarks import loss_trials, losses, peers
from arcwise.benchmarks.loss_trials import TRIALS, Trial, ask, curve, truth
from arcwise.benchmarks.losses import Finding, Losses
from arcwise.benchmarks.peers import Absent, Contender, Shape, contenders
from arcwise.progress import Reporter

SMALL = Shape(num_classes=20, dim=16, scale=64.0)
TRIAL = {trial.key: trial for trial in TRIALS}
OURS = [contender for contender in contenders()[0] if contender.library.startswith("arcwise")]
PLAIN = next(contender for contender in contenders()[0] if contender.library == "plain PyTorch")
every_one_of_ours = pytest.mark.parametrize("ours", OURS, ids=lambda contender: contender.loss)


@pytest.fixture(autouse=True)
def _small_and_one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(loss_trials, "MANY", SMALL)
    loss_trials._errors.cache_clear()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def answer(key: str, contender: Contender, seed: int = 0) -> Any:
    return ask(TRIAL[key], contender, seed)


def test_all_four_losses_of_ours_are_asked() -> None:
    assert [contender.loss for contender in OURS] == list(peers.MARGINS)


@every_one_of_ours
def test_ours_breaks_nowhere(ours: Contender) -> None:
    for trial in TRIALS:
        found = ask(trial, ours, 0)
        if trial.unit.startswith("share") or trial.key in {"rise", "jump"}:
            assert found == 0, trial.words
        elif trial.unit == "error":
            assert isinstance(found, float)
            assert found < 1e-5, trial.words
    assert answer("bf16_forward_dtype", ours) == "float32"
    assert answer("bf16_without_autocast", ours) == "taken"


@every_one_of_ours
def test_the_truth_is_what_our_reference_engine_gives_in_float64(ours: Contender) -> None:
    x_BD, w_MD, labels_B = (tensor.double() if tensor.is_floating_point() else tensor for tensor in draw(ours))
    expected = truth(ours, x_BD, w_MD, labels_B, SMALL.scale).mean()
    torch.testing.assert_close(ours.with_centres(SMALL, w_MD)(x_BD, labels_B).detach(), expected)


def draw(contender: Contender) -> tuple[Tensor, Tensor, Tensor]:
    return loss_trials._ordinary(contender, 0, rows=30)


def test_the_curve_of_the_bare_cosine_turns_upward_where_it_should() -> None:
    """cos(θ + m) rises from −1 at θ = π − m to −cos m at π."""
    assert answer("rising_share", PLAIN) == pytest.approx(0.5 / math.pi, abs=0.003)
    assert answer("turns_away_share", PLAIN) == pytest.approx(0.5 / math.pi, abs=0.003)
    assert answer("rise", PLAIN) == pytest.approx(1 - math.cos(0.5), abs=0.003)
    assert answer("jump", PLAIN) == 0


def test_a_jump_is_seen() -> None:
    psi, slope = curve(PLAIN)
    step = (torch.arange(len(psi)) > 600).double()

    def with_a_step(_: Contender) -> tuple[Tensor, Tensor]:
        return psi - 0.3 * step, slope

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_trials, "curve", with_a_step)
        assert answer("jump", PLAIN) == pytest.approx(0.3, abs=1e-4)


def test_the_slope_that_is_read_off_is_that_of_the_curve() -> None:
    psi, slope = curve(OURS[0])
    width = math.pi / len(psi)
    torch.testing.assert_close(psi.diff()[:500] / width, (slope[1:501] + slope[:500]) / 2, atol=1e-4, rtol=0)


def test_rows_that_are_not_finite_are_counted() -> None:
    class Broken(nn.Module):
        """Its gradient is NaN in every fourth row."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1, 1))

        def forward(self, x_BD: Tensor, labels_B: Tensor) -> Tensor:
            root_B = torch.where(labels_B % 4 == 0, 0.0 * x_BD[:, 0], x_BD[:, 0] ** 2 + 1).sqrt()
            return root_B.sum() + 0 * self.weight.sum()

    broken = replace(PLAIN, library="broken 1.0", build=lambda shape: Broken())
    assert answer("on_centre_bad_rows", broken) == 0.25
    assert answer("opposite_bad_rows", broken) == 0.25
    assert answer("huge_wrong_rows", broken) == 1.0


def test_a_contender_that_raises_has_given_an_answer() -> None:
    class Refusing(peers.PlainArcFace):
        def forward(self, x_BD: Tensor, labels_B: Tensor) -> Tensor:
            raise ValueError("never")

    refusing = replace(PLAIN, build=Refusing)
    assert {ask(trial, refusing, 0) for trial in TRIALS} == {"ValueError"}


def test_the_worst_answer_counts() -> None:
    assert losses._worst([0.1, 0.3, 0.2]) == 0.3
    assert math.isnan(float(losses._worst([0.1, math.nan, 0.2])))
    assert losses._worst([0.1, "ValueError"]) == "ValueError"


def test_a_peer_that_is_not_installed_is_a_row_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_installed(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", none_installed)
    found, absent = contenders()
    assert {contender.library for contender in found} == {OURS[0].library, "plain PyTorch"}
    assert [row.reason for row in absent] == [
        "not installed: pip install 'pytorch-metric-learning>=2.8'",
        "not installed: pip install 'open-metric-learning>=2.1'",
    ]
    assert losses.Losses([], absent, "2", 1).table()[-1] == [
        "open-metric-learning: not installed: pip install 'open-metric-learning>=2.1'"
    ]


def test_a_peer_that_cannot_be_imported_is_a_row_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise RuntimeError("operator torchvision::nms\ndoes not exist")

    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    monkeypatch.setattr(importlib, "import_module", broken)
    _, absent = contenders()
    assert absent == [
        Absent(f"{name} 9.9", "cannot be imported here: operator torchvision::nms does not exist")
        for name in ("pytorch-metric-learning", "open-metric-learning")
    ]


def test_a_module_that_only_lacks_torchvision_is_imported_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "wants_torchvision.py").write_text("from torchvision.ops import MLP\nANSWER = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "torchvision", None)  # importing it fails
    module, whole = peers._module_with_torchvision_or_without("wants_torchvision")
    assert module.ANSWER == 42
    assert not whole
    assert "torchvision.ops" not in sys.modules
    assert not hasattr(sys.modules["torchvision"], "ops")


def test_the_table_has_a_column_for_each_library_and_a_block_for_each_loss() -> None:
    findings = [
        Finding("arcwise 1", "ArcFace", "on_centre_bad_rows", 0.0),
        Finding("a-peer 2", "ArcFace", "on_centre_bad_rows", 0.197),
        Finding("a-peer 2", "ArcFace", "on_centre_loss", math.nan),
        Finding("a-peer 2", "ArcFace", "dx_error", 1.14e-6),
        Finding("a-peer 2", "ArcFace", "bf16_forward_dtype", "bfloat16"),
    ]
    result = Losses(findings, [Absent("another", "not installed: pip install another")], "2.13", 3)
    header, *rows = result.table()
    assert header[1:] == ["arcwise\n1", "a-\npeer\n2"]
    assert {len(row) for row in rows} == {3}
    by_words = {row[0].strip(): row[1:] for row in rows[: len(TRIALS) + 1]}
    assert by_words["ArcFace, m = 0.5"] == ["", ""]
    assert by_words[TRIAL["on_centre_bad_rows"].words] == ["none", "19.7 %"]
    assert by_words[TRIAL["on_centre_loss"].words] == ["–", "NaN"]
    assert by_words[TRIAL["dx_error"].words] == ["–", "1.1e-06"]
    assert by_words[TRIAL["bf16_forward_dtype"].words] == ["–", "bfloat16"]
    assert rows[-1][0] == "another: not installed: pip install another"
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["findings"][2]["answer"] == "NaN"


def test_everybody_is_asked_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def note(contender: Contender, seed: int) -> float:
        seen.append((contender.library, seed))
        return float(seed)

    monkeypatch.setattr(losses, "TRIALS", (Trial("seeds", "seeds", "number", note),))
    result = losses.run(repeat=2, reporter=Reporter())
    everybody, _ = contenders()
    assert seen == [(contender.library, seed) for contender in everybody for seed in (0, 1)]
    assert [finding.answer for finding in result.findings] == [1.0] * len(everybody)


def test_pytorch_metric_learning_breaks_where_it_is_said_to() -> None:
    pytest.importorskip("pytorch_metric_learning", reason="there is no peer to compare with")
    arcface, cosface = (
        next(c for c in contenders()[0] if c.library.startswith("pytorch-metric") and c.loss == loss)
        for loss in ("ArcFace", "CosFace")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_trials, "MANY", Shape(512, 512, 64.0))
        assert answer("on_centre_bad_rows", arcface) > 0.05
    assert answer("bf16_forward_dtype", cosface) == "bfloat16"
    assert answer("huge_wrong_rows", cosface) == answer("tiny_wrong_rows", cosface) == 1
    assert answer("jump", arcface) == pytest.approx(0.5 * math.sin(0.5) - (1 - math.cos(0.5)), abs=0.003)
    assert answer("dx_error", arcface) < 1e-5
