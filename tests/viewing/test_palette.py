"""The class colours stay apart for readers with and without colour-blindness."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from arcwise.viewing.palette import (
    CLASS_COLOURS,
    Colours,
    blend,
    class_colours,
    ink_on,
    loss_colour,
    loss_dash,
    loss_marker,
    named_classes,
    rgb,
)

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def seen(colours: Colours, sight: str) -> NDArray[np.float64]:
    """The colours in OKLab as someone with this sight sees them."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.asarray(SIGHTS[sight]).T, 0, 1)
    to_lms = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    to_lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.asarray(np.cbrt(linear @ to_lms.T) @ to_lab.T)


def nearest_pair(points: NDArray[np.float64]) -> float:
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    return float(distance.min())


@pytest.mark.parametrize("sight", list(SIGHTS))
def test_the_first_ten_colours_are_apart_for_every_kind_of_sight(sight: str) -> None:
    assert nearest_pair(seen(class_colours(10), sight)) > 0.08


@pytest.mark.parametrize("sight", list(SIGHTS))
def test_neighbours_among_all_twenty_are_far_apart_for_every_kind_of_sight(sight: str) -> None:
    steps = np.diff(seen(class_colours(20), sight), axis=0)
    assert np.linalg.norm(steps, axis=1).min() > 0.13


@pytest.mark.parametrize("sight", list(SIGHTS))
def test_no_two_of_all_twenty_look_the_same_to_anyone(sight: str) -> None:
    assert nearest_pair(seen(class_colours(20), sight)) > 0.035


def test_each_colour_stands_out_from_white_paper() -> None:
    lightness = seen(class_colours(len(CLASS_COLOURS)), "normal")[:, 0]
    assert lightness.max() < 0.85


def test_past_twenty_classes_there_is_a_colour_for_each_and_no_names() -> None:
    colours = class_colours(300)
    assert colours.shape == (300, 3)
    assert ((colours >= 0) & (colours <= 1)).all()
    assert len(np.unique(colours, axis=0)) == 300
    assert named_classes(20)
    assert not named_classes(21)


def test_letters_on_every_label_reach_a_contrast_of_three() -> None:
    def luminance(colour: Colours) -> float:
        linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        return float(linear @ np.array([0.2126, 0.7152, 0.0722]))

    for colour in class_colours(20):
        both = sorted([luminance(colour), luminance(np.array(rgb(ink_on(colour))))])
        assert (both[1] + 0.05) / (both[0] + 0.05) > 3


def test_blending_the_whole_way_gives_the_other_colour() -> None:
    np.testing.assert_allclose(blend(class_colours(3), "#ff8000", 1.0), [[1, 128 / 255, 0]] * 3)


def test_twenty_three_losses_differ_in_colour_or_in_marker_and_dash() -> None:
    assert len({(loss_colour(i), loss_marker(i)) for i in range(23)}) == 23
    assert len({(loss_colour(i), loss_dash(i)) for i in range(23)}) == 23
