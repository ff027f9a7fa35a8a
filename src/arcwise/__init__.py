"""arcwise: learn, measure, show and use embeddings that are separated by angle.

    head = arcwise.MarginHead(dim=512, num_classes=1000, margin=arcwise.ArcFace(0.5))
    loss = head(embeddings, labels)

Names are looked up when they are first used, so that `import arcwise` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from arcwise._version import __version__

if TYPE_CHECKING:
    from arcwise import backbones, data, engines, evaluation, heads, losses, margins, reporting, training, viewing
    from arcwise.engines import Stats
    from arcwise.errors import ArcwiseError
    from arcwise.heads import Head, MarginHead, SoftmaxHead
    from arcwise.margins import (
        AdaCos,
        AdaFace,
        ArcFace,
        CombinedMargin,
        CosFace,
        CurricularFace,
        ElasticFace,
        LiArcFace,
        LongTail,
        MagFace,
        Margin,
        MVSoftmax,
        NormSoftmax,
        SphereFace,
        SphereFace2,
        UniFace,
    )
    from arcwise.training import compare, load_run, train, tune

_rooms = (
    "backbones",
    "data",
    "engines",
    "evaluation",
    "heads",
    "losses",
    "margins",
    "reporting",
    "training",
    "viewing",
)
_homes = {
    "AdaCos": "margins",
    "AdaFace": "margins",
    "ArcFace": "margins",
    "ArcwiseError": "errors",
    "CombinedMargin": "margins",
    "CosFace": "margins",
    "CurricularFace": "margins",
    "ElasticFace": "margins",
    "Head": "heads",
    "LiArcFace": "margins",
    "LongTail": "margins",
    "MVSoftmax": "margins",
    "MagFace": "margins",
    "Margin": "margins",
    "MarginHead": "heads",
    "NormSoftmax": "margins",
    "SoftmaxHead": "heads",
    "SphereFace": "margins",
    "SphereFace2": "margins",
    "Stats": "engines",
    "UniFace": "margins",
    "compare": "training",
    "load_run": "training",
    "train": "training",
    "tune": "training",
}

__all__ = [
    "AdaCos",
    "AdaFace",
    "ArcFace",
    "ArcwiseError",
    "CombinedMargin",
    "CosFace",
    "CurricularFace",
    "ElasticFace",
    "Head",
    "LiArcFace",
    "LongTail",
    "MVSoftmax",
    "MagFace",
    "Margin",
    "MarginHead",
    "NormSoftmax",
    "SoftmaxHead",
    "SphereFace",
    "SphereFace2",
    "Stats",
    "UniFace",
    "__version__",
    "backbones",
    "compare",
    "data",
    "engines",
    "evaluation",
    "heads",
    "load_run",
    "losses",
    "margins",
    "reporting",
    "train",
    "training",
    "tune",
    "viewing",
]


def __getattr__(name: str) -> Any:
    if name in _homes:
        return getattr(importlib.import_module(f"arcwise.{_homes[name]}"), name)
    if name in _rooms:
        return importlib.import_module(f"arcwise.{name}")
    raise AttributeError(f"module 'arcwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
