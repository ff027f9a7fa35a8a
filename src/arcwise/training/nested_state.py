"""Nested state (of optimisers, schedules, modules) as flat tensors and JSON, and back exactly.

JSON alone would turn int keys into strings and tuples into lists, so every container but the plain list is tagged:

    {"tensor": "optimizer.state.0.exp_avg"}        a tensor, by its name; with "strides" if it was not laid out row by row
    {"dict": [[0, ...], ["lr", ...]]}              a dict, keys in their order, ints still ints
    {"counter": [[30, 1], [60, 1]]}                a collections.Counter, which MultiStepLR keeps
    {"tuple": [...]}                               a tuple
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor

from arcwise.errors import CheckpointError


def flatten_state(prefix: str, value: Any) -> tuple[dict[str, Tensor], Any]:
    """Take a nested state apart.

    Args:
        prefix: what the tensors' names begin with, e.g. "optimizer"; may be empty.
        value: dicts with int or str keys, lists, tuples, tensors, numbers, None, bool and str, nested at will. Subclasses
            come back as their plain base (an OrderedDict as a dict, a named tuple as a tuple), except Counter.

    Returns:
        The tensors by name, not copied, and the rest as JSON values. Floats may be infinite or NaN.
    """
    tensors: dict[str, Tensor] = {}
    return tensors, _take_apart(prefix, value, tensors)


def unflatten_state(encoded: Any, tensors: dict[str, Tensor]) -> Any:
    """Undo `flatten_state`. Tensors come back as copies, on the device they are on, laid out in memory as they were."""
    if isinstance(encoded, list):
        return [unflatten_state(item, tensors) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    if "tensor" in encoded:
        return _restored(encoded, tensors)
    if "tuple" in encoded:
        return tuple(unflatten_state(item, tensors) for item in encoded["tuple"])
    tag = "counter" if "counter" in encoded else "dict"
    pairs = {key: unflatten_state(item, tensors) for key, item in encoded[tag]}
    return Counter(pairs) if tag == "counter" else pairs


def _take_apart(path: str, value: Any, tensors: dict[str, Tensor]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        return _named(path, value.detach(), tensors)
    if isinstance(value, dict):
        for key in value:
            if isinstance(key, bool) or not isinstance(key, int | str):
                raise TypeError(f"{path} has the key {key!r}; only int and str keys can be saved. Give it another key.")
        pairs = [[key, _take_apart(_joined(path, key), item, tensors)] for key, item in value.items()]
        return {"counter" if isinstance(value, Counter) else "dict": pairs}
    if isinstance(value, list | tuple):
        items = [_take_apart(_joined(path, index), item, tensors) for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    raise TypeError(
        f"{path} is of type {type(value).__name__}, which cannot be saved; "
        "a state may hold dicts, lists, tuples, tensors, numbers, None, bool and str."
    )


def _joined(path: str, key: int | str) -> str:
    return f"{path}.{key}" if path else str(key)


def _named(path: str, tensor: Tensor, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Enter the tensor under a name of its own: the keys "a.b" and "a" → "b" would otherwise meet."""
    name, count = path, 1
    while name in tensors:
        count += 1
        name = f"{path}#{count}"
    tensors[name] = tensor
    row_by_row = torch.empty(tensor.shape, device="meta").stride()
    if tensor.layout is torch.strided and tensor.stride() != row_by_row and _is_dense(tensor):
        return {"tensor": name, "strides": list(tensor.stride())}
    return {"tensor": name}


def _is_dense(tensor: Tensor) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in whatever order of dimensions."""
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    return tensor.permute(order).is_contiguous()


def _restored(encoded: dict[str, Any], tensors: dict[str, Tensor]) -> Tensor:
    name = encoded["tensor"]
    if name not in tensors:
        raise CheckpointError(
            f"the checkpoint lacks the tensor {name}. It was written for something else: start a new run."
        )
    saved = tensors[name]
    if "strides" not in encoded:
        return saved.clone()
    laid_out = torch.empty_strided(saved.shape, encoded["strides"], dtype=saved.dtype, device=saved.device)
    return laid_out.copy_(saved)
