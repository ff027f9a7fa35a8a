"""The same character in another hand: turned, slanted, stretched, moved and bent, in thicker or thinner ink.

Everything but the ink is in proportion to the picture's side, so that pictures of any size are changed alike. A stroke gets thicker or
thinner by up to half a pixel on either side.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

TURN_RADIANS = math.radians(15)
SHEAR = 0.25
ZOOM_SHARE = 0.2
SHIFT_SHARE = 0.08
BEND_SHARE = 0.04  # of the side, the deviation of the bending
BEND_KNOTS = 4  # along each side
INK_SHARE = 0.5
NUM_RANDOM = 7


def other_hand(images: Tensor, generator: torch.Generator) -> Tensor:
    """A changed copy of pictures (B, C, H, W) of bright ink on black, with the same shape, dtype and device."""
    num, _, height, width = images.shape
    random_BR = (torch.rand(num, NUM_RANDOM, generator=generator) * 2 - 1).to(images.device)
    knots_B2KK = torch.randn(num, 2, BEND_KNOTS, BEND_KNOTS, generator=generator).to(images.device)
    grid_BHW2 = _affine_grid(random_BR, height, width) + _bending(knots_B2KK, height, width)
    moved = functional.grid_sample(
        images.to(torch.float32), grid_BHW2, mode="bilinear", padding_mode="zeros", align_corners=False
    )
    result = _inked(moved, random_BR[:, 6])
    if images.dtype == torch.uint8:
        result = result.add_(0.5).clamp_(0, 255)
    return result.to(images.dtype)


def _affine_grid(random_BR: Tensor, height: int, width: int) -> Tensor:
    """Where each new pixel looks in the old picture, whose sides run from −1 to 1."""
    turn_B, shear_B = random_BR[:, 0] * TURN_RADIANS, random_BR[:, 1] * SHEAR
    zoom_x_B, zoom_y_B = ((1 + random_BR[:, column] * ZOOM_SHARE).reciprocal() for column in (2, 3))
    # Twice the share: a side is 2 long here.
    shift_x_B, shift_y_B = (random_BR[:, column] * 2 * SHIFT_SHARE for column in (4, 5))
    cos_B, sin_B = turn_B.cos(), turn_B.sin()
    matrix_B23 = torch.stack(
        [
            torch.stack([cos_B * zoom_x_B, (shear_B * cos_B - sin_B) * zoom_x_B, shift_x_B], dim=1),
            torch.stack([sin_B * zoom_y_B, (shear_B * sin_B + cos_B) * zoom_y_B, shift_y_B], dim=1),
        ],
        dim=1,
    )
    x_W = (torch.arange(width, device=random_BR.device) * 2 + 1) / width - 1
    y_H = (torch.arange(height, device=random_BR.device) * 2 + 1) / height - 1
    place_P3 = torch.stack(
        [x_W.repeat(height), y_H.repeat_interleave(width), torch.ones(height * width, device=random_BR.device)], dim=1
    )
    return (place_P3 @ matrix_B23.mT).view(-1, height, width, 2)


def _bending(knots_B2KK: Tensor, height: int, width: int) -> Tensor:
    """A smooth displacement of each pixel, (B, H, W, 2), through random ones at a few knots."""
    across_HK, along_WK = (_cubic(size, knots_B2KK.device) for size in (height, width))
    bent_B2HW = across_HK @ knots_B2KK @ along_WK.T
    return bent_B2HW.permute(0, 2, 3, 1) * (2 * BEND_SHARE)


def _cubic(size: int, device: torch.device) -> Tensor:
    """(S, K): how much of each knot there is at each pixel of a side."""
    one_KK = torch.eye(BEND_KNOTS, device=device)
    return functional.interpolate(one_KK[None, None], size=(size, BEND_KNOTS), mode="bicubic", align_corners=True)[0, 0]


def _inked(images: Tensor, ink_B: Tensor) -> Tensor:
    """Strokes spread towards the brightest neighbour (above 0) or fade towards the darkest (below 0)."""
    share_B111 = ink_B.view(-1, 1, 1, 1) * INK_SHARE
    # Slices rather than max_pool2d, which takes several times as long on a CPU.
    padded = functional.pad(images, (1, 1, 1, 1))
    thicker, thinner = (
        extreme(extreme(rows[:, :, :-2], rows[:, :, 1:-1]), rows[:, :, 2:])
        for extreme in (torch.maximum, torch.minimum)
        for rows in (extreme(extreme(padded[..., :-2], padded[..., 1:-1]), padded[..., 2:]),)
    )
    return torch.where(
        share_B111 > 0, torch.lerp(images, thicker, share_B111), torch.lerp(images, thinner, -share_B111)
    )
