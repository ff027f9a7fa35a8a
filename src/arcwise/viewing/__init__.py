"""Pictures of a run: static figures and animations, drawn from nothing but the run folder.

Everything here needs matplotlib (the extra "viz") and imports it only when something is drawn.
"""

from __future__ import annotations

from arcwise.viewing.animation import animate_comparison, animate_run
from arcwise.viewing.figures import draw_comparison, draw_run
from arcwise.viewing.label_noise import draw_label_noise

__all__ = ["animate_comparison", "animate_run", "draw_comparison", "draw_label_noise", "draw_run"]
