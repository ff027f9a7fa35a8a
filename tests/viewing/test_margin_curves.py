"""ψ(θ) is drawn from the margins themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arcwise import margins
from arcwise.progress import Reporter
from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.margin_curves import curve_and_slope, margins_figure, target_logit_figure
from arcwise.viewing.run_folder import Run
from arcwise.viewing.style import house_style


def test_the_slope_is_the_derivative_of_the_curve_by_the_angle() -> None:
    degrees, psi, slope = curve_and_slope(margins.build("arcface", m=0.5))
    radians = np.radians(degrees)
    before_turn = radians < np.pi - 0.52
    np.testing.assert_allclose(psi[before_turn], np.cos(radians + 0.5)[before_turn], atol=1e-9)
    np.testing.assert_allclose(slope[before_turn], -np.sin(radians + 0.5)[before_turn], atol=1e-6)


def test_every_registered_margin_has_a_curve_and_falls() -> None:
    with house_style():
        axes = margins_figure(None, Reporter()).axes[0]
    curves = [line for line in axes.get_lines() if len(np.asarray(line.get_xdata())) > 100]
    assert len(curves) == len(margins.names())
    for curve in curves:
        assert (np.diff(np.asarray(curve.get_ydata())) <= 1e-9).all()


def test_the_target_logit_is_scaled_by_the_s_of_the_run(drawn_run: Path) -> None:
    with house_style():
        logit, slope = target_logit_figure(Run(drawn_run)).axes
    without, own = logit.get_lines()[:2]
    assert np.asarray(without.get_ydata())[0] == pytest.approx(12.6, abs=1e-3)
    assert np.asarray(own.get_ydata())[0] == pytest.approx(12.6 * np.cos(0.5), abs=1e-2)
    assert np.asarray(slope.get_lines()[1].get_ydata())[0] == pytest.approx(-12.6 * np.sin(0.5), abs=1e-2)


def test_softmax_has_no_target_logit_to_draw(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[loss]\nname = "softmax"\n')
    with pytest.raises(LeftOut, match="Softmax has no margin"):
        target_logit_figure(Run(tmp_path))


def test_the_legend_of_all_margins_leaves_the_plot_large_and_names_the_curves_that_coincide() -> None:
    with house_style():
        figure = margins_figure(None, Reporter())
        figure.draw_without_rendering()
    plot, whole = figure.axes[0].get_window_extent(), figure.bbox
    assert plot.height > 0.65 * whole.height
    assert plot.width > 0.45 * whole.width
    assert figure.legends[0].get_window_extent().x0 >= plot.x1
    words = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    assert "Curves that coincide: AdaCos = norm-softmax; " in words
