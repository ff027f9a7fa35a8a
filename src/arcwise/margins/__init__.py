"""What a margin does to an angle. Pure functions and small frozen objects, without parameters to learn.

Each file in this folder registers one margin under the name by which the command line knows it.
"""

from __future__ import annotations

import importlib
import pkgutil

from arcwise.margins.arcface import ArcFace
from arcwise.margins.auto_scale import ScaleChoice, choose_scale, nearest_centre_angle
from arcwise.margins.base import Margin, build, margin_class, names, register
from arcwise.margins.combined import CombinedMargin
from arcwise.margins.cosface import CosFace
from arcwise.margins.norm_softmax import NormSoftmax
from arcwise.margins.sphereface import SphereFace

__all__ = [
    "ArcFace",
    "CombinedMargin",
    "CosFace",
    "Margin",
    "NormSoftmax",
    "ScaleChoice",
    "SphereFace",
    "build",
    "choose_scale",
    "margin_class",
    "names",
    "nearest_centre_angle",
    "register",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
