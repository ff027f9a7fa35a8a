"""The animations, as files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from arcwise.errors import RunError
from arcwise.progress import Reporter
from arcwise.viewing import animate_comparison, animate_run
from arcwise.viewing.animation import Film
from arcwise.viewing.reel import Reel
from arcwise.viewing.run_folder import Run
from arcwise.viewing.style import house_style
from arcwise.viewing.timeline import Moment, timeline

MakeRun = Callable[..., Path]
SMALL = {"num_samples": 300, "num_final": 300, "num_epochs": 2, "early": ()}


def film_of(run: Path) -> tuple[Film, Reel]:
    reel = Reel(Run(run), most=500)
    return Film([reel], reel.epochs), reel


def test_a_run_becomes_a_small_gif_with_the_frames_and_times_of_its_timeline(drawn_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(drawn_run, run)
    path = animate_run(run)
    assert path == run / "figures" / "training.gif"
    assert path.stat().st_size < 4_000_000
    expected = timeline(16)
    with Image.open(path) as picture:
        assert getattr(picture, "n_frames", 1) == len(expected)
        assert min(picture.size) > 450
        assert picture.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
        for number, moment in enumerate(expected):
            picture.seek(number)
            assert picture.info["duration"] == moment.milliseconds


@pytest.mark.parametrize("options", [{"dim": 2}, {"dim": 3}, {"dim": 24}, {"classes": [f"c{i}" for i in range(40)]}])
def test_every_width_and_number_of_classes_can_be_animated(
    options: dict[str, object], tmp_path: Path, make_run: MakeRun
) -> None:
    path = animate_run(make_run(tmp_path / "run", **{**SMALL, **options}))
    assert 10_000 < path.stat().st_size < 8_000_000


def test_a_comparison_is_wide_small_and_the_same_bytes_twice(tmp_path: Path, make_comparison: MakeRun) -> None:
    folder = make_comparison(tmp_path / "compare", num_samples=600, num_final=300, num_epochs=1, early=())
    first = animate_comparison(folder).read_bytes()
    assert animate_comparison(folder).read_bytes() == first
    with Image.open(folder / "figures" / "training.gif") as picture:
        assert picture.size[0] == 900
        assert picture.size[0] > 1.5 * picture.size[1]


def test_the_epoch_on_the_frames_never_goes_back_and_numbers_are_those_of_snapshots(drawn_run: Path) -> None:
    with house_style():
        film, reel = film_of(drawn_run)
        epochs = []
        for moment in timeline(len(reel.epochs))[::3]:
            film.frame(moment)
            epoch = reel.epochs[moment.snapshot]
            epochs.append(epoch)
            assert film._epoch.get_text() == f"epoch {epoch:g}"
            assert film._scores[0].get_text() == f"test accuracy {reel.accuracy[epoch]:.1%}"
    assert epochs == sorted(epochs)


def test_nothing_but_the_embeddings_moves_between_frames(drawn_run: Path) -> None:
    with house_style():
        film, _ = film_of(drawn_run)
        axes = film._panels[0].axes
        places = set()
        for moment in (Moment(0, 0.0, 100), Moment(4, 0.5, 100), Moment(15, 0.0, 100)):
            film.frame(moment)
            places.add((axes.get_xlim(), axes.get_ylim(), axes.get_position().bounds))
    assert len(places) == 1


def test_the_camera_moves_evenly_and_rests_at_the_best_view(drawn_run: Path) -> None:
    best = Reel(Run(drawn_run), most=500).view.camera
    assert best is not None
    cameras = [Film.camera(best, progress) for progress in np.linspace(0, 1, 61)]
    azimuths = np.array([camera.azimuth for camera in cameras if camera is not None])
    assert (np.diff(azimuths) >= 0).all()
    assert np.diff(azimuths).max() < 2
    assert cameras[-1] == best


def test_samples_are_drawn_where_their_snapshot_puts_them(drawn_run: Path) -> None:
    with house_style():
        film, reel = film_of(drawn_run)
        film.frame(Moment(len(reel.epochs) - 1, 0.0, 100))
        panel = film._panels[0]
    points, _ = reel.at(reel.epochs[-1], None, 0.0)
    assert reel.view.camera is not None
    picture = reel.view.camera.project(points)
    near = picture[picture[:, 2] > 0]
    drawn = np.asarray(panel._near_points.get_offsets())  # type: ignore[attr-defined]
    assert len(drawn) == len(near)
    np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(near[:, 0]), atol=1e-6)


def test_runs_of_different_length_are_shown_up_to_where_both_are(tmp_path: Path, make_comparison: MakeRun) -> None:
    folder = make_comparison(tmp_path / "compare", **SMALL)
    (folder / "arcface-seed0" / "embeddings" / "epoch-0002.safetensors").unlink()
    with Image.open(animate_comparison(folder)) as picture:
        assert getattr(picture, "n_frames", 1) == len(timeline(2))


def test_snapshots_of_other_samples_are_left_out_with_a_warning(tmp_path: Path, make_run: MakeRun) -> None:
    class Listener(Reporter):
        heard = ""

        def warn(self, text: str) -> None:
            self.heard += text

    run = make_run(tmp_path / "run", **SMALL)
    other = make_run(tmp_path / "other", **{**SMALL, "num_samples": 50})
    name = "embeddings/epoch-0001.safetensors"
    shutil.copy(other / name, run / name)
    listener = Listener()
    animate_run(run, reporter=listener)
    assert "1 snapshots of run hold other samples" in listener.heard


def test_one_snapshot_cannot_be_animated_and_the_error_says_what_to_do(tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run(tmp_path / "run", **SMALL)
    for path in sorted((run / "embeddings").glob("epoch-*"))[:-1]:
        path.unlink()
    with pytest.raises(RunError, match=r"needs two snapshots.*there is one. Train with a snapshot after each epoch"):
        animate_run(run)
    shutil.rmtree(run / "embeddings")
    with pytest.raises(RunError, match="there are none"):
        animate_run(run)
