"""Three-dimensional embeddings on the unit sphere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.camera import Camera
from arcwise.viewing.palette import BALL, FAINT, blend
from arcwise.viewing.panel import LABEL_POINTS, MOST_ARROWS, Cast, Panel, arrow_polygons, outward
from arcwise.viewing.run_folder import Array
from arcwise.viewing.style import bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARROW_REACH = 1.13
TAG_DISTANCE = 0.105
PALE = 0.64


class SpherePanel(Panel):
    """The unit sphere seen by an orthographic camera: what is on the far side is pale and small."""

    def __init__(
        self, axes: Axes, cast: Cast, *, inches: float, label_points: float = LABEL_POINTS, shaded: bool = True
    ) -> None:
        super().__init__(axes, cast, inches=inches, label_points=label_points)
        from matplotlib.patches import Circle

        tag_half = cast.tag_inches(label_points) / 2 * 2.6 / inches if cast.has_names else 0.0
        bare(axes, 1.3)
        axes.set_xlim(-1.18 - tag_half, 1.18 + tag_half)
        if shaded:
            axes.imshow(
                _shading(), extent=(-1, 1, -1, 1), zorder=0.5, interpolation="bilinear", aspect="equal", rasterized=True
            )
            axes.set_xlim(-1.18 - tag_half, 1.18 + tag_half)
            axes.set_ylim(-1.3, 1.3)
        else:
            axes.add_patch(Circle((0, 0), 1, facecolor=BALL, edgecolor="none", zorder=0.5))
        axes.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor="#aab2bf", linewidth=1.0, zorder=3))
        (self._far_lines,) = axes.plot([], [], color=FAINT, linewidth=0.5, zorder=1, solid_capstyle="butt")
        (self._near_lines,) = axes.plot([], [], color="#c3c9d3", linewidth=0.7, zorder=4, solid_capstyle="butt")
        self._far_arrows, self._near_arrows = self.add_arrows(2.5), self.add_arrows(7)
        self._far_arrows.set_facecolor(str(FAINT))
        self._far_arrows.set_linewidth(0)
        self._far_points, self._near_points = self.add_points(2), self.add_points(5)
        self._grid = _graticule()
        self.add_tags()

    def show(self, points_MD: Array, centres_ND: Array, camera: Camera | None = None) -> None:
        camera = camera if camera is not None else Camera()
        self._show_grid(camera)
        self._show_points(camera.project(points_MD))
        self._show_centres(camera.project(centres_ND))

    def _show_grid(self, camera: Camera) -> None:
        picture = camera.project(self._grid)
        near, far = picture[:, :2].copy(), picture[:, :2].copy()
        near[picture[:, 2] < 0] = np.nan
        far[picture[:, 2] > 0] = np.nan
        self._near_lines.set_data(near[:, 0], near[:, 1])
        self._far_lines.set_data(far[:, 0], far[:, 1])

    def _show_points(self, picture_M3: NDArray[np.float64]) -> None:
        """Far samples below the arrows, near ones above the grid, each sorted by depth."""
        by_depth = np.argsort(picture_M3[:, 2], kind="stable")
        split = int(np.searchsorted(picture_M3[by_depth, 2], 0.0))
        colours = self.cast.point_colours
        for points, rows in ((self._far_points, by_depth[:split]), (self._near_points, by_depth[split:])):
            depth = picture_M3[rows, 2]
            behind = np.clip(0.5 - depth / 0.2, 0, 1)
            points.set_offsets(picture_M3[rows, :2])
            points.set_facecolor(blend(colours[rows], BALL, PALE * np.round(behind * 6)[:, None] / 6))  # type: ignore[arg-type]
            points.set_sizes(self.point_size * (1 - 0.4 * behind))

    def _show_centres(self, picture_N3: NDArray[np.float64]) -> None:
        tips = ARROW_REACH * picture_N3[:, :2]
        near = picture_N3[:, 2] >= 0
        if len(tips) <= MOST_ARROWS:
            thin = 1.0 if self.cast.has_names else 0.6
            self._near_arrows.set_verts(arrow_polygons(tips[near], size=thin))
            self._far_arrows.set_verts(arrow_polygons(tips[~near], size=thin))
        places = outward(tips, TAG_DISTANCE)
        for index in range(len(self.tags)):
            depth = float(picture_N3[index, 2])
            behind = float(np.clip(0.5 - depth / 0.3, 0, 1))
            # Far labels lie under the near samples, but above the sphere's edge.
            self.move_tag(index, places[index], dimmed=behind, zorder=10 + depth if depth >= 0 else 4.5 + 0.4 * depth)


def _graticule(step: int = 30) -> Array:
    """Meridians and parallels as one line with breaks (NaN), on a sphere a hair larger than one."""
    turn = np.radians(np.linspace(0, 360, 121))
    lines = []
    for longitude in np.radians(np.arange(0, 180, step)):
        lines.append(
            np.stack([np.cos(turn) * np.cos(longitude), np.cos(turn) * np.sin(longitude), np.sin(turn)], axis=1)
        )
    for latitude in np.radians(np.arange(-90 + step, 90, step)):
        lines.append(
            np.stack(
                [
                    np.cos(latitude) * np.cos(turn),
                    np.cos(latitude) * np.sin(turn),
                    np.full_like(turn, np.sin(latitude)),
                ],
                1,
            )
        )
    gap = np.full((1, 3), np.nan)
    return np.concatenate([part for line in lines for part in (line, gap)]).astype(np.float32)


def _shading(size: int = 360) -> NDArray[np.float64]:
    """A ball lit from the upper left, as an RGBA picture: quiet enough to leave the colours alone."""
    y, x = np.mgrid[1 : -1 : size * 1j, -1 : 1 : size * 1j]
    squared = x**2 + y**2
    z = np.sqrt(np.clip(1 - squared, 0, 1))
    light = np.clip((-0.45 * x + 0.55 * y + 0.7 * z), 0, 1)
    tone = 0.885 + 0.1 * light**0.8
    edge = np.clip((1 - np.sqrt(squared)) * size / 2 + 0.5, 0, 1)
    return np.stack([tone, tone + 0.006, np.minimum(tone + 0.018, 1), edge], axis=-1)
