"""The curve of a term: its value as one sample turns from its own class towards another one.

Two classes in two dimensions, their centres and samples at a right angle. A term that does not look at samples is drawn over the angle
between the two centres instead.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from arcwise import losses
from arcwise.viewing.palette import loss_colour, loss_dash
from arcwise.viewing.style import degree_axis, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_ANGLES = 181


def term_picture(name: str) -> Figure:
    """The term with its defaults, and with the ends of the range in which its first parameter is searched."""
    variants = _variants(name)
    angles = torch.linspace(0, math.pi / 2, NUM_ANGLES, dtype=torch.float64)
    curves = {words: _values(name, arguments, angles, turn_centre=False) for words, arguments in variants.items()}
    about_centres = all(float(values.max() - values.min()) < 1e-9 for values in curves.values())
    if about_centres:
        angles = 2 * angles
        curves = {words: _values(name, arguments, angles, turn_centre=True) for words, arguments in variants.items()}
    legend = list(curves) if len(curves) > 1 else []
    figure = new_figure(6.4, 4.0, title=losses.term_class(name).__name__, legend=legend)
    axes = figure.add_subplot()
    handles = []
    for i, values in enumerate(curves.values()):
        degrees = torch.rad2deg(angles).numpy()
        handles += axes.plot(degrees, values.numpy(), color=loss_colour(i), linestyle=loss_dash(i), linewidth=2.2)
    degree_axis(axes, 180 if about_centres else 90)
    axes.set_ylabel("the term, before its weight")
    axes.set_xlabel(
        "angle between two centres" if about_centres else "one sample on its way from its own class to another"
    )
    if legend:
        legend_above(figure, handles, legend)
    return figure


def _variants(name: str) -> dict[str, dict[str, Any]]:
    cls, defaults = losses.term_class(name), losses.defaults(name)
    if not cls.search:
        return {f"{cls.__name__}()": {}}
    parameter, (low, high) = next(iter(cls.search.items()))
    values = sorted({low, defaults[parameter], high})
    return {f"{parameter} = {value:g}": {parameter: value} for value in values}


def _values(name: str, arguments: dict[str, Any], angles: Tensor, *, turn_centre: bool) -> Tensor:
    labels = torch.tensor([0, 0, 1, 1])
    values = []
    for theta in angles.tolist():
        centres = _directions(0.0, theta if turn_centre else math.pi / 2)
        samples = _directions(0.0 if turn_centre else theta, 0.0, math.pi / 2, math.pi / 2)
        term = losses.build(name, 2, 2, arguments).double().eval()
        with torch.no_grad():
            for own in [*term.parameters(), *term.buffers()]:
                if own.shape == centres.shape:
                    own.copy_(centres)
            values.append(float(term(samples, labels, centres)))
    return torch.tensor(values, dtype=torch.float64)


def _directions(*angles: float) -> Tensor:
    return torch.tensor([[math.cos(angle), math.sin(angle)] for angle in angles], dtype=torch.float64)
