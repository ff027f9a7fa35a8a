"""What a margin does to an angle. Pure functions and small frozen objects, without parameters to learn.

Each file in this folder registers one margin under the name by which the command line knows it.
"""

from __future__ import annotations

import importlib
import pkgutil

from arcwise.margins.adacos import AdaCos
from arcwise.margins.adaface import AdaFace
from arcwise.margins.arcface import ArcFace
from arcwise.margins.auto_scale import ScaleChoice, choose_scale, nearest_centre_angle
from arcwise.margins.base import Facts, Margin, Samples, build, margin_class, names, register
from arcwise.margins.combined import CombinedMargin
from arcwise.margins.cosface import CosFace
from arcwise.margins.curricularface import CurricularFace
from arcwise.margins.elasticface import ElasticFace
from arcwise.margins.li_arcface import LiArcFace
from arcwise.margins.long_tail import LongTail
from arcwise.margins.magface import MagFace
from arcwise.margins.mv_softmax import MVSoftmax
from arcwise.margins.norm_softmax import NormSoftmax
from arcwise.margins.sphereface import SphereFace
from arcwise.margins.sphereface2 import SphereFace2
from arcwise.margins.uniface import UniFace

__all__ = [
    "AdaCos",
    "AdaFace",
    "ArcFace",
    "CombinedMargin",
    "CosFace",
    "CurricularFace",
    "ElasticFace",
    "Facts",
    "LiArcFace",
    "LongTail",
    "MVSoftmax",
    "MagFace",
    "Margin",
    "NormSoftmax",
    "Samples",
    "ScaleChoice",
    "SphereFace",
    "SphereFace2",
    "UniFace",
    "build",
    "choose_scale",
    "margin_class",
    "names",
    "nearest_centre_angle",
    "register",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
