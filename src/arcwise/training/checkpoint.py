"""Checkpoints: a safetensors file and a JSON manifest, whole or not there. Nothing is ever unpickled.

    checkpoints/step-00001200.safetensors     every tensor
    checkpoints/step-00001200.json            written last: step, size and SHA-256 of the tensors, the rest of the state, its own SHA-256

Each file is written beside its place, flushed to the disk and renamed. A tensor file that a manifest names is never written
again, so a kill or a full disk at any moment leaves the previous checkpoint as it was.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from arcwise.atomic_write import remove_partial_files, sync_folder, write_file
from arcwise.errors import CheckpointError, ConfigError
from arcwise.training.nested_state import flatten_state, unflatten_state

__all__ = ["Checkpoint", "clean_folder", "flatten_state", "latest_checkpoint", "save_checkpoint", "unflatten_state"]

FORMAT = 1
_MANIFEST_NAME = re.compile(r"step-(\d{8,})\.json")
_TENSORS_NAME = re.compile(r"step-(\d{8,})(-again)?\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """A moment of a training run.

    Args:
        step: how many optimiser steps have been taken.
        tensors: parameters, buffers, optimiser state, states of random generators; any dtype that safetensors knows.
        state: everything else, as JSON values (str keys, no tuples; see `flatten_state`). Floats may be infinite or NaN.
    """

    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]


class _DamagedError(Exception):
    """What is wrong with one checkpoint, in words that follow the file's name."""


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, keep: int = 2) -> Path:
    """Write a checkpoint and then delete all but the newest `keep`.

    Checkpoints of later steps are deleted too: training has gone back behind them, and what is saved now is the newest.

    Returns:
        The path of the manifest.

    Raises:
        CheckpointError: the disk is full, the folder cannot be written to, and the like. What was there before is intact.
    """
    if keep < 1:
        raise ConfigError(f"keep must be at least 1; got {keep}. To save no checkpoints, do not call save_checkpoint.")
    if checkpoint.step < 0:
        raise ConfigError(
            f"a checkpoint's step must be 0 or more; got {checkpoint.step}. Count optimiser steps from 0."
        )
    _require_json("state", checkpoint.state)
    tensor_bytes = tensors_to_bytes(_as_saved(checkpoint.tensors))
    manifest_path = folder / f"step-{checkpoint.step:08d}.json"
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True)
            sync_folder(folder.parent)
        clean_folder(folder)
        tensors_path = manifest_path.with_suffix(".safetensors")
        if tensors_path.exists():
            tensors_path = tensors_path.with_stem(f"{tensors_path.stem}-again")
        write_file(tensors_path, tensor_bytes)
        write_file(manifest_path, _manifest(checkpoint, tensors_path.name, tensor_bytes))
    except OSError as error:
        with contextlib.suppress(OSError):
            clean_folder(folder)
        raise CheckpointError(_why_not_saved(folder, checkpoint.step, len(tensor_bytes), error)) from error
    _delete_old(folder, checkpoint.step, keep)
    return manifest_path


def latest_checkpoint(folder: Path, *, warn: Callable[[str], None] = warnings.warn) -> Checkpoint | None:
    """Read the newest checkpoint that is whole, or None where none was ever finished.

    Args:
        folder: the folder given to `save_checkpoint`; it is only read.
        warn: is told about every damaged checkpoint that was passed over.

    Raises:
        CheckpointError: there are checkpoints and every one of them is damaged.
    """
    damages: list[str] = []
    for step, manifest_path in _manifests(folder):
        try:
            checkpoint = _read(step, manifest_path)
        except _DamagedError as damage:
            damages.append(str(damage))
            continue
        for damage_text in damages:
            warn(f"a checkpoint in {folder} is damaged: {damage_text}. Going on from the one of step {step}.")
        return checkpoint
    if damages:
        raise CheckpointError(
            f"no checkpoint in {folder} can be used: {'; '.join(damages)}. "
            "Put back a copy of these files if there is one, or train anew into another folder with --out."
        )
    return None


def clean_folder(folder: Path) -> None:
    """Delete what interrupted saves left: partial files, and tensor files that no manifest names.

    For the start of a run and each save; never for a folder that another process is training into.
    """
    remove_partial_files(folder)
    for tensors_path in folder.glob("step-*.safetensors"):
        match = _TENSORS_NAME.fullmatch(tensors_path.name)
        if match is None:
            continue
        manifest_path = folder / f"step-{match[1]}.json"
        if manifest_path.exists():
            try:
                if _content(manifest_path)["tensors"]["file"] == tensors_path.name:
                    continue
            except _DamagedError:
                continue
        with contextlib.suppress(OSError):
            tensors_path.unlink()


def _as_saved(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as safetensors takes them: on the CPU, row by row, each with memory of its own."""
    taken: set[int] = set()
    saved = {}
    for name, tensor in tensors.items():
        if tensor.layout is not torch.strided:
            raise TypeError(
                f"the tensor {name} is sparse ({tensor.layout}); only dense ones can be saved. Call to_dense()."
            )
        plain = tensor.detach().cpu().contiguous()
        if plain.untyped_storage().data_ptr() in taken:
            plain = plain.clone()
        taken.add(plain.untyped_storage().data_ptr())
        saved[name] = plain
    return saved


def _manifest(checkpoint: Checkpoint, tensors_name: str, tensor_bytes: bytes) -> bytes:
    content = {
        "format": FORMAT,
        "step": checkpoint.step,
        "tensors": {
            "file": tensors_name,
            "bytes": len(tensor_bytes),
            "sha256": hashlib.sha256(tensor_bytes).hexdigest(),
        },
        "state": checkpoint.state,
    }
    return _encoded(content)


def _encoded(content: Any) -> bytes:
    digest = hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
    return (json.dumps({"content": content, "sha256": digest}, indent=1) + "\n").encode()


def _content(manifest_path: Path) -> dict[str, Any]:
    """What the manifest says, once its own SHA-256 and every byte of it have been found right."""
    try:
        raw = manifest_path.read_bytes()
        parsed = json.loads(raw)
        whole = (
            isinstance(parsed, dict) and isinstance(parsed.get("content"), dict) and _encoded(parsed["content"]) == raw
        )
    except OSError as error:
        raise _DamagedError(f"{manifest_path.name} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise _DamagedError(f"{manifest_path.name} is cut off or overwritten (it is not JSON)") from error
    if not whole:
        raise _DamagedError(f"{manifest_path.name} has changed since it was written (its SHA-256 does not match)")
    content: dict[str, Any] = parsed["content"]
    if content.get("format") != FORMAT:
        raise _DamagedError(
            f"{manifest_path.name} is in format {content.get('format')}, while this version of arcwise reads format {FORMAT}"
        )
    return content


def _read(step: int, manifest_path: Path) -> Checkpoint:
    content = _content(manifest_path)
    if content["step"] != step:
        raise _DamagedError(f"{manifest_path.name} is the manifest of step {content['step']} under another name")
    expected = content["tensors"]
    tensors_path = manifest_path.with_name(expected["file"])
    try:
        raw = tensors_path.read_bytes()
    except FileNotFoundError as error:
        raise _DamagedError(f"{tensors_path.name} is missing") from error
    except OSError as error:
        raise _DamagedError(f"{tensors_path.name} cannot be read ({error.strerror})") from error
    if len(raw) != expected["bytes"]:
        raise _DamagedError(f"{tensors_path.name} has {len(raw)} bytes instead of {expected['bytes']}")
    if hashlib.sha256(raw).hexdigest() != expected["sha256"]:
        raise _DamagedError(f"{tensors_path.name} has changed since it was written (its SHA-256 does not match)")
    return Checkpoint(step=step, tensors=tensors_from_bytes(raw), state=content["state"])


def _manifests(folder: Path) -> list[tuple[int, Path]]:
    """The manifests in a folder by their steps, newest first."""
    matches = ((_MANIFEST_NAME.fullmatch(path.name), path) for path in folder.glob("step-*.json"))
    return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)


def _delete_old(folder: Path, newest: int, keep: int) -> None:
    """Delete every checkpoint but the one just saved and the `keep` − 1 before it that look whole.

    Manifests go first, so that at no moment one of them names a tensor file that is gone.
    """
    kept = 0
    with contextlib.suppress(OSError):
        for step, manifest_path in _manifests(folder):
            if step <= newest and kept < keep and _looks_whole(manifest_path):
                kept += 1
            else:
                manifest_path.unlink()
        sync_folder(folder)
        clean_folder(folder)


def _looks_whole(manifest_path: Path) -> bool:
    """The quick check: the manifest is right and its tensor file has the size that it should."""
    try:
        expected = _content(manifest_path)["tensors"]
        return bool(manifest_path.with_name(expected["file"]).stat().st_size == expected["bytes"])
    except (_DamagedError, OSError):
        return False


def _why_not_saved(folder: Path, step: int, size: int, error: OSError) -> str:
    reasons = {
        errno.ENOSPC: ("the disk is full", f"Free {_megabytes(size)} or more"),
        errno.EDQUOT: ("the disk quota is used up", f"Free {_megabytes(size)} or more"),
        errno.EFBIG: ("the file would be larger than is allowed here", "Raise the limit with ulimit -f"),
        errno.EROFS: ("the file system is read-only", "Choose another folder with --out"),
        errno.EACCES: ("the folder may not be written to", "Change its permissions or choose another with --out"),
        errno.EPERM: ("the folder may not be written to", "Change its permissions or choose another with --out"),
        errno.ENOTDIR: ("a part of this path is a file", "Choose another folder with --out"),
        errno.EEXIST: ("this path is a file", "Choose another folder with --out"),
    }
    what, do = reasons.get(error.errno or 0, (error.strerror or str(error), "Check the disk"))
    return (
        f"the checkpoint of step {step} could not be saved in {folder}: {what}. "
        f"{do}, then go on with --resume; earlier checkpoints are intact."
    )


def _megabytes(size: int) -> str:
    return f"{max(size / 1e6, 0.1):.1f} MB"


def _require_json(path: str, value: Any) -> None:
    """JSON would quietly turn int keys into strings and tuples into lists; say so instead."""
    if value is None or isinstance(value, bool | int | float | str):
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            _require_json(f"{path}[{index}]", item)
        return
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        for key, item in value.items():
            _require_json(f"{path}[{key!r}]", item)
        return
    kind = "a dict with keys that are not strings" if isinstance(value, dict) else f"of type {type(value).__name__}"
    raise TypeError(f"{path} of the checkpoint is {kind}, which JSON cannot keep. Pass it through flatten_state first.")
