"""Class centres: the modules that users put in their model. A head has a margin and picks an engine."""

from __future__ import annotations

from arcwise.heads.head import Head
from arcwise.heads.margin import MarginHead
from arcwise.heads.softmax import SoftmaxHead

__all__ = ["Head", "MarginHead", "SoftmaxHead"]
