"""Colours that stay apart for colour-blind readers.

The twenty class colours were found by maximising the smallest distance in OKLab under normal sight and under protanopia, deuteranopia
and tritanopia (Machado et al. 2009); the first ten are the safest, and neighbours in the list are ordered to be far apart, because
neighbours in a list are what a reader must tell apart most often.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Colours = NDArray[np.float64]

CLASS_COLOURS = (
    "#22a4e5",
    "#2f2fcb",
    "#b1a463",
    "#a41508",
    "#9756e5",
    "#be5608",
    "#70e556",
    "#088a56",
    "#7d087d",
    "#f23c8a",
    "#227dff",
    "#cb63a4",
    "#6308b1",
    "#709749",
    "#156315",
    "#a42fb1",
    "#2fcb97",
    "#be087d",
    "#63b122",
    "#1563b1",
)

# Losses are told apart by colour, marker and dash together (Okabe and Ito's colours, the dark ones first).
LOSS_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a0418a", "#8a6d00", "#56b4e9", "#e69f00", "#3b3f46")
LOSS_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LOSS_DASHES: tuple[tuple[float, tuple[float, ...] | None], ...] = (
    (0, None),
    (0, (6, 2)),
    (0, (2, 1.6)),
    (0, (7, 2, 1.5, 2)),
    (0, (10, 3)),
    (0, (4, 1.5, 1, 1.5, 1, 1.5)),
    (0, (1, 1)),
    (0, (3, 3)),
)

INK = "#1f2430"
MUTED = "#5b6472"
FAINT = "#d5d9e0"
GRID = "#e8ebf0"
BALL = "#f4f6fa"
PAPER = "#ffffff"


def named_classes(num_classes: int) -> bool:
    """Whether there are few enough classes for one colour each, with a legend."""
    return num_classes <= len(CLASS_COLOURS)


def class_colours(num_classes: int) -> Colours:
    """(N, 3) in [0, 1]: one colour a class; past twenty, the hue circle in class order, with light and dark taking turns."""
    if named_classes(num_classes):
        return np.array([rgb(colour) for colour in CLASS_COLOURS[:num_classes]]).reshape(num_classes, 3)
    hue = 2 * np.pi * np.arange(num_classes) / num_classes
    lightness = np.where(np.arange(num_classes) % 2 == 0, 0.68, 0.52)
    return _from_oklab(np.stack([lightness, 0.13 * np.cos(hue), 0.13 * np.sin(hue)], axis=1))


def loss_colour(index: int) -> str:
    return LOSS_COLOURS[index % len(LOSS_COLOURS)]


def loss_marker(index: int) -> str:
    return LOSS_MARKERS[_turned(index) % len(LOSS_MARKERS)]


def loss_dash(index: int) -> tuple[float, tuple[float, ...] | None]:
    return LOSS_DASHES[_turned(index) % len(LOSS_DASHES)]


def _turned(index: int) -> int:
    """One further each time that the colours begin again, so that the same colour comes with another marker and dash."""
    return index + index // len(LOSS_COLOURS)


def rgb(colour: str) -> tuple[float, float, float]:
    """'#rrggbb' as three numbers in [0, 1]."""
    return int(colour[1:3], 16) / 255, int(colour[3:5], 16) / 255, int(colour[5:7], 16) / 255


def blend(colours: Colours, towards: str, share: float | Colours) -> Colours:
    """`colours` moved by `share` of the way to another colour."""
    return np.asarray(colours + (np.array(rgb(towards)) - colours) * share)


def ink_on(colour: Colours) -> str:
    """White or dark letters, whichever reads better on `colour` (WCAG contrast)."""
    luminance = float(_linear(colour) @ np.array([0.2126, 0.7152, 0.0722]))
    return PAPER if 1.05 / (luminance + 0.05) >= 3.6 else INK


def _linear(colour: Colours) -> Colours:
    return np.asarray(np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4))


def _from_oklab(lab: Colours) -> Colours:
    to_lms = np.array(
        [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip((lab @ to_lms.T) ** 3 @ to_rgb.T, 0, 1)
    return np.asarray(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055))
