from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.data import Dataset, Split, num_turned_classes, with_quarter_turns, without_quarter_turns
from arcwise.errors import ConfigError


def characters(num: int = 6, side: int = 5, classes: int = 3, channels: int = 1, seed: int = 0) -> Dataset:
    """Unseen classes in the test part, and one training picture without a label."""
    generator = torch.Generator().manual_seed(seed)
    shape = (num, channels, side, side)
    images = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    labels = torch.arange(num) % classes
    labels[-1] = -1
    true_labels = (torch.arange(num) + 1) % classes
    train = Split(images, labels, tuple(f"{n}.png" for n in range(num)), true_labels)
    test = Split(images[:2], torch.tensor([0, 1]))
    names = tuple(f"Greek/character{n:02d}" for n in range(classes))
    return Dataset("mine", "image", train, test, names, "a test", "none", ("a note",), ("x", "y"))


def assert_same(a: Dataset, b: Dataset) -> None:
    for part, other in ((a.train, b.train), (a.test, b.test)):
        assert torch.equal(part.images, other.images)
        assert torch.equal(part.labels, other.labels)
        assert part.paths == other.paths
        assert (part.true_labels is None) == (other.true_labels is None)
        if part.true_labels is not None and other.true_labels is not None:
            assert torch.equal(part.true_labels, other.true_labels)
    for field in fields(Dataset):
        if field.name not in ("train", "test"):
            assert getattr(a, field.name) == getattr(b, field.name), field.name


def test_each_quarter_is_the_picture_turned_anti_clockwise_once_more() -> None:
    before, after = characters(channels=2), with_quarter_turns(characters(channels=2))
    side = before.shape[1]
    assert len(after.train) == 4 * len(before.train)
    for k in range(1, 4):
        earlier, later = after.train.images[6 * (k - 1) : 6 * k], after.train.images[6 * k : 6 * (k + 1)]
        for row in range(side):
            for column in range(side):
                # The right edge becomes the top one.
                assert torch.equal(later[:, :, row, column], earlier[:, :, column, side - 1 - row])
    assert torch.equal(after.train.images[:6], before.train.images)


def test_a_stroke_at_the_top_is_at_the_left_then_the_bottom_then_the_right() -> None:
    data = characters(num=2)
    data.train.images.zero_()[:, :, 0, :] = 255
    turned = with_quarter_turns(data).train.images.view(4, 2, 5, 5)
    edges = [(0, slice(None)), (slice(None), 0), (4, slice(None)), (slice(None), 4)]
    for images, (rows, columns) in zip(turned, edges, strict=True):
        assert bool((images[:, rows, columns] == 255).all())
        assert int((images == 255).sum()) == 2 * 5


def test_every_quarter_of_a_class_is_a_class_of_its_own_and_no_label_is_made_where_there_is_none() -> None:
    after = with_quarter_turns(characters())
    assert after.train.labels.view(4, 6).tolist() == [
        [0, 1, 2, 0, 1, -1], [3, 4, 5, 3, 4, -1], [6, 7, 8, 6, 7, -1], [9, 10, 11, 9, 10, -1],
    ]  # fmt: skip
    assert after.train.true_labels is not None
    assert after.train.true_labels.view(4, 6)[:, :3].tolist() == [[1, 2, 0], [4, 5, 3], [7, 8, 6], [10, 11, 9]]
    assert after.train.labels.dtype == torch.int64


def test_class_j_turned_by_k_quarters_is_class_kn_plus_j() -> None:
    after = with_quarter_turns(characters())
    assert after.num_classes == len(set(after.classes)) == 12
    for j in range(3):
        for k in range(1, 4):
            assert after.classes[3 * k + j] == f"Greek/character{j:02d} turned {90 * k}°"
    assert after.classes[:3] == characters().classes


def test_each_turned_picture_keeps_the_path_of_its_upright_one() -> None:
    after = with_quarter_turns(characters())
    assert after.train.paths == characters().train.paths * 4


def test_the_test_part_and_all_else_stay_as_they_are() -> None:
    before = characters()
    after = with_quarter_turns(before)
    assert after.test is before.test
    assert (after.test_classes, after.notes, after.name, after.shape) == (("x", "y"), ("a note",), "mine", (1, 5, 5))
    assert (before.quarter_turns, after.quarter_turns) == (False, True)
    assert len(before.train) == 6


def test_data_that_has_them_is_returned_as_it_is_and_so_is_data_without_any_to_take_away() -> None:
    upright = characters()
    turned = with_quarter_turns(upright)
    assert with_quarter_turns(turned) is turned
    assert without_quarter_turns(upright) is upright


@settings(max_examples=25, deadline=None)
@given(
    num=st.integers(1, 9), side=st.integers(1, 6), classes=st.integers(1, 4), channels=st.integers(1, 3),
    noisy=st.booleans(), listed=st.booleans(),
)  # fmt: skip
def test_taking_the_turns_away_gives_back_what_there_was(
    num: int, side: int, classes: int, channels: int, noisy: bool, listed: bool
) -> None:
    data = characters(num, side, classes, channels)
    train = replace(
        data.train,
        paths=data.train.paths if listed else (),
        true_labels=data.train.true_labels if noisy else None,
    )
    data = replace(data, train=train)
    turned = with_quarter_turns(data)
    assert num_turned_classes(data) == num_turned_classes(turned) == turned.num_classes == 4 * classes
    assert_same(without_quarter_turns(turned), data)


def test_statistics_are_those_of_the_upright_pictures_because_turning_moves_no_pixel_value() -> None:
    before, after = characters(channels=3), with_quarter_turns(characters(channels=3))
    assert torch.equal(before.mean, after.mean)
    assert torch.equal(before.std, after.std)


def test_only_square_pictures_can_be_turned() -> None:
    oblong = characters()
    oblong = replace(oblong, train=replace(oblong.train, images=torch.zeros(6, 1, 5, 4, dtype=torch.uint8)))
    rows = replace(oblong, kind="features", train=replace(oblong.train, images=torch.zeros(6, 7)))
    for data, words in ((oblong, r"image of the shape \(1, 5, 4\)"), (rows, r"features of the shape \(7,\)")):
        with pytest.raises(
            ConfigError, match=rf"only square pictures can be .*; mine holds {words}\. Leave data\.quarter_turns off"
        ):
            with_quarter_turns(data)


def test_a_test_of_the_same_classes_would_lack_the_turned_ones() -> None:
    with pytest.raises(ConfigError, match=r"classes that the test part of mine does not have.*Leave it off"):
        with_quarter_turns(replace(characters(), test_classes=()))
