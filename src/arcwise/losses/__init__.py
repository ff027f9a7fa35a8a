"""Terms beside the head, on angles, centres or pairs: nn.Modules that also stand alone in anyone's training loop.

Each file in this folder registers one term under the name by which the command line knows it.
"""

from __future__ import annotations

import importlib
import pkgutil

from arcwise.losses.center import CenterLoss
from arcwise.losses.circle import CircleLoss
from arcwise.losses.inter import InterLoss
from arcwise.losses.intra import IntraLoss
from arcwise.losses.proxy_anchor import ProxyAnchorLoss
from arcwise.losses.registry import build, check, defaults, names, register, term_class
from arcwise.losses.term import Term
from arcwise.losses.triplet import AngularTripletLoss

__all__ = [
    "AngularTripletLoss",
    "CenterLoss",
    "CircleLoss",
    "InterLoss",
    "IntraLoss",
    "ProxyAnchorLoss",
    "Term",
    "build",
    "check",
    "defaults",
    "names",
    "register",
    "term_class",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
