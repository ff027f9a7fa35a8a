"""From the data as it was loaded to the data that a run trains on."""

from __future__ import annotations

from arcwise.data import Dataset, with_quarter_turns
from arcwise.data.label_noise import with_label_noise
from arcwise.training.config import Config
from arcwise.training.doubtful_labels import with_suggested, without_listed


def training_data(config: Config, data: Dataset) -> Dataset:
    """What the config makes of the training part; a pure function, so that a resumed run sees what it saw before.

    A picture with a wrong label keeps it however it is turned.
    """
    made = with_label_noise(data, share=config.data.label_noise, seed=config.train.seed)
    if config.data.leave_out:
        made = without_listed(made, config.data.leave_out, config.data.doubtful_by)
    if config.data.relabel:
        made = with_suggested(made, config.data.relabel, config.data.doubtful_by)
    return with_quarter_turns(made) if config.data.quarter_turns else made
