"""Where non-finite values began: runs a batch again and names the first input, parameter or layer that holds one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

_ROWS_NAMED = 5


def first_non_finite(
    module: nn.Module,
    inputs: Tensor,
    *,
    head: nn.Module | None = None,
    labels: Tensor | None = None,
    prefix: str = "head.",
) -> str:
    """Run the batch again and say in plain words where values first became NaN or infinite.

    Neither parameters, gradients, running statistics nor the random generators are changed. Call it under the same autocast as
    the step that went wrong, before the optimiser's step.

    Args:
        module: the backbone, in the mode (train or eval) in which it was used.
        inputs: the batch that it was given.
        head: the loss head; it is called with the embeddings and `labels`, and the gradients are looked at as well.
        labels: (B,) class numbers; needed with `head`.
        prefix: what the names of things in the head begin with.

    Returns:
        Words that fit "it began in …": "the pictures themselves (rows 3, 17)", "the parameter blocks.0.conv.weight",
        "the output of blocks.2.norm".
    """
    if _is_bad(inputs):
        return f"{'the pictures' if inputs.dim() == 4 else 'the inputs'} themselves ({_rows(inputs)})"
    parts = [("", getattr(module, "_orig_mod", module))]
    if head is not None:
        parts.append((prefix, head))
    for prefix, part in parts:
        for name, parameter in part.named_parameters():
            if _is_bad(parameter):
                return f"the parameter {prefix}{name}"
    with _left_as_they_were([part for _, part in parts]), torch.enable_grad():
        return _in_a_pass(parts, inputs, labels)


def _in_a_pass(parts: list[tuple[str, nn.Module]], inputs: Tensor, labels: Tensor | None) -> str:
    found: list[str] = []
    handles: list[RemovableHandle] = []
    for prefix, part in parts:
        for name, layer in part.named_modules():
            title = f"{prefix}{name}".rstrip(".") or "the network"
            handles.append(layer.register_forward_pre_hook(_looks_at_input(title, found)))
            handles.append(layer.register_forward_hook(_looks_at_output(title, found)))
    try:
        embeddings = parts[0][1](inputs)
        if found or len(parts) == 1 or labels is None:
            return found[0] if found else _NOT_AGAIN
        loss = parts[1][1](embeddings, labels)
    finally:
        for handle in handles:
            handle.remove()
    if found:
        return found[0]
    loss = loss[0] if isinstance(loss, tuple) else loss
    return _in_the_gradients(parts, loss)


def _in_the_gradients(parts: list[tuple[str, nn.Module]], loss: Tensor) -> str:
    named = [(f"{prefix}{name}", p) for prefix, part in parts for name, p in part.named_parameters() if p.requires_grad]
    if not named or not loss.requires_grad:
        return _NOT_AGAIN
    gradients = torch.autograd.grad(loss, [parameter for _, parameter in named], allow_unused=True)
    # The backward pass runs from the last layer to the first.
    for (name, _), gradient in reversed(list(zip(named, gradients, strict=True))):
        if gradient is not None and _is_bad(gradient):
            return f"the gradient of {name}, while the loss is still finite"
    return _NOT_AGAIN


_NOT_AGAIN = "a place that a second run of the same batch does not show (all its values are finite)"


def _looks_at_input(title: str, found: list[str]) -> Callable[[nn.Module, Any], None]:
    def look(_layer: nn.Module, arguments: Any) -> None:
        if not found and any(_is_bad(tensor) for tensor in _tensors(arguments)):
            found.append(f"the input of {title}")

    return look


def _looks_at_output(title: str, found: list[str]) -> Callable[[nn.Module, Any, Any], None]:
    def look(layer: nn.Module, _arguments: Any, output: Any) -> None:
        if found or not any(_is_bad(tensor) for tensor in _tensors(output)):
            return
        statistics = [name for name, buffer in layer.named_buffers(recurse=False) if _is_bad(buffer)]
        if statistics and not layer.training:
            found.append(f"the running statistics {title}.{statistics[0]}")
        else:
            found.append(f"the output of {title}")

    return look


@contextmanager
def _left_as_they_were(parts: list[nn.Module]) -> Iterator[None]:
    """Put buffers and random generators back afterwards: a pass in train mode moves both."""
    buffers = [(buffer, buffer.clone()) for part in parts for buffer in part.buffers()]
    extra = [(layer, layer.get_extra_state()) for part in parts for layer in part.modules() if _has_extra_state(layer)]
    devices = {tensor.device for part in parts for tensor in part.parameters() if tensor.device.type == "cuda"}
    with torch.random.fork_rng(devices=[device.index or 0 for device in devices]):
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            for layer, state in extra:
                layer.set_extra_state(state)


def _has_extra_state(layer: nn.Module) -> bool:
    return type(layer).get_extra_state is not nn.Module.get_extra_state


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _is_bad(tensor: Tensor) -> bool:
    return (tensor.is_floating_point() or tensor.is_complex()) and not bool(torch.isfinite(tensor).all())


def _rows(inputs: Tensor) -> str:
    bad_B = ~torch.isfinite(inputs).reshape(len(inputs), -1).all(dim=1)
    rows: list[int] = bad_B.nonzero().flatten().tolist()
    named = ", ".join(map(str, rows[:_ROWS_NAMED]))
    more = f" and {len(rows) - _ROWS_NAMED} more" if len(rows) > _ROWS_NAMED else ""
    return f"row{'s' if len(rows) > 1 else ''} {named}{more} of the batch"
