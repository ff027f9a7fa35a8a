from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from arcwise.data import Dataset, Split
from arcwise.data.label_noise import with_label_noise
from arcwise.evaluation import likely_mislabelled
from arcwise.training import RunFolder, suspects, train
from arcwise.training.config import Config
from arcwise.training.suspects import list_suspects

MakeConfig = Callable[..., Config]
CLASSES = ("ant, black", "bee", "cat")


def made(share: float, paths: bool = True) -> tuple[Dataset, Tensor]:
    """300 features in three tight classes, with their embeddings: the features themselves."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(300) % 3
    rows = torch.eye(3, 4)[labels] + 0.05 * torch.randn(300, 4, generator=generator)
    names = tuple(f"pictures/{row}.png" for row in range(300)) if paths else ()
    data = Dataset("made", "features", Split(rows, labels, names), Split(rows, labels), CLASSES, "made here", "none")
    return with_label_noise(data, share=share, seed=0), rows


def read(folder: RunFolder) -> list[dict[str, str]]:
    with folder.mislabelled_file.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_list_names_what_was_shuffled_and_what_it_was(folder: RunFolder) -> None:
    data, embeddings = made(0.4)
    assert data.train.true_labels is not None
    record = list_suspects(folder, data, embeddings)
    rows = read(folder)
    assert len(rows) == record["num_suspect"] == record["num_shuffled"] == 120
    assert record["num_judged"] == 300
    for line in rows:
        row = int(line["row"])
        assert line["path"] == f"pictures/{row}.png"
        assert line["label"] == CLASSES[int(data.train.labels[row])]
        assert line["suggested"] == CLASSES[int(data.train.true_labels[row])]
        assert float(line["angle_to_label"]) - float(line["angle_to_suggested"]) == pytest.approx(
            float(line["nearer_by"]), abs=0.011
        )
    nearer = [float(line["nearer_by"]) for line in rows]
    assert nearer == sorted(nearer, reverse=True)
    assert (record["noisy_share"], record["shuffled_found"], record["shuffled_average_precision"]) == (0.4, 1.0, 1.0)


def test_the_truth_is_not_recorded_where_it_is_not_known(folder: RunFolder) -> None:
    data, embeddings = made(0.0, paths=False)
    record = list_suspects(folder, data, embeddings)
    assert record == {"num_suspect": 0, "num_judged": 300}
    rows = read(folder)
    assert len(rows) == suspects.LEAST_LISTED
    assert all(float(line["nearer_by"]) < 0 and line["path"] == "" for line in rows)


def test_the_list_has_an_end(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspects, "MOST_LISTED", 30)
    data, embeddings = made(0.4)
    assert list_suspects(folder, data, embeddings)["num_suspect"] == 120
    assert len(read(folder)) == 30


def test_samples_of_one_class_only_leave_nothing_to_doubt(folder: RunFolder) -> None:
    data, embeddings = made(0.0)
    alone = replace(data, train=replace(data.train, labels=torch.where(data.train.labels == 1, 1, -1)))
    assert list_suspects(folder, alone, embeddings) == {}
    assert not folder.mislabelled_file.exists()


def test_a_run_writes_the_list_of_its_own_training_samples(small_digits: Dataset, tmp_path: Path) -> None:
    run = train(
        small_digits,
        loss="arcface",
        dim=8,
        epochs=6,
        batch_size=32,
        device="cpu",
        settings={"data.label_noise": "0.25", "train.snapshot_images": "0"},
        out=tmp_path / "run",
    )
    assert run.evaluation is not None
    noisy = with_label_noise(small_digits, share=0.25, seed=0).train
    ranked = likely_mislabelled(run.model.embed(small_digits.train.images), noisy.labels)
    rows = read(RunFolder.open(run.path))
    assert [int(line["row"]) for line in rows[:20]] == ranked.rows[:20].tolist()
    assert run.evaluation["num_suspect"] == ranked.num_suspect
    assert run.evaluation["noisy_share"] == 0.25
    assert run.evaluation["num_shuffled"] == 60
    # By chance a quarter would be.
    assert run.evaluation["shuffled_found"] > 0.5
    assert run.evaluation["shuffled_average_precision"] > 0.5
