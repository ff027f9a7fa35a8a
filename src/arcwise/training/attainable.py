"""What the settings allow: the best that a perfect embedding could do with N classes, D dimensions, a scale and a margin.

An embedding on its own centre, with k other centres at the angle φ, gets the probability P = 1/(1 + k·exp(−s(cos m − cos φ))),
and its loss is −ln P. No training gets past that.
"""

from __future__ import annotations

import math

from arcwise.margins import nearest_centre_angle
from arcwise.training.trouble import Trouble

LEAST_POSTERIOR = 0.5
WANTED_POSTERIOR = 0.99
# The field's habits (s = 64 for ten thousand faces, s = 30 for ten classes) stay below this many times the scale that is needed.
LARGEST_SCALE_RATIO = 6.0


def loss_without_knowledge(num_classes: int, scale: float | None, margin: float) -> float:
    """The loss of embeddings that stand at a right angle to every centre, where ψ = −sin m: about what training begins with."""
    lowered = (scale or 0.0) * math.sin(margin)
    return lowered + math.log(max(num_classes - 1, 0) + math.exp(-lowered))


def troubles_of_settings(num_classes: int, dim: int, scale: float | None, margin: float) -> tuple[Trouble, ...]:
    """What can be said before the first step.

    Args:
        num_classes: N.
        dim: D.
        scale: s, or None for a plain softmax, whose logits have no bound.
        margin: in radians.

    Returns:
        None or one of margin-too-large, scale-too-small and scale-too-large.
    """
    s, N, D = scale, num_classes, dim
    if s is None or N < 2:
        return ()
    phi, k = nearest_centre_angle(N, D)
    room = math.cos(margin) - math.cos(phi)
    if room <= 0:
        return (
            Trouble(
                "margin-too-large",
                f"the margin of {margin:.3g} ({math.degrees(margin):.1f}°) cannot be met: {N} classes in {D} dimensions stand at "
                f"best {math.degrees(phi):.1f}° apart. Use --margin {_rounded_down(phi / 2):g}, or more room with a larger --dim.",
            ),
        )
    others = k * math.exp(-min(s * room, 700.0))
    posterior = 1 / (1 + others)
    needed = max(1, math.ceil(math.log(k * WANTED_POSTERIOR / (1 - WANTED_POSTERIOR)) / room))
    if posterior < LEAST_POSTERIOR:
        return (
            Trouble(
                "scale-too-small",
                f"the scale of {s:g} is too small for {N} classes in {D} dimensions: even a perfect embedding would get only "
                f"{100 * posterior:.2g} % of the probability, and the loss, which begins near "
                f"{loss_without_knowledge(N, s, margin):.2f}, cannot go below {math.log1p(others):.2f}. Use --scale {needed}.",
            ),
        )
    if s > LARGEST_SCALE_RATIO * needed:
        return (
            Trouble(
                "scale-too-large",
                f"the scale of {s:g} is large for {N} classes in {D} dimensions, where {needed} is enough for "
                f"{100 * WANTED_POSTERIOR:.0f} % of the probability: most samples will teach almost nothing and wrong ones a lot. "
                f"Use --scale {needed}.",
            ),
        )
    return ()


def _rounded_down(angle: float) -> float:
    """To two digits that count, so that the advice is short and still fits."""
    digits = 1 - math.floor(math.log10(angle))
    return float(math.floor(angle * 10**digits) / 10**digits)
