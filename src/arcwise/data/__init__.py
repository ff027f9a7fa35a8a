"""Images and labels in: known sets by name, folders, lists of files, arrays of features; augmentation and the order of rows.

dataset = arcwise.data.load("mnist")
dataset.train.images            # uint8 (60000, 1, 28, 28)
"""

from arcwise.data._registry import names
from arcwise.data.augmentation import AUGMENTATIONS, augment, prepare
from arcwise.data.cache import cache_folder
from arcwise.data.dataset import Dataset, Split
from arcwise.data.known import Status, resized, status
from arcwise.data.loading import load
from arcwise.data.one_shot import OneShot
from arcwise.data.sampler import epoch_order
from arcwise.data.turned import num_turned_classes, with_quarter_turns, without_quarter_turns

__all__ = [
    "AUGMENTATIONS",
    "Dataset",
    "OneShot",
    "Split",
    "Status",
    "augment",
    "cache_folder",
    "epoch_order",
    "load",
    "names",
    "num_turned_classes",
    "prepare",
    "resized",
    "status",
    "with_quarter_turns",
    "without_quarter_turns",
]
