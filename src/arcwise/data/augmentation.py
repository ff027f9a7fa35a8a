"""Small random changes to training images, a whole batch at once, on the device that trains.

The random numbers always come from a CPU generator: a few per image, so that the same generator state gives the same batch
whatever the device's own random numbers would have been.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from arcwise.data.handwriting import other_hand
from arcwise.errors import ConfigError, did_you_mean

AUGMENTATIONS = ("none", "affine", "handwriting", "crop-flip", "crop-flip-cutout")

SHIFT_PIXELS = 2.0
TURN_RADIANS = math.radians(10)
ZOOM_SHARE = 0.1
CROP_PADDING = 4
CUTOUT_PIXELS = 8


def prepare(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Float32 input for a backbone: pixels from 0..255 to [0, 1], then mean 0 and deviation 1. Nothing random.

    Args:
        images: uint8 (B, C, H, W), or float (B, F).
        mean: per channel (C,) in [0, 1] units, or per column (F,).
        std: beside `mean`; never zero (`Dataset.std` sees to that).
    """
    view = (1, -1, *([1] * (images.ndim - 2)))
    unit = 255.0 if images.dtype == torch.uint8 else 1.0
    mean, std = mean.to(images.device, torch.float32), std.to(images.device, torch.float32)
    # `sub` first, on a copy: a column of large numbers would lose its digits in x·(1/σ) − μ/σ.
    result = images.to(torch.float32, copy=True)
    return result.sub_((mean * unit).view(view)).mul_((1 / (std * unit)).view(view))


def augment(images: Tensor, kind: str, generator: torch.Generator) -> Tensor:
    """A changed copy of the batch, with the same shape, dtype and device.

    Args:
        images: (B, C, H, W), uint8 or float.
        kind: "none"; "affine" turns up to 10°, zooms up to 10 % and shifts up to 2 pixels, which suits handwriting;
            "handwriting" bends, slants, stretches and thickens strokes as other hands would (see `arcwise.data.handwriting`);
            "crop-flip" shifts up to 4 pixels with a mirrored border and mirrors half of the images left to right, which
            suits photographs; "crop-flip-cutout" also greys out one square of 8 pixels in each.
        generator: on the CPU; its state alone decides the result.
    """
    if kind not in AUGMENTATIONS:
        raise ConfigError(f'There is no augmentation called "{kind}". {did_you_mean(kind, AUGMENTATIONS)}')
    if kind == "none":
        return images
    if images.ndim != 4:
        raise ConfigError(
            f'The augmentation "{kind}" needs images (B, C, H, W); got an array of shape {tuple(images.shape)}. Use "none" for features.'
        )
    if kind == "affine":
        return _affine(images, generator)
    if kind == "handwriting":
        return other_hand(images, generator)
    images = _crop_flip(images, generator)
    return _cutout(images, generator) if kind == "crop-flip-cutout" else images


def _affine(images: Tensor, generator: torch.Generator) -> Tensor:
    num, _, height, width = images.shape
    random_B4 = (torch.rand(num, 4, generator=generator) * 2 - 1).to(images.device)
    turn_B, zoom_B = random_B4[:, 0] * TURN_RADIANS, 1 / (1 + random_B4[:, 1] * ZOOM_SHARE)
    cos_B11, sin_B11 = ((part(turn_B) * zoom_B).view(-1, 1, 1) for part in (torch.cos, torch.sin))
    shift_x_B11, shift_y_B11 = (random_B4[:, column].view(-1, 1, 1) * SHIFT_PIXELS for column in (2, 3))

    # Where each output pixel looks in the input, in pixels from the middle. Written out: `affine_grid` takes five times as long.
    x_W = torch.arange(width, device=images.device) - (width - 1) / 2
    y_H1 = (torch.arange(height, device=images.device) - (height - 1) / 2).unsqueeze(1)
    grid_BHW2 = torch.empty(num, height, width, 2, device=images.device)
    torch.add(cos_B11 * x_W - sin_B11 * y_H1, shift_x_B11, out=grid_BHW2[..., 0]).mul_(2 / width)
    torch.add(sin_B11 * x_W + cos_B11 * y_H1, shift_y_B11, out=grid_BHW2[..., 1]).mul_(2 / height)

    result = functional.grid_sample(
        images.to(torch.float32), grid_BHW2, mode="bilinear", padding_mode="zeros", align_corners=False
    )
    if images.dtype == torch.uint8:
        result = result.add_(0.5).clamp_(0, 255)
    return result.to(images.dtype)


def _crop_flip(images: Tensor, generator: torch.Generator) -> Tensor:
    num, channels, height, width = images.shape
    pad_y, pad_x = min(CROP_PADDING, height - 1), min(CROP_PADDING, width - 1)
    shift_y_B1 = torch.randint(-pad_y, pad_y + 1, (num, 1), generator=generator)
    shift_x_B1 = torch.randint(-pad_x, pad_x + 1, (num, 1), generator=generator)
    flip_B1 = torch.randint(0, 2, (num, 1), generator=generator).bool()

    rows_BH = _mirrored(torch.arange(height) + shift_y_B1, height)
    columns_BW = _mirrored(torch.arange(width) + shift_x_B1, width)
    columns_BW = torch.where(flip_B1, columns_BW.flip(1), columns_BW)
    rows_BH, columns_BW = rows_BH.to(images.device), columns_BW.to(images.device)
    index_B1P = (rows_BH.unsqueeze(2) * width + columns_BW.unsqueeze(1)).view(num, 1, height * width)
    flat_BCP = images.reshape(num, channels, height * width)
    return flat_BCP.gather(2, index_B1P.expand(num, channels, height * width)).view(images.shape)


def _mirrored(position: Tensor, length: int) -> Tensor:
    """Positions outside [0, length) folded back at the ends, without doubling the border pixel."""
    return (length - 1) - ((length - 1) - position.abs()).abs()


def _cutout(images: Tensor, generator: torch.Generator) -> Tensor:
    """One square in each image takes the image's own mean colour, which says nothing to the network."""
    num, _, height, width = images.shape
    side_y, side_x = min(CUTOUT_PIXELS, height), min(CUTOUT_PIXELS, width)
    top_B1 = torch.randint(0, height - side_y + 1, (num, 1), generator=generator).to(images.device)
    left_B1 = torch.randint(0, width - side_x + 1, (num, 1), generator=generator).to(images.device)
    y_H, x_W = torch.arange(height, device=images.device), torch.arange(width, device=images.device)
    inside_BH = (y_H >= top_B1) & (y_H < top_B1 + side_y)
    inside_BW = (x_W >= left_B1) & (x_W < left_B1 + side_x)
    inside_B1HW = (inside_BH.unsqueeze(2) & inside_BW.unsqueeze(1)).unsqueeze(1)
    mean_BC11 = images.to(torch.float32).mean(dim=(2, 3), keepdim=True).to(images.dtype)
    return torch.where(inside_B1HW, mean_BC11, images)
