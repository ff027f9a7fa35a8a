"""How a figure says that it cannot be drawn from what there is."""

from __future__ import annotations


class LeftOut(Exception):  # noqa: N818 - not an error: the reason why a figure is not among the others
    """Carries the reason, which is reported to the user; the other figures are drawn all the same."""
