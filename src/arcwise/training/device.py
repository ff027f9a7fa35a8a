"""Which device to train on, and in which precision it is fastest."""

from __future__ import annotations

import platform

import torch

from arcwise.errors import ConfigError


def choose_device(asked: str = "auto") -> torch.device:
    """The device that was asked for, or a GPU where there is one."""
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
    except RuntimeError:
        raise ConfigError(f"there is no device {asked!r}. Use cpu, cuda, cuda:0 … or auto.") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"the device {asked!r} was asked for, but torch sees no NVIDIA GPU here. Use --device cpu.")
    if device.type == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        raise ConfigError(
            f"the device {asked!r} was asked for, but there are {torch.cuda.device_count()} GPUs, counted from 0."
        )
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"the device {asked!r} is not supported. Use cpu, cuda or auto.")
    return device


def gains_from_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 natively, so that autocast makes training faster and not slower."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device)[0] >= 8
    return any(
        probe()
        for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        if (probe := getattr(torch.cpu, name, None))
    )


def describe(device: torch.device) -> str:
    """The device in words, for reports: "NVIDIA H200" or "x86_64 CPU, 2 threads"."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{platform.machine()} CPU, {threads} thread{'s' if threads > 1 else ''}"
