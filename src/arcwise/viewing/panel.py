"""What all pictures of embeddings share: coloured samples, class centres as arrows with labels, and how to move them between frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.camera import Camera
from arcwise.viewing.lettering import class_names, width
from arcwise.viewing.palette import INK, PAPER, Colours, blend, class_colours, ink_on, named_classes
from arcwise.viewing.run_folder import Array, Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

MOST_ARROWS = 64
LABEL_COLUMNS, LEGEND_COLUMNS = 11, 20
LABEL_POINTS = 9.5
ARROW_WIDTH, HEAD_WIDTH, HEAD_LENGTH = 0.016, 0.062, 0.085


@dataclass(frozen=True)
class Cast:
    """Who is on stage: the class of each sample, and the name and colour of each class."""

    labels: Labels
    names: tuple[str, ...]

    @cached_property
    def colours(self) -> Colours:
        return class_colours(len(self.names))

    @property
    def point_colours(self) -> Colours:
        return self.colours[self.labels]

    @property
    def has_names(self) -> bool:
        return named_classes(len(self.names))

    @cached_property
    def tags(self) -> list[str]:
        """Names short enough to stand on a picture."""
        return class_names(self.names, LABEL_COLUMNS)

    def tag_inches(self, points: float = LABEL_POINTS) -> float:
        """The width of the widest label."""
        widest = max((width(tag) for tag in self.tags), default=1)
        return (0.62 * widest + 0.9) * points / 72

    def legend_inches(self) -> float:
        """The room that the legend takes beside a picture."""
        if not self.has_names:
            return 0.0
        widest = max((width(name) for name in class_names(self.names, LEGEND_COLUMNS)), default=1)
        return 0.62 * widest * 10.5 / 72 + 0.4

    def note(self) -> str:
        """The sentence that stands in for a legend where there are too many classes for one."""
        if self.has_names:
            return ""
        return f"{len(self.names)} classes: colours run through the hue circle in class order, without a legend."


class Panel(ABC):
    """A picture of embeddings on one pair of axes. `show` may be called again and again: the same artists move."""

    def __init__(self, axes: Axes, cast: Cast, *, inches: float, label_points: float = LABEL_POINTS) -> None:
        self.axes, self.cast, self.inches = axes, cast, inches
        self.label_points = label_points
        num_points = max(len(cast.labels), 1)
        self.point_size = float(np.clip(7.0 * (inches / 4) ** 2 * (2000 / num_points) ** 0.5, 2.0, 22.0))
        # Drawn in a fixed shuffled order, so that no class lies on top of another because of its number.
        self.order = np.random.default_rng(0).permutation(len(cast.labels))
        self.tags: list[Text] = []

    @abstractmethod
    def show(self, points_MD: Array, centres_ND: Array, camera: Camera | None = None) -> None:
        """Move everything to where these vectors lie. A camera counts only where there is depth."""

    def add_points(self, zorder: float) -> PathCollection:
        num_points = len(self.cast.labels)
        points = self.axes.scatter(
            np.zeros(num_points), np.zeros(num_points), s=self.point_size, linewidths=0, zorder=zorder, rasterized=True
        )
        points.set_facecolor(self.cast.point_colours[self.order])  # type: ignore[arg-type]
        return points

    def add_arrows(self, zorder: float) -> PolyCollection:
        from matplotlib.collections import PolyCollection

        arrows = PolyCollection([], zorder=zorder, linewidths=0.5, edgecolors=PAPER, facecolors=INK)
        self.axes.add_collection(arrows, autolim=False)
        return arrows

    def add_tags(self) -> None:
        """One label a class, in the class's own colour, so that the label is the legend."""
        if not self.cast.has_names:
            return
        self.tags = place_tags(self.axes, self.cast, np.zeros((len(self.cast.names), 2)), points=self.label_points)

    def move_tag(self, index: int, xy: NDArray[np.float64], *, dimmed: float = 0.0, zorder: float = 20.0) -> None:
        """Put a label somewhere; `dimmed` in [0, 1] makes it pale, for what is behind."""
        text = self.tags[index]
        text.set_position((float(xy[0]), float(xy[1])))
        text.set_zorder(zorder)
        box: Any = text.get_bbox_patch()
        colour = self.cast.colours[index]
        box.set_facecolor(blend(colour, "#ffffff", 0.62 * dimmed))
        if dimmed > 0.5:
            text.set_color(tuple(blend(colour, INK, 0.62)))
        else:
            text.set_color(ink_on(colour))


def place_tags(axes: Axes, cast: Cast, places_N2: NDArray[np.float64], *, points: float = LABEL_POINTS) -> list[Text]:
    """A label for each class at its place, as a pill in the class's colour; none where there are too many classes."""
    if not cast.has_names:
        return []
    return [
        axes.text(
            x,
            y,
            tag,
            size=points,
            weight="bold",
            ha="center",
            va="center",
            color=ink_on(colour),
            zorder=20,
            bbox={
                "boxstyle": "round,pad=0.22,rounding_size=0.55",
                "facecolor": colour,
                "edgecolor": PAPER,
                "linewidth": 0.9,
            },
        )
        for (x, y), tag, colour in zip(places_N2, cast.tags, cast.colours, strict=True)
    ]


def arrow_polygons(
    tips_N2: NDArray[np.float64], start: tuple[float, float] = (0.0, 0.0), size: float = 1.0
) -> list[NDArray[np.float64]]:
    """Arrows from `start` to each tip, as seven-cornered polygons; a short arrow has a small head, one of no length nothing."""
    origin = np.asarray(start)
    polygons = []
    for tip in tips_N2:
        length = float(np.hypot(*(tip - origin)))
        if length < 1e-6:
            polygons.append(np.repeat(origin[None], 7, axis=0))
            continue
        along = (tip - origin) / length
        across = np.array([-along[1], along[0]])
        head = min(HEAD_LENGTH * size, 0.7 * length)
        half, half_head = ARROW_WIDTH * size / 2, HEAD_WIDTH * size / 2 * head / (HEAD_LENGTH * size)
        neck = origin + along * (length - head)
        polygons.append(
            np.array(
                [
                    origin - half * across,
                    neck - half * across,
                    neck - half_head * across,
                    tip,
                    neck + half_head * across,
                    neck + half * across,
                    origin + half * across,
                ]
            )
        )
    return polygons


def outward(tips_N2: NDArray[np.float64], distance: float) -> NDArray[np.float64]:
    """Each tip pushed away from the origin by `distance`, less where the arrow points at the eye; smooth, so labels never jump."""
    length = np.linalg.norm(tips_N2, axis=1, keepdims=True)
    return np.asarray(tips_N2 + distance * tips_N2 / (length + 0.04))


def add_legend(figure: Figure, cast: Cast, **options: Any) -> Legend | None:
    """The classes by name and colour beside the picture; nothing where there are too many to name."""
    if not cast.has_names or not cast.names:
        return None
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", marker="o", markersize=7.5, markeredgewidth=0, color=tuple(colour))
        for colour in cast.colours
    ]
    names = class_names(cast.names, LEGEND_COLUMNS)
    placed: dict[str, Any] = {
        "loc": "outside right center",
        "frameon": False,
        "handletextpad": 0.3,
        "labelspacing": 0.42,
    }
    # Names go in afterwards: the legend drops labels that begin with an underscore.
    legend = figure.legend(handles, ["·"] * len(names), **{**placed, **options})
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)
    return legend
