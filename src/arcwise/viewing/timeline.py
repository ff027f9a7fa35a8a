"""Which moment each frame of an animation shows, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

NUM_FRAMES = 60
MOST_SNAPSHOTS = 30
FIRST_HOLD, LAST_HOLD = 600, 2200
QUICK, SLOW = 70, 130
SLOWING_SHARE = 0.35  # of the frames, at the end


@dataclass(frozen=True)
class Moment:
    """One frame: `share` of the way from one snapshot to the next. Only at share 0 is what it shows measured."""

    snapshot: int
    share: float
    milliseconds: int

    @property
    def position(self) -> float:
        """Snapshots passed so far, with the part of the next."""
        return self.snapshot + self.share


def timeline(num_snapshots: int) -> list[Moment]:
    """About sixty frames from the first snapshot to the last: the first one waits a little, the end goes slower, the last one stays."""
    if num_snapshots < 2:
        return [Moment(0, 0.0, LAST_HOLD)]
    intervals = num_snapshots - 1
    steps = min(max(round(NUM_FRAMES / intervals), 2), 10)
    places = [(index, step / steps) for index in range(intervals) for step in range(steps)] + [(intervals, 0.0)]
    moments = []
    for number, (snapshot, share) in enumerate(places):
        progress = number / (len(places) - 1)
        slowing = max(0.0, (progress - (1 - SLOWING_SHARE)) / SLOWING_SHARE)
        milliseconds = round(QUICK + (SLOW - QUICK) * slowing, -1)
        moments.append(Moment(snapshot, share, int(milliseconds)))
    moments[0] = Moment(0, 0.0, FIRST_HOLD)
    moments[-1] = Moment(intervals, 0.0, LAST_HOLD)
    return moments


def chosen(epochs: list[float]) -> list[float]:
    """The snapshots to show, when there are more than frames allow: all of the start, then evenly spaced ones up to the last."""
    epochs = sorted(epochs)
    if len(epochs) <= MOST_SNAPSHOTS:
        return epochs
    start = [epoch for epoch in epochs if epoch <= 1][: MOST_SNAPSHOTS // 3]
    rest = epochs[len(start) :]
    room = MOST_SNAPSHOTS - len(start)
    return start + [rest[round(i * (len(rest) - 1) / (room - 1))] for i in range(room)]
