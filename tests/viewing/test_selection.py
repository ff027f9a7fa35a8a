"""Comparisons of more losses than can be read side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from arcwise.progress import Reporter
from arcwise.viewing import animate_comparison
from arcwise.viewing.embeddings import compared_embeddings_figure
from arcwise.viewing.histograms import compared_angles_figure
from arcwise.viewing.robustness import robustness_figure
from arcwise.viewing.run_folder import Run, open_comparison
from arcwise.viewing.selection import MOST_MOVING, MOST_PANELS, select
from arcwise.viewing.style import house_style
from arcwise.viewing.training_curves import compared_training_figure

MakeRun = Callable[..., Path]
LOSSES = (
    "softmax",
    "adacos",
    "arcface",
    "norm-softmax",
    "cosface",
    "magface",
    "uniface",
    "mv-softmax",
    "long-tail",
    "li-arcface",
)


class Listener(Reporter):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def say(self, text: str = "") -> None:
        self.heard.append(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, make_many: Callable[[Path, tuple[str, ...]], Path]) -> Path:
    return make_many(tmp_path_factory.mktemp("many") / "compare", LOSSES)


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[Run]:
    return open_comparison(folder, Reporter())


def accuracies(*scores: float | None) -> dict[str, float | None]:
    return dict(zip(LOSSES, scores, strict=False))


def test_where_there_is_room_for_all_nothing_is_left_out() -> None:
    selection = select(accuracies(0.9, 0.8, 0.7), 3)
    assert (selection.shown, selection.left_out, selection.sentence) == (LOSSES[:3], (), "")


def test_the_baselines_arcface_and_the_most_accurate_are_chosen_and_kept_in_order() -> None:
    selection = select(accuracies(0.1, 0.95, 0.2, 0.3, 0.99, None, 0.97), 5)
    assert selection.shown == ("softmax", "arcface", "norm-softmax", "cosface", "uniface")
    assert selection.left_out == ("adacos", "magface")
    assert selection.sentence == (
        "5 of the 7 losses are shown: softmax, norm-softmax, ArcFace and the 2 others with the highest test accuracy."
    )


def test_a_choice_among_equals_is_said_to_be_one() -> None:
    selection = select(accuracies(0.9, 0.95, 0.9, 0.9, 0.95, 0.95000001), 4)
    assert selection.shown == ("softmax", "adacos", "arcface", "norm-softmax")
    assert selection.which.endswith("highest test accuracy (of equal ones, those named first)")


def test_as_many_runs_of_arcface_as_there_are_leave_room_for_another() -> None:
    selection = select({**{f"arcface ({i})": 0.9 for i in range(5)}, "cosface": 0.99}, 3)
    assert selection.shown == ("arcface (0)", "arcface (1)", "cosface")


def test_a_figure_with_a_panel_a_loss_shows_as_many_as_can_be_read_and_says_which(runs: list[Run]) -> None:
    with house_style():
        for figure in (compared_embeddings_figure(runs), compared_angles_figure(runs)):
            titled = [
                axes for axes in figure.axes if axes.get_visible() and axes.get_title(loc="left") + axes.get_title()
            ]
            assert len(titled) == MOST_PANELS
            assert figure.get_figwidth() < 1.5 * figure.get_figheight()
            words = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
            assert (
                "9 of the 10 losses are shown: softmax, norm-softmax, ArcFace and the 6 others with the highest"
                in words
            )


def test_training_curves_of_many_losses_are_grey_but_for_some_and_the_plots_keep_their_size(runs: list[Run]) -> None:
    with house_style():
        few, many = compared_training_figure(runs[:2]), compared_training_figure(runs)
    colours = [line.get_color() for line in many.axes[0].get_lines()]
    assert len(colours) == len(runs)
    assert len({colour for colour in colours if colours.count(colour) == 1}) == MOST_MOVING
    labels = [text.get_text() for text in many.legends[0].get_texts()]
    assert len(labels) == MOST_MOVING + 1
    assert labels[-1] == "the other losses"
    for figure in (few, many):
        figure.draw_without_rendering()
    assert many.axes[0].get_window_extent().height > 0.75 * few.axes[0].get_window_extent().height


def test_under_noise_each_of_many_losses_has_a_row_by_its_name(runs: list[Run]) -> None:
    with house_style():
        figure = robustness_figure(runs)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [run.title for run in runs]
    assert len(figure.axes) == 5


def test_the_animation_of_many_losses_shows_six_and_says_so(folder: Path) -> None:
    listener = Listener()
    with Image.open(animate_comparison(folder, reporter=listener)) as film:
        assert film.width > film.height
    assert any(
        "6 of the 10 losses are shown: softmax, norm-softmax, ArcFace and the 3" in text for text in listener.heard
    )
