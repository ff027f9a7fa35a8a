"""The scale s that suits a number of classes N, a width D and a margin, and why.

An embedding that lies on its centre, with k other centres at the angle φ, gets P = 1/(1 + k·exp(−s(ψ(0) − cos φ))). Asking for
a P gives s = ln(k·P/(1 − P)) / (ψ(0) − cos φ). The angle φ is how far apart N centres can stand in D dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from arcwise.errors import ConfigError
from arcwise.margins.base import Facts, Margin

POSTERIOR = 0.99
# A margin that takes more than this share of the angle between centres leaves no room for the embeddings of a class.
LARGEST_SHARE = 0.8
REDUCED_SHARE = 0.5

# The best known nearest angle between N points on the ordinary sphere, in degrees (Tammes' problem), for N = 5 … 20.
_TAMMES = (90.0, 90.0, 77.87, 74.86, 70.53, 66.15, 63.43, 63.43, 57.14, 55.67, 53.66, 52.24, 51.09, 49.56, 47.69, 47.43)


@dataclass(frozen=True)
class ScaleChoice:
    """A scale, the margin it goes with (reduced where the asked-for one cannot be met) and the reasoning in one or two sentences."""

    scale: float
    margin: Margin
    reasoning: str


def nearest_centre_angle(num_classes: int, dim: int) -> tuple[float, int]:
    """How far apart N centres can stand in D dimensions: the nearest angle φ in radians, and how many neighbours k stand at it.

    Exact for the simplex (N ≤ D + 1), the ring (D = 2) and the cross-polytope (N ≤ 2D); best known values on the ordinary sphere up
    to N = 20, Fejes Tóth's bound beyond; in higher dimensions half-way between what random centres reach and 90°, an estimate.
    """
    if num_classes < 2:
        raise ConfigError(f"there must be at least 2 classes; got {num_classes}.")
    if dim < 2:
        raise ConfigError(f"an angle needs at least 2 dimensions; got {dim}.")
    n, d = num_classes, dim
    if n <= d + 1:
        return math.acos(-1 / (n - 1)), n - 1
    if d == 2:
        return 2 * math.pi / n, 2
    if d == 3:
        return _angle_on_the_sphere(n), min(n - 1, 4)
    if n <= 2 * d:
        return math.pi / 2, n - 2
    random = _angle_whose_cap_holds(1 / n, d)
    estimate = (random + min(2 * random, math.pi / 2)) / 2
    return max(estimate, _angle_on_the_sphere(n)), n - 1


def choose_scale(num_classes: int, dim: int, margin: Margin, posterior: float = POSTERIOR) -> ScaleChoice:
    """The scale at which an embedding on its own centre reaches `posterior`, with a smaller margin where the asked-for one cannot be met.

    Returns:
        The scale, the margin and the reasoning in plain words.
    """
    if not 0.5 < posterior < 1:
        raise ConfigError(f"posterior must be between 0.5 and 1, a probability to reach; got {posterior:g}.")
    facts = Facts(num_classes, dim)
    if margin.owns_scale:
        scale = float(margin.initial_state(facts)["scale"])
        return ScaleChoice(scale, margin, f"scale {scale:.1f} to begin with: {margin.name} chooses it itself.")
    phi, k = nearest_centre_angle(num_classes, dim)
    note = ""
    if margin.target_at_zero() < margin.negative_at(math.cos(LARGEST_SHARE * phi), facts):
        fraction = _fraction_that_leaves_room(margin, math.cos(REDUCED_SHARE * phi), facts)
        note = (
            f" The margin was reduced to {100 * fraction:.0f} % of {margin}: in {dim} dimensions the nearest of {num_classes} centres"
            f" stand at best {math.degrees(phi):.1f}° apart, which leaves no room for it."
        )
        margin = margin.at(fraction)
    room = margin.target_at_zero() - margin.negative_at(math.cos(phi), facts)
    odds = math.log(posterior / (1 - posterior))
    # A choice among classes; or a yes for the own class and k times no, on either side of one threshold.
    needed = odds + math.log(k) if margin.reduction == "softmax" else 2 * odds + math.log(k)
    scale = needed / room
    reasoning = (
        f"scale {scale:.1f}: {num_classes} centres in {dim} dimensions can stand {math.degrees(phi):.1f}° apart, with {k} nearest neighbour"
        f"{'s' if k > 1 else ''}; an embedding on its own centre then gets the probability {posterior:g} under the margin.{note}"
    )
    return ScaleChoice(scale, margin, reasoning)


def _angle_on_the_sphere(n: int) -> float:
    if n - 5 < len(_TAMMES):
        return math.radians(_TAMMES[n - 5])
    omega = n / (n - 2) * math.pi / 6
    return min(math.acos((1 / math.tan(omega) ** 2 - 1) / 2), math.radians(_TAMMES[-1]))


def _angle_whose_cap_holds(share: float, dim: int) -> float:
    """The angle of the spherical cap that holds a `share` ≤ 1/2 of the sphere in `dim` dimensions.

    The cap's share is ∫₀^φ sin^(D−2) over ∫₀^π sin^(D−2); summed on a grid that is fine where the integrand lives.
    """
    steps = 20_000
    width = math.pi / 2 / steps
    weights = [math.sin((i + 0.5) * width) ** (dim - 2) for i in range(steps)]
    wanted = 2 * share * sum(weights)
    held = 0.0
    for i, weight in enumerate(weights):
        held += weight
        if held >= wanted:
            return (i + 1) * width
    return math.pi / 2


def _fraction_that_leaves_room(margin: Margin, nearest: float, facts: Facts) -> float:
    """The largest share of a margin under which an embedding on its centre still scores as high as a centre at the cosine `nearest`."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        part = margin.at(middle)
        low, high = (middle, high) if part.target_at_zero() > part.negative_at(nearest, facts) else (low, middle)
    return low
