"""The curve of a margin: what takes the place of the own class's cosine, and of other classes' where it reshapes them.

A margin that asks for more than the angle is drawn for several answers: short and long embeddings, rare and frequent classes, many
draws, the beginning of training and later. Which it asks for is found out by trying.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from arcwise.margins import ArcFace, Facts, Margin
from arcwise.margins.base import Samples, State
from arcwise.viewing.palette import MUTED, loss_colour, loss_dash
from arcwise.viewing.style import degree_axis, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COUNTS = torch.logspace(1, 4, 1000)  # how many samples the classes have, from ten to ten thousand
FACTS = Facts(num_classes=len(COUNTS), dim=512, scale=30.0, class_counts=COUNTS)
LENGTHS = (12.0, 60.0, 108.0)
LENGTH_MEAN, LENGTH_DEVIATION = 60.0, 16.0
CLASSES = {f"a class of {int(COUNTS[j]):,} samples": j for j in (0, 500, 999)}
ORDINARY = CLASSES[list(CLASSES)[1]]
LATER_ANGLE = math.radians(35)  # where samples have come to, later in training
SAMPLE_ANGLE = math.radians(50)  # of the sample whose other classes are shown
DRAWS = 400
ANGLES = torch.linspace(0, math.pi, 361, dtype=torch.float64)


@dataclass(frozen=True)
class Curve:
    """One line, or with `low` and `high` a band around it."""

    label: str
    values: Tensor
    low: Tensor | None = None
    high: Tensor | None = None


COSINE = Curve("norm-softmax: cos θ", ANGLES.cos())


def margin_picture(margin: Margin) -> Figure:
    """ψ over [0°, 180°] beside cos θ, and beside it the other classes where they are reshaped."""
    begin = _beginning(margin)
    later = _later(margin, begin)
    heading = heading_of(margin)
    if margin.owns_scale:
        curves = [
            Curve(f"{words}: s = {float(state['scale']):.1f}", float(state["scale"]) * _psi(margin, ANGLES, state))
            for words, state in {"at first": begin, "with samples at 35°": later}.items()
        ]
        return _picture(f"{heading}, {FACTS.num_classes:,} classes", "s·ψ(θ)", curves)
    note = f"The lengths in training were {LENGTH_MEAN:g} ± {LENGTH_DEVIATION:g}." if margin.reads_norm else ""
    own = _targets(margin, later)
    others = _negatives(margin, {"at first": begin, "later": later}) if margin.reshapes_negatives else []
    shows_itself = len(own) == 1 and torch.equal(own[0].values, COSINE.values)
    return _picture(heading, "ψ(θ), in place of cos θ", own, [] if shows_itself else [COSINE], others, note)


def softmax_picture() -> Figure:
    """The plain logit, for several lengths."""
    curves = [Curve(f"‖w‖·‖x‖ = {length}", length * ANGLES.cos()) for length in (4, 8, 16)]
    return _picture("SoftmaxHead, without the bias", "w·x", curves)


def sub_centre_picture() -> Figure:
    """ArcFace with one centre, and with a second one 120° away."""
    second = (ANGLES - math.radians(120)).cos()
    margin = ArcFace()
    curves = [
        Curve("a second centre at 120°", margin.target(torch.maximum(ANGLES.cos(), second))),
        Curve("one centre", margin.target(ANGLES.cos())),
    ]
    note = "θ is measured from the first centre; what counts is the nearer one."
    return _picture(f"Sub-centres with {heading_of(margin)}", "in place of cos θ", curves, [COSINE], note=note)


def heading_of(margin: Margin) -> str:
    """Its name and its strengths."""
    numbers = ", ".join(f"{key} = {value:g}" for key, value in margin.parameters().items() if isinstance(value, float))
    return f"{type(margin).__name__} ({numbers})" if numbers else type(margin).__name__


def _beginning(margin: Margin) -> dict[str, Tensor]:
    return {**margin.initial_state(FACTS), **margin.initial_parameters(FACTS)}


def _later(margin: Margin, state: State) -> dict[str, Tensor]:
    """The state after a thousand batches of samples that have come near."""
    generator = torch.Generator().manual_seed(0)
    state = dict(state)
    for _ in range(1000):
        norm_B = LENGTH_MEAN + LENGTH_DEVIATION * torch.randn(256, generator=generator)
        samples = _samples(torch.full((256,), math.cos(LATER_ANGLE)), state, norm_B)
        with torch.no_grad():
            state |= margin.observe(samples)
    return state | ({"counts": COUNTS} if "counts" in state else {})


def _samples(
    cos_B: Tensor, state: State, norm_B: Tensor | None = None, label: int = ORDINARY, training: bool = False
) -> Samples:
    return Samples(
        cos_B=cos_B,
        norm_B=torch.full_like(cos_B, LENGTH_MEAN) if norm_B is None else norm_B.to(cos_B.dtype),
        labels_B=torch.full(cos_B.shape, label),
        state=state,
        training=training,
        log_negatives=lambda scale: torch.full_like(cos_B, math.log(FACTS.num_classes - 1)),
    )


def _psi(margin: Margin, angles: Tensor, state: State, **of_the_sample: Any) -> Tensor:
    with torch.no_grad():
        return margin.psi(_samples(angles.cos(), state, **of_the_sample)).double()


def _targets(margin: Margin, state: State) -> list[Curve]:
    """One curve, or several where ψ depends on more than the angle."""
    own = _psi(margin, ANGLES, state)
    if margin.reads_norm:
        return [
            Curve(f"‖x‖ = {length:g}", _psi(margin, ANGLES, state, norm_B=torch.full_like(ANGLES, length)))
            for length in LENGTHS
        ]
    by_class = [Curve(words, _psi(margin, ANGLES, state, label=j)) for words, j in CLASSES.items()]
    if any(not torch.equal(curve.values, own) for curve in by_class):
        return by_class
    torch.manual_seed(0)
    drawn = _psi(margin, ANGLES.repeat(DRAWS), state, training=True).view(DRAWS, -1)
    if (drawn.std(dim=0) > 1e-6).any():
        low, high = drawn.quantile(torch.tensor([0.05, 0.95], dtype=torch.float64), dim=0)
        return [Curve("the mean margin; the band holds nine draws of ten", own, low, high)]
    return [Curve(type(margin).__name__, own)]


def _negatives(margin: Margin, states: dict[str, State]) -> list[Curve]:
    """What becomes of other classes' cosines for a sample at 50°, at first and later if that differs."""
    psi_11 = _psi(margin, torch.tensor([SAMPLE_ANGLE], dtype=torch.float64), states["later"]).view(1, 1)
    curves = [
        Curve(f"other classes, {words}", margin.negatives(COSINE.values.unsqueeze(0), psi_11, state)[0][0].double())
        for words, state in states.items()
    ]
    same = torch.equal(curves[0].values, curves[1].values)
    return [Curve("other classes", curves[0].values)] if same else curves


def _picture(
    heading: str,
    value: str,
    own: Sequence[Curve],
    plain: Sequence[Curve] = (),
    others: Sequence[Curve] = (),
    note: str = "",
) -> Figure:
    labels = [curve.label for curve in (*own, *others, *plain)]
    figure = new_figure(8.6 if others else 6.4, 4.1, title=heading, subtitle=note, legend=labels)
    panels = figure.subplots(1, 2) if others else [figure.add_subplot()]
    handles: list[Artist] = []
    for curve in own:
        handles.append(_draw(panels[0], curve, loss_colour(len(handles)), loss_dash(len(handles)), 2.2))
    for curve in others:
        handles.append(_draw(panels[1], curve, loss_colour(len(handles)), loss_dash(len(handles)), 2.2))
    for axes in panels:
        dotted = [_draw(axes, curve, MUTED, (0, (1, 1.6)), 1.4) for curve in plain]
        axes.axhline(0, color=MUTED, linewidth=0.6, zorder=1)
        degree_axis(axes)
    panels[0].set_ylabel(value)
    panels[0].set_xlabel("angle θ to the centre of the own class")
    if others:
        panels[1].set_ylabel("in place of cos θ")
        panels[1].set_xlabel("angle θ to another class, own one at 50°")
    legend_above(figure, [*handles, *dotted], labels)
    return figure


def _draw(axes: Axes, curve: Curve, colour: str, dash: Any, width: float) -> Artist:
    degrees = torch.rad2deg(ANGLES).numpy()
    if curve.low is not None and curve.high is not None:
        axes.fill_between(degrees, curve.low.numpy(), curve.high.numpy(), color=colour, alpha=0.18, linewidth=0)
    (line,) = axes.plot(degrees, curve.values.numpy(), color=colour, linestyle=dash, linewidth=width, zorder=3)
    return line
