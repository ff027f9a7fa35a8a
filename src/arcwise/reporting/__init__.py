"""A report as PDF, and a bundle to hand in, from run folders and comparison folders. Everything is read from disk.

from arcwise.reporting import write_report
write_report([Path("runs/mnist-compare")])     # runs/mnist-compare/report.pdf
"""

from __future__ import annotations

from arcwise.reporting.bundle import write_bundle
from arcwise.reporting.writing import write_report

__all__ = ["write_bundle", "write_report"]
