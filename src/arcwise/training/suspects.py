"""The list of training samples whose labels are likely wrong, written beside the weights."""

from __future__ import annotations

import csv
import io
from typing import Any

from torch import Tensor

from arcwise.data import Dataset
from arcwise.evaluation import Mislabelled, likely_mislabelled
from arcwise.training.run_folder import RunFolder

LEAST_LISTED = 100
MOST_LISTED = 10_000
HEADER = ("row", "path", "label", "suggested", "angle_to_label", "angle_to_suggested", "nearer_by")


def list_suspects(folder: RunFolder, data: Dataset, embeddings: Tensor) -> dict[str, Any]:
    """Rank the training samples, write mislabelled.csv, and say what evaluation.json is to record of it.

    Each sample is held against the mean direction of the *others* of its class, not against the head's centre: a head that has learnt
    a wrong label by heart has moved its centre towards it.

    Args:
        embeddings: (M, D) of all training samples.
    """
    train = data.train
    if len(train.labels[train.labels >= 0].unique()) < 2:
        return {}
    ranked = likely_mislabelled(embeddings, train.labels, paths=train.paths)
    folder.write_mislabelled(_as_csv(ranked, data.classes) + _left_out(folder, data))
    record: dict[str, Any] = {"num_suspect": ranked.num_suspect, "num_judged": ranked.num_judged}
    if train.true_labels is not None:
        shuffled = (train.labels >= 0) & (train.labels != train.true_labels)
        found = ranked.against(shuffled)
        record |= {
            "noisy_share": int(shuffled.sum()) / max(1, int((train.labels >= 0).sum())),
            "num_shuffled": found.num_wrong,
            "shuffled_found": found.found,
            "shuffled_average_precision": found.average_precision,
        }
    return record


def _left_out(folder: RunFolder, data: Dataset) -> str:
    """The lines that were heeded by leaving their samples out, so that the new list may take the place of the old one."""
    if not folder.doubtful_file.is_file():
        return ""
    text = io.StringIO()
    with folder.doubtful_file.open(encoding="utf-8", newline="") as lines:
        for entry in csv.DictReader(lines):
            if int(data.train.labels[int(entry["row"])]) < 0:
                csv.writer(text, lineterminator="\n").writerow([entry.get(name, "") for name in HEADER])
    return text.getvalue()


def _as_csv(ranked: Mislabelled, classes: tuple[str, ...]) -> str:
    listed = min(len(ranked), MOST_LISTED, max(LEAST_LISTED, ranked.num_suspect))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for suspect in (ranked[place] for place in range(listed)):
        angles = (suspect.own_angle, suspect.other_angle, suspect.score)
        names = (classes[suspect.label], classes[suspect.suggested])
        writer.writerow([suspect.row, suspect.path, *names, *(f"{angle:.2f}" for angle in angles)])
    return text.getvalue()
