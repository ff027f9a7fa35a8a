"""How normalised-linear + margin + cross-entropy is computed. Start reading at `reference`."""

from __future__ import annotations

from arcwise.engines.stats import Stats

__all__ = ["Stats"]
