"""What a margin does to the true class's logit, drawn from the margin objects themselves."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arcwise.errors import ConfigError
from arcwise.loss_titles import heading_of, title_of
from arcwise.progress import Reporter
from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.palette import INK, MUTED, loss_colour, loss_dash
from arcwise.viewing.run_folder import Run
from arcwise.viewing.style import SMALL_POINTS, degree_axis, legend_above, legend_beside, new_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from arcwise.margins import Margin

NUM_ANGLES = 721
NO_MARGIN = "norm-softmax"  # cos θ itself, where the others start from: a plain dark line
PARAMETER_LETTERS = ("m", "m1", "m2", "m3")


def margins_figure(run: Run | None, reporter: Reporter) -> Figure:
    """ψ(θ) of every registered margin with its default arguments; the run's own kind is drawn bold."""
    from arcwise import margins

    curves = []
    for name in margins.names():
        try:
            margin = margins.build(name)
            curves.append((name, margin, *curve_and_slope(margin)[:2]))
        except (TypeError, ConfigError, ValueError) as error:
            reporter.say(
                f"The margin {name} is not among the curves: it is more than a function of the angle ({error})."
            )
    if not curves:
        raise LeftOut("no margin could be drawn")
    labels = [f"{heading_of(name)}{formula_suffix(margin)}" for name, margin, *_ in curves]
    own = run.loss if run is not None else ""
    figure = new_figure(
        9.6,
        5.4,
        title="What each margin puts in place of cos θ: ψ(θ)",
        subtitle="Each falls over the whole range, so turning towards the own centre always pays. "
        f"The lower the curve, the smaller the angle that is needed for the same logit. {_coinciding(curves)}",
    )
    axes = figure.add_subplot()
    handles: list[Artist] = []
    coloured = [name for name, *_ in curves if name != NO_MARGIN]
    for name, _, degrees, psi in curves:
        style: dict[str, Any] = {"color": INK}
        if name != NO_MARGIN:
            index = coloured.index(name)
            style = {"color": loss_colour(index), "linestyle": loss_dash(index)}
        width, above = (3.2, 4) if name == own else (1.8, 3)
        handles += axes.plot(degrees, psi, linewidth=width, zorder=above, **style)
    axes.axhline(0, color=MUTED, linewidth=0.7, zorder=1)
    degree_axis(axes)
    axes.set_xlabel("angle θ between an embedding and the centre of its class")
    axes.set_ylabel("ψ(θ)")
    legend_beside(figure, handles, labels)
    return figure


def _coinciding(curves: Sequence[tuple[str, Margin, NDArray[np.float64], NDArray[np.float64]]]) -> str:
    """Which curves cannot be seen because another lies on them."""
    alike: dict[bytes, list[str]] = {}
    for name, _, _, psi in curves:
        alike.setdefault(psi.round(6).tobytes(), []).append(title_of(name))
    covered = [" = ".join(titles) for titles in alike.values() if len(titles) > 1]
    return f"Curves that coincide: {'; '.join(covered)}." if covered else ""


def target_logit_figure(run: Run) -> Figure:
    """s·ψ(θ) of this run's loss and its slope, beside those of s·cos θ."""
    margin = margin_of(run)
    if margin is None:
        raise LeftOut(f"{run.title} has no margin on the angle")
    scale = run.scale
    if scale is None:
        raise LeftOut("the scale s is in neither metrics.jsonl nor config.toml")
    degrees, psi, slope = curve_and_slope(margin)
    radians = np.radians(degrees)
    detached = getattr(margin, "gradient", "exact") == "detached"
    subtitle = (
        f"s = {scale:.3g}{formula_suffix(margin).replace(' (', ', ').rstrip(')')}. "
        "Left: the logit itself. Right: its slope, which is how strongly a sample is pulled towards its centre at each angle."
        + (" The slope is the detached one that training used." if detached else "")
    )
    labels = [f"{run.title}: s·ψ(θ)", "no margin: s·cos θ"]
    figure = new_figure(
        8.6, 4.5, title=f"{run.title}: the target logit and its slope", subtitle=subtitle, legend=labels
    )
    left, right = figure.subplots(1, 2)
    plain_style: dict[str, Any] = {"color": MUTED, "linestyle": (0, (5, 2)), "linewidth": 1.6, "zorder": 3}
    own_style: dict[str, Any] = {"color": loss_colour(1), "linewidth": 2.4, "zorder": 4}
    (without,) = left.plot(degrees, scale * np.cos(radians), **plain_style)
    (own,) = left.plot(degrees, scale * psi, **own_style)
    left.set_ylabel("target logit")
    right.plot(degrees, -scale * np.sin(radians), **plain_style)
    right.plot(degrees, scale * slope, **own_style)
    right.set_ylabel("slope of the target logit, per radian")
    legend_above(figure, [own, without], labels)
    for axes in (left, right):
        degree_axis(axes)
        axes.set_xlabel("angle θ to the own centre")
    _mark_measured(left, run)
    return figure


def curve_and_slope(margin: Margin) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Degrees from 0 to 180, ψ there, and dψ/dθ per radian, by automatic differentiation of what training itself calls."""
    import torch

    # The ends themselves are left out: cos θ is flat there, and the slope in θ would come out as 0 whatever its limit.
    theta = torch.linspace(1e-4, torch.pi - 1e-4, NUM_ANGLES, dtype=torch.float64, requires_grad=True)
    psi = margin.target(torch.cos(theta))
    (slope,) = torch.autograd.grad(psi.sum(), theta)
    return np.degrees(theta.detach().numpy()), psi.detach().numpy(), slope.numpy()


def margin_of(run: Run) -> Margin | None:
    """The margin object of the run's loss; None for a loss without one."""
    from arcwise import margins

    if run.loss not in margins.names():
        return None
    known = inspect.signature(margins.margin_class(run.loss)).parameters
    try:
        return margins.build(run.loss, **{key: value for key, value in run.margin.items() if key in known})
    except (ConfigError, TypeError, ValueError) as error:
        run.reporter.warn(f"The margin in {run.path.name}/config.toml cannot be used ({error}).")
        return None


def formula_suffix(margin: Margin) -> str:
    """The margin's numbers, as “ (m = 0.5)”."""
    values = [(letter, getattr(margin, letter)) for letter in PARAMETER_LETTERS if hasattr(margin, letter)]
    equals = " = " if len(values) == 1 else "="
    return f" ({', '.join(f'{letter}{equals}{value:.3g}' for letter, value in values)})" if values else ""


def _mark_measured(axes: Axes, run: Run) -> None:
    """Where the samples of this run ended, if that was measured."""
    angles = [row["test_angle"] for row in run.epochs if isinstance(row.get("test_angle"), (int, float))]
    if not angles:
        return
    axes.axvline(angles[-1], color=MUTED, linewidth=1.0, linestyle=(0, (1, 2)), zorder=2)
    axes.annotate(
        f"test samples\nended at {angles[-1]:.0f}°",
        (angles[-1], axes.get_ylim()[0]),
        xytext=(5, 6),
        textcoords="offset points",
        size=SMALL_POINTS,
        color=MUTED,
        va="bottom",
    )
