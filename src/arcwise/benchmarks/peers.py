"""The losses that `arcwise bench losses` sets beside each other: ours, plain PyTorch, and those of the libraries that are installed.

Each is wrapped so that it takes the same centres, the same scale and the margin in the same unit.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import math
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arcwise._version import __version__
from arcwise.heads import MarginHead
from arcwise.margins import ArcFace, CosFace, Margin, SphereFace

LossName = Literal["ArcFace", "CosFace", "SphereFace", "sub-centre ArcFace"]

MARGINS: dict[LossName, float] = {"ArcFace": 0.5, "CosFace": 0.35, "SphereFace": 4.0, "sub-centre ArcFace": 0.5}
SUB_CENTRES = 3


@dataclass(frozen=True)
class Shape:
    """How many classes, how wide, and how strongly cosines are stretched."""

    num_classes: int
    dim: int
    scale: float


@dataclass(frozen=True)
class Contender:
    """One library's version of one loss.

    Attributes:
        library: its name and version.
        loss: which loss it is.
        build: makes the module: (embeddings, labels) -> mean loss.
        centres: the module's parameter that holds the centres.
        columns: whether the centres are columns rather than rows.
        continuation: what its target logit does past θ = π − m.
        times_length: whether the scale is multiplied by the embedding's length.
    """

    library: str
    loss: LossName
    build: Callable[[Shape], nn.Module]
    centres: Callable[[nn.Module], nn.Parameter]
    columns: bool = False
    continuation: Literal["continuous", "classic", "none"] = "classic"
    times_length: bool = False

    @property
    def centres_per_class(self) -> int:
        return SUB_CENTRES if self.loss == "sub-centre ArcFace" else 1

    def with_centres(self, shape: Shape, w_MD: Tensor) -> nn.Module:
        """The module with these centres, a row each, in w's precision."""
        module = self.build(shape).to(w_MD.dtype)
        with torch.no_grad():
            self.centres(module).data = (w_MD.T if self.columns else w_MD).contiguous().clone()
        return module

    def rows(self, centres: Tensor) -> Tensor:
        """The centres, or their gradients, with a row for each centre."""
        return centres.T if self.columns else centres


@dataclass(frozen=True)
class Absent:
    """A library that cannot be compared with, and what to do about it."""

    library: str
    reason: str


class PlainArcFace(nn.Module):
    """ArcFace as tutorials write it: arccos of a clamped cosine, and the bare cos(θ + m)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(shape.num_classes, shape.dim))
        self.scale = shape.scale

    def forward(self, x_BD: Tensor, labels_B: Tensor) -> Tensor:
        cos_BN = F.linear(F.normalize(x_BD), F.normalize(self.weight)).clamp(-1 + 1e-7, 1 - 1e-7)
        target_BN = torch.cos(torch.acos(cos_BN) + MARGINS["ArcFace"])
        own_BN = F.one_hot(labels_B, cos_BN.shape[1])
        return F.cross_entropy(self.scale * (own_BN * target_BN + (1 - own_BN) * cos_BN), labels_B)


def contenders() -> tuple[list[Contender], list[Absent]]:
    """All that can be measured here, ours first, and those that cannot."""
    found, absent = [*_ours(), _plain()], []
    for library, install, peer in (
        ("pytorch-metric-learning", "pip install 'pytorch-metric-learning>=2.8'", _pytorch_metric_learning),
        ("open-metric-learning", "pip install 'open-metric-learning>=2.1'", _open_metric_learning),
    ):
        try:
            version = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            absent.append(Absent(library, f"not installed: {install}"))
            continue
        try:
            found += peer(f"{library} {version}")
        except Exception as error:  # whatever a foreign package raises while it is imported, ours goes on
            absent.append(Absent(f"{library} {version}", f"cannot be imported here: {' '.join(str(error).split())}"))
    return found, absent


def _ours() -> Iterator[Contender]:
    def head(margin: Margin, centers_per_class: int = 1) -> Callable[[Shape], nn.Module]:
        return lambda shape: MarginHead(
            shape.dim, shape.num_classes, margin, shape.scale, centers_per_class=centers_per_class
        )

    builds: dict[LossName, Callable[[Shape], nn.Module]] = {
        "ArcFace": head(ArcFace(MARGINS["ArcFace"])),
        "CosFace": head(CosFace(MARGINS["CosFace"])),
        "SphereFace": head(SphereFace(MARGINS["SphereFace"])),
        "sub-centre ArcFace": head(ArcFace(MARGINS["sub-centre ArcFace"]), SUB_CENTRES),
    }
    for loss, build in builds.items():
        yield Contender(f"arcwise {__version__}", loss, build, _weight, continuation="continuous")


def _plain() -> Contender:
    return Contender("plain PyTorch", "ArcFace", PlainArcFace, _weight, continuation="none")


def _pytorch_metric_learning(library: str) -> Iterator[Contender]:
    """Its margins on the angle are in degrees, its centres are columns."""
    losses = importlib.import_module("pytorch_metric_learning.losses")
    degrees = math.degrees(MARGINS["ArcFace"])

    def centres(module: nn.Module) -> nn.Parameter:
        return module.W  # type: ignore[return-value]

    def build(kind: str, margin: float, **more: Any) -> Callable[[Shape], nn.Module]:
        return lambda shape: getattr(losses, kind)(
            num_classes=shape.num_classes, embedding_size=shape.dim, margin=margin, scale=shape.scale, **more
        )

    yield Contender(library, "ArcFace", build("ArcFaceLoss", degrees), centres, True)
    yield Contender(library, "CosFace", build("CosFaceLoss", MARGINS["CosFace"]), centres, True)
    sphereface = build("SphereFaceLoss", MARGINS["SphereFace"])
    yield Contender(library, "SphereFace", sphereface, centres, True, times_length=True)
    sub_centres = build("SubCenterArcFaceLoss", degrees, sub_centers=SUB_CENTRES)
    yield Contender(library, "sub-centre ArcFace", sub_centres, centres, True)


def _open_metric_learning(library: str) -> Iterator[Contender]:
    """ArcFace is the only one of these losses that it has."""
    module, whole = _module_with_torchvision_or_without("oml.losses.arcface")
    loss: Any = module.ArcFaceLoss

    def build(shape: Shape) -> nn.Module:
        return loss(shape.dim, shape.num_classes, m=MARGINS["ArcFace"], s=shape.scale)  # type: ignore[no-any-return]

    yield Contender(library if whole else f"{library} without torchvision", "ArcFace", build, _weight)


def _weight(module: nn.Module) -> nn.Parameter:
    return module.weight  # type: ignore[return-value]


@functools.cache  # a second import would find the module there and call it whole
def _module_with_torchvision_or_without(name: str) -> tuple[types.ModuleType, bool]:
    """The module, and whether torchvision could be imported for it.

    Where it could not, a stand-in takes the place of the one class that the module wants from it, an MLP, which has no part in the
    loss that is measured.
    """
    try:
        return importlib.import_module(name), True
    except (ImportError, RuntimeError, OSError):
        with _torchvision_stood_in_for():
            sys.modules.pop(name, None)
            return importlib.import_module(name), False


@contextmanager
def _torchvision_stood_in_for() -> Iterator[None]:
    def is_torchvision(name: str) -> bool:
        return name == "torchvision" or name.startswith("torchvision.")

    before = {name: sys.modules.pop(name) for name in list(sys.modules) if is_torchvision(name)}
    torchvision, ops = types.ModuleType("torchvision"), types.ModuleType("torchvision.ops")
    ops.MLP = nn.Sequential  # type: ignore[attr-defined]
    torchvision.ops = ops  # type: ignore[attr-defined]
    sys.modules.update({"torchvision": torchvision, "torchvision.ops": ops})
    try:
        yield
    finally:
        for name in [name for name in sys.modules if is_torchvision(name)]:
            del sys.modules[name]
        sys.modules.update(before)
