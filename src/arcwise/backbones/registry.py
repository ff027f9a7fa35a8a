"""The one place that knows every backbone by name: what it takes, when it suits, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from arcwise.errors import ConfigError, did_you_mean

Factory = Callable[[tuple[int, ...], int], nn.Module]


@dataclass(frozen=True)
class Spec:
    """What a backbone takes: pictures of at least `min_size` pixels a side, or, with `min_size` None, rows of features."""

    name: str
    factory: Factory
    min_size: int | None


_SPECS: dict[str, Spec] = {}


def register(name: str, *, min_size: int | None) -> Callable[[Factory], Factory]:
    """Make `factory(shape, dim)` known under a name. A new backbone is one file that uses this."""

    def remember(factory: Factory) -> Factory:
        _SPECS[name] = Spec(name, factory, min_size)
        return factory

    return remember


def names() -> tuple[str, ...]:
    """All backbones by name."""
    return tuple(sorted(_SPECS))


def build(name: str, *, shape: tuple[int, ...], dim: int) -> nn.Module:
    """A new network, with random weights, that maps float (B, *shape) to float (B, dim).

    Args:
        name: one of `names()`.
        shape: of one sample: (channels, height, width) for pictures, (features,) for rows of features.
        dim: the width of the embedding, at least 2: in one dimension there is no angle to separate.
    """
    if name not in _SPECS:
        raise ConfigError(f"unknown backbone {name!r}. {did_you_mean(name, names())}")
    if dim < 2:
        raise ConfigError(f"an embedding needs at least 2 dimensions to have an angle; got dim={dim}. Use 2 or more.")
    spec = _SPECS[name]
    _check_shape(spec, shape)
    return spec.factory(shape, dim)


def default_for(shape: tuple[int, ...], num_train: int, device_type: str) -> str:
    """The backbone that suits this data on this device, by name.

    Features go to `mlp`. Single-channel pictures up to 32 pixels go to `vgg8`, anywhere. Other pictures go to `resnet18` where there is
    a GPU and enough data (2,000 pictures) to fill it, and to `small` otherwise.
    """
    if len(shape) == 1:
        return "mlp"
    channels, height, width = shape
    if channels == 1 and min(height, width) >= 8 and max(height, width) <= 32:
        return "vgg8"
    if device_type == "cuda" and num_train >= 2000 and min(height, width) >= 16:
        return "resnet18"
    return "small"


def _check_shape(spec: Spec, shape: tuple[int, ...]) -> None:
    given = "×".join(str(size) for size in shape)
    if len(shape) not in (1, 3) or min(shape) < 1:
        raise ConfigError(
            f"a sample must have the shape (features,) or (channels, height, width); got ({given}). Reshape the data."
        )
    if spec.min_size is None:
        if len(shape) != 1:
            raise ConfigError(
                f"{spec.name} takes rows of features; got pictures of {given}. Use {_picture_backbone(shape)}."
            )
        return
    if len(shape) == 1:
        raise ConfigError(f"{spec.name} takes pictures; got rows of {given} features. Use mlp.")
    if min(shape[1:]) < spec.min_size:
        raise ConfigError(
            f"{spec.name} needs pictures of at least {spec.min_size}×{spec.min_size} pixels; "
            f"got {shape[1]}×{shape[2]}. Use {_picture_backbone(shape)}."
        )


def _picture_backbone(shape: tuple[int, ...]) -> str:
    size = min(shape[1:])
    fitting = [spec.name for spec in _SPECS.values() if spec.min_size is not None and spec.min_size <= size]
    return " or ".join(sorted(fitting)) if fitting else "larger pictures: resize them to 8×8 or more"
