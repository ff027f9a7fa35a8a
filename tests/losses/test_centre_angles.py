from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from arcwise.engines.unit_rows import unit_rows
from arcwise.losses import InterLoss, centre_angles
from arcwise.losses.centre_angles import mean_angle_to_others


class LargestTensor(TorchDispatchMode):
    """Watches how many numbers the largest tensor that is made holds."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return made


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (7, 100), (100, 7)])
def test_the_size_of_the_tiles_changes_nothing(rows: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    w = torch.randn(11, 4, dtype=torch.float64, requires_grad=True)
    classes, share = torch.tensor([0, 3, 3, 10, 5]), torch.tensor([0.1, 0.2, 0.3, 0.0, 0.4], dtype=torch.float64)

    def both() -> tuple[torch.Tensor, ...]:
        value = mean_angle_to_others(unit_rows(w), classes, share)
        return value, *torch.autograd.grad(value, w)

    whole = both()
    monkeypatch.setattr(centre_angles, "ROWS", rows)
    monkeypatch.setattr(centre_angles, "COLUMNS", columns)
    torch.testing.assert_close(both(), whole)


def test_no_tensor_of_all_pairs_of_classes_is_ever_made_in_either_direction() -> None:
    w = torch.randn(6000, 8, requires_grad=True)
    with LargestTensor() as largest:  # type: ignore[no-untyped-call]
        InterLoss()(torch.randn(2, 8), torch.tensor([0, 1]), w).backward()
    assert w.grad is not None
    assert centre_angles.ROWS * 1000 < largest.numel <= centre_angles.ROWS * centre_angles.COLUMNS < 6000**2 / 8


def test_many_centres_are_averaged_as_precisely_as_few() -> None:
    """In 3-D the mean angle between random directions is 90°; 9 million angles of float32 are summed."""
    w = torch.randn(3000, 3)
    expected = torch.acos((unit_rows(w.double()) @ unit_rows(w.double()).T).clamp(-1, 1))
    expected.fill_diagonal_(0)
    value = mean_angle_to_others(unit_rows(w), torch.arange(3000), torch.full((3000,), 1 / 3000))
    assert float(value) == pytest.approx(float(expected.sum() / (3000 * 2999)), rel=1e-6)
    assert float(value) == pytest.approx(math.pi / 2, rel=1e-2)
