"""The checks that every head makes of what it is given."""

from __future__ import annotations

import torch
from torch import Tensor

from arcwise.errors import ConfigError


def check_embeddings(x_BD: Tensor, dim: int | None) -> None:
    """Refuse embeddings of the wrong shape or kind; a `dim` of None is any width."""
    _check_tensor("embeddings", x_BD)
    if x_BD.dim() != 2 or (dim is not None and x_BD.shape[1] != dim):
        width = dim if dim is not None else "width"
        raise ConfigError(f"embeddings must have the shape (batch, {width}); got {tuple(x_BD.shape)}.")
    if not x_BD.is_floating_point():
        raise ConfigError(f"embeddings must be floating point numbers; got {x_BD.dtype}.")


def check_labels(labels_B: Tensor, x_BD: Tensor, num_classes: int | None) -> Tensor:
    """Refuse labels of the wrong shape, kind or range; returns them as int64. A `num_classes` of None is any number of classes.

    On a GPU, and under torch.compile, the range is checked without waiting for the values: a label out of range stops the program
    with a plainer RuntimeError, on a GPU at a later step.
    """
    _check_tensor("labels", labels_B)
    if labels_B.shape != x_BD.shape[:1]:
        raise ConfigError(
            f"labels must have the shape ({x_BD.shape[0]},), one for each embedding; got {tuple(labels_B.shape)}."
        )
    if labels_B.is_floating_point() or labels_B.dtype == torch.bool:
        raise ConfigError(f"labels must be whole numbers; got {labels_B.dtype}.")
    if labels_B.device != x_BD.device:
        raise ConfigError(f"labels are on {labels_B.device} and embeddings on {x_BD.device}; move one to the other.")
    labels_B = labels_B.long()
    last = num_classes - 1 if num_classes is not None else torch.iinfo(torch.int64).max
    allowed = f"in 0 … {last}" if num_classes is not None else "0 or more"
    message = f"labels must be {allowed}, or −1 for a sample to ignore"
    if labels_B.device.type == "cpu" and not torch.compiler.is_compiling():
        if labels_B.numel() and not (int(labels_B.min()) >= -1 and int(labels_B.max()) <= last):
            raise ConfigError(f"{message}; got {int(labels_B.min())} … {int(labels_B.max())}.")
    else:
        torch._assert_async(((labels_B >= -1) & (labels_B <= last)).all(), message)
    return labels_B


def check_size(dim: int, num_classes: int) -> None:
    """Refuse a head that cannot tell anything apart."""
    for name, value in (("dim", dim), ("num_classes", num_classes)):
        check_whole(name, value)
    if dim < 2:
        raise ConfigError(f"dim must be at least 2, since an angle needs two dimensions; got {dim}.")
    if num_classes < 2:
        raise ConfigError(f"num_classes must be at least 2; got {num_classes}.")


def check_counts(counts_N: Tensor, num_classes: int) -> None:
    """Refuse class counts that are no tensor, of the wrong shape, below 0 or not finite."""
    _check_tensor("class_counts", counts_N)
    if counts_N.shape != (num_classes,):
        raise ConfigError(f"class_counts must have the shape ({num_classes},); got {tuple(counts_N.shape)}.")
    wrong_N = ~((counts_N >= 0) & (counts_N < torch.inf))
    if bool(wrong_N.any()):
        raise ConfigError(f"class_counts must be 0 or more and finite; got {float(counts_N[wrong_N][0]):g}.")


def check_whole(name: str, value: object) -> None:
    """Refuse what is no whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} must be a whole number; got {value!r}.")


def _check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise ConfigError(f"{name} must be a tensor; got {type(value).__name__}. Pass torch.as_tensor({name}).")
