"""GIFs come out as they went in."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from arcwise.viewing.gif import UNSEEN, Frame, encode


def moving_square(num_frames: int = 6) -> list[Frame]:
    frames = []
    for number in range(num_frames):
        frame = np.full((60, 90, 3), 255, dtype=np.uint8)
        frame[20:40, 10 * number : 10 * number + 20] = (200, 30, 60)
        frame[50:55, 5:85] = (20, 40, 200)
        frames.append(frame)
    return frames


def decoded(content: bytes) -> tuple[list[Frame], list[int]]:
    frames, durations = [], []
    with Image.open(BytesIO(content)) as picture:
        for number in range(getattr(picture, "n_frames", 1)):
            picture.seek(number)
            durations.append(int(picture.info["duration"]))
            frames.append(np.asarray(picture.convert("RGB")))
    return frames, durations


def test_every_frame_comes_back_with_its_colours_and_its_time() -> None:
    frames = moving_square()
    back, durations = decoded(encode(frames, [100, 50, 70, 80, 90, 2200]))
    assert durations == [100, 50, 70, 80, 90, 2200]
    assert len(back) == len(frames)
    for before, after in zip(frames, back, strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_frame_like_the_one_before_is_kept_and_costs_almost_nothing() -> None:
    frames = moving_square(2)
    still = encode([frames[0], frames[1], frames[1]], [100, 100, 100])
    assert len(decoded(still)[0]) == 3
    assert len(still) - len(encode(frames, [100, 100])) < 60


def test_it_repeats_without_end() -> None:
    with Image.open(BytesIO(encode(moving_square(), [100] * 6))) as picture:
        assert picture.info["loop"] == 0


def test_a_photograph_of_many_colours_is_close_and_even_areas_are_exact() -> None:
    generator = np.random.default_rng(0)
    frames = [np.full((80, 80, 3), 255, dtype=np.uint8) for _ in range(3)]
    for frame in frames:
        frame[20:60, 20:60] = generator.integers(0, 256, size=(40, 40, 3))
    back, _ = decoded(encode(frames, [100] * 3))
    for before, after in zip(frames, back, strict=True):
        assert (after[:15] == 255).all()
        assert np.abs(before.astype(int) - after).mean() < 8


def test_small_changes_that_are_left_out_do_not_add_up() -> None:
    frames = [np.full((20, 20, 3), 100 + 2 * number, dtype=np.uint8) for number in range(20)]
    back, _ = decoded(encode(frames, [100] * 20))
    for before, after in zip(frames, back, strict=True):
        assert np.abs(before.astype(int) - after).max() <= UNSEEN


def test_the_same_frames_give_the_same_bytes() -> None:
    assert encode(moving_square(), [100] * 6) == encode(moving_square(), [100] * 6)
