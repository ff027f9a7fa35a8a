"""Which moment each frame shows."""

from __future__ import annotations

import pytest

from arcwise.viewing.timeline import LAST_HOLD, MOST_SNAPSHOTS, chosen, timeline


@pytest.mark.parametrize("num_snapshots", [2, 3, 8, 16, 30])
def test_time_only_goes_forward_and_every_snapshot_is_shown_as_it_was_measured(num_snapshots: int) -> None:
    moments = timeline(num_snapshots)
    positions = [moment.position for moment in moments]
    assert positions == sorted(set(positions))
    assert {moment.snapshot for moment in moments if moment.share == 0} == set(range(num_snapshots))
    assert (positions[0], positions[-1]) == (0, num_snapshots - 1)


@pytest.mark.parametrize("num_snapshots", [7, 16, 30])
def test_there_are_about_sixty_frames(num_snapshots: int) -> None:
    assert 50 <= len(timeline(num_snapshots)) <= 75


def test_the_end_goes_slower_and_the_last_frame_stays_two_seconds() -> None:
    moments = timeline(16)
    assert moments[-1].milliseconds == LAST_HOLD >= 2000
    assert moments[-2].milliseconds > moments[len(moments) // 2].milliseconds
    assert all(moment.milliseconds % 10 == 0 for moment in moments)


def test_a_long_run_keeps_its_start_its_end_and_an_even_choice_between() -> None:
    epochs = [0.0, 0.25, 0.5, 0.75, *map(float, range(1, 201))]
    kept = chosen(epochs)
    assert len(kept) == MOST_SNAPSHOTS
    assert kept[:5] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert kept[-1] == 200
    assert kept == sorted(set(kept))


def test_a_short_run_keeps_everything() -> None:
    assert chosen([2.0, 0.0, 1.0]) == [0.0, 1.0, 2.0]
