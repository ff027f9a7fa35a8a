"""The snapshots of one run, in order, as the directions of the same samples and centres."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from arcwise.viewing.interpolation import along_great_circles
from arcwise.viewing.projection import extent_of
from arcwise.viewing.run_folder import Array, Run, Snapshot, spread_sample, unit
from arcwise.viewing.view import View


class Reel:
    """The film of a run. Two snapshots are in memory at a time, however long the run was.

    The view (camera, projection, colours, which samples) is fixed from the last snapshot, for every frame.
    """

    def __init__(self, run: Run, *, most: int) -> None:
        self.run = run
        self._most = most
        self._paths: dict[float, Path] = {}
        self.accuracy: dict[float, float | None] = {}
        self._held: dict[float, tuple[Array, Array]] = {}
        last = self._last_readable()
        if last is None:
            return
        self._rows = spread_sample(last.labels, most)
        self.view = View.of(last, _names(run, last), most=most)
        self._check(last)

    def _last_readable(self) -> Snapshot | None:
        for entry in reversed(self.run.snapshot_paths):
            for snapshot in self.run.snapshots([entry]):
                return snapshot
        return None

    def _check(self, last: Snapshot) -> None:
        """Keep the snapshots that show the same samples as the last one; see how much room all of them need."""
        extent = self.view.extent
        left_out = 0
        for epoch, path in self.run.snapshot_paths:
            for snapshot in self.run.snapshots([(epoch, path)]):
                same = (
                    snapshot.embeddings.shape == last.embeddings.shape and snapshot.centres.shape == last.centres.shape
                )
                if not same or not np.array_equal(snapshot.labels, last.labels):
                    left_out += 1
                    continue
                self._paths[epoch] = path
                self.accuracy[epoch] = snapshot.accuracy
                if self.view.projection is not None:
                    extent = max(extent, extent_of(self.view.projection, *self._directions(snapshot)))
        if left_out:
            self.run.reporter.warn(
                f"{left_out} snapshots of {self.run.path.name} hold other samples than the last one and are left out."
            )
        self.view = replace(self.view, extent=extent)

    @property
    def epochs(self) -> list[float]:
        return sorted(self._paths)

    def at(self, epoch: float, following: float | None, share: float) -> tuple[Array, Array]:
        """Directions of the samples and of the centres, `share` of the way to the following snapshot."""
        points, centres = self._load(epoch)
        if following is None or share == 0:
            return points, centres
        next_points, next_centres = self._load(following)
        self._held = {key: self._held[key] for key in (epoch, following)}
        return along_great_circles(points, next_points, share), along_great_circles(centres, next_centres, share)

    def _load(self, epoch: float) -> tuple[Array, Array]:
        if epoch not in self._held:
            snapshots: Iterable[Snapshot] = self.run.snapshots([(epoch, self._paths[epoch])])
            for snapshot in snapshots:
                self._held[epoch] = self._directions(snapshot)
        return self._held[epoch]

    def _directions(self, snapshot: Snapshot) -> tuple[Array, Array]:
        return unit(snapshot.embeddings[self._rows]), unit(snapshot.centres)


def _names(run: Run, last: Snapshot) -> tuple[str, ...]:
    """Class names, as many as the snapshots have centres."""
    num_classes = len(last.centres)
    return (*run.classes, *(str(j) for j in range(len(run.classes), num_classes)))[:num_classes]
