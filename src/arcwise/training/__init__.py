"""Config, loop, checkpoints and health monitor. Writes a run folder, from which every later stage reads."""

from __future__ import annotations

from arcwise.training.comparison import Comparison, compare
from arcwise.training.config import Config
from arcwise.training.run_folder import RunFolder
from arcwise.training.session import Run, load_run, train
from arcwise.training.tuning import Tuning, tune

__all__ = ["Comparison", "Config", "Run", "RunFolder", "Tuning", "compare", "load_run", "train", "tune"]
