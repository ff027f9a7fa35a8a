"""Random numbers that depend on nothing but what they are for."""

from __future__ import annotations

import hashlib

import torch


def generator_for(purpose: str, *numbers: int) -> torch.Generator:
    """A CPU generator whose state is a pure function of the arguments; neighbouring seeds give unrelated streams."""
    text = ":".join([purpose, *(str(int(number)) for number in numbers)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
