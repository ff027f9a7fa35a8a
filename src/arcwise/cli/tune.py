"""arcwise tune"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from arcwise.cli.options import OutputOptions, TrainingOptions, command_line, next_command, print_table
from arcwise.cli.train import tell_stopped


def tune(
    data: str,
    /,
    *,
    losses: str = "all",
    trials: int = 8,
    jobs: int = 1,
    seed: int = 0,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    resume: Annotated[bool, Parameter(negative=())] = False,
    fallback: str | None = None,
    training: TrainingOptions = TrainingOptions(),  # noqa: B008
    output: OutputOptions = OutputOptions(),  # noqa: B008
) -> int:
    """Find the scale and margin that suit each loss best, on held-out training data, with the same number of trials for each.

    For example
        arcwise tune omniglot --losses softmax,arcface --dim 64 --jobs 4

        arcwise tune ./photos --losses arcface --trials 12

    Parameters
    ----------
    data
        As for arcwise train.
    losses
        A comma-separated list, or all. What is given in brackets, as in "arcface(m=0.3)", stays as it is.
    trials
        How many settings of each loss are tried, the default one among them.
    jobs
        How many trials at a time, each in a process of its own.
    seed
        Decides what is held out, what is tried, and everything random in training.
    out
        The folder to write; by default runs/DATA-tune.
    resume
        Go on with a tuning that was stopped, or begin it.
    fallback
        A data set to use where DATA cannot be fetched.
    """
    reporter = output.reporter()
    with reporter.stage("starting"):
        from arcwise.training import tune as tune_losses

    tuning = tune_losses(
        data,
        losses=losses,
        trials=trials,
        jobs=jobs,
        seed=seed,
        out=out,
        resume=resume,
        fallback=fallback,
        command=command_line(),
        reporter=reporter,
        **training.keywords(),
    )
    if tuning.stopped_by is not None:
        return tell_stopped(tuning.stopped_by, f"{command_line().removesuffix(' --resume')} --resume")
    assert tuning.settings is not None
    if output.json:
        print(json.dumps(tuning.to_dict()))
    else:
        print(f"\n{tuning.file}")
        print_table(tuning.table(), text_last=True)
        print(f"{tuning.measured}, {trials} trials a loss; the test part was not looked at")
    words = ["arcwise", "compare", data, "--losses", losses, "--tuned", str(tuning.file), *_same_training(training)]
    next_command(shlex.join(words), output)
    return 0


def _same_training(training: TrainingOptions) -> list[str]:
    """The options by which training goes as it went in the trials; the width is in the file."""
    names = ("epochs", "backbone", "batch_size", "lr", "warmup_epochs", "data_dir")
    given = {name: getattr(training, name) for name in names if getattr(training, name) is not None}
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [*words, *(word for setting in training.settings() for word in ("--set", setting))]
