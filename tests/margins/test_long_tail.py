from __future__ import annotations

import pytest
import torch

from arcwise.margins import LongTail


def margins(counts: list[int]) -> list[float]:
    return LongTail(0.5).class_margins({"counts": torch.tensor(counts, dtype=torch.float32)}).tolist()


def test_the_rarest_class_has_the_whole_margin_and_the_others_less() -> None:
    assert margins([16, 1, 256]) == pytest.approx([0.25, 0.5, 0.125])


def test_a_class_without_samples_has_the_whole_margin_and_takes_none_from_the_others() -> None:
    assert margins([600, 600, 5, 5, 0]) == pytest.approx([*margins([600, 600, 5, 5]), 0.5])


def test_before_any_sample_was_counted_every_class_has_the_whole_margin() -> None:
    assert margins([0, 0, 0]) == [0.5, 0.5, 0.5]
