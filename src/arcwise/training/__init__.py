"""Config, loop, checkpoints and health monitor. Writes a run folder, from which every later stage reads."""

from __future__ import annotations

from arcwise.training.comparison import Comparison, compare
from arcwise.training.config import Config
from arcwise.training.run_folder import RunFolder
from arcwise.training.session import Run, load_run, train

__all__ = ["Comparison", "Config", "Run", "RunFolder", "compare", "load_run", "train"]
