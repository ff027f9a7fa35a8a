"""arcwise bench label-noise"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from arcwise.cli.options import OutputOptions, TrainingOptions, command_line, next_command, print_table
from arcwise.cli.train import tell_stopped
from arcwise.errors import ConfigError, MissingExtraError


def label_noise(
    data: str = "digits",
    /,
    *,
    losses: str | None = None,
    shares: str = "0,0.1,0.2,0.4",
    seeds: int = 3,
    seed: int = 0,
    jobs: int = 1,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    resume: Annotated[bool, Parameter(negative=())] = False,
    again: bool = True,
    figures: bool = True,
    training: TrainingOptions = TrainingOptions(),  # noqa: B008
    output: OutputOptions = OutputOptions(),  # noqa: B008
) -> int:
    """Shuffle a share of the training labels, and see what it costs each loss and how many of them are found.

    For example
        arcwise bench label-noise

        arcwise bench label-noise digits --losses arcface,norm-softmax --shares 0,0.2 --seeds 1

    Parameters
    ----------
    data
        As for arcwise train.
    losses
        A comma-separated list; what the others recover is counted against the first.
    shares
        Of the training labels that are replaced by another class, separated by commas. 0 is always measured.
    seeds
        How many seeds to train each loss with.
    seed
        The first seed.
    jobs
        How many runs at a time, each in a process of its own.
    out
        The folder to write; by default runs/DATA-label-noise.
    resume
        Go on with a measurement that was stopped, or begin it.
    again
        Train the first loss again without the samples that its first run lists as likely mislabelled, and with the labels that it suggests.
    figures
        Draw the curve.
    """
    parsed = _shares(shares)
    reporter = output.reporter()
    with reporter.stage("starting"):
        from arcwise.benchmarks import label_noise as benchmark

    result = benchmark.run(
        data,
        losses=losses if losses is not None else benchmark.LOSSES,
        shares=parsed,
        seeds=seeds,
        first_seed=seed,
        jobs=jobs,
        out=out,
        resume=resume,
        again=again,
        reporter=reporter,
        command=command_line(),
        **training.keywords(),
    )
    if result.stopped_by is not None:
        return tell_stopped(result.stopped_by, f"{command_line().removesuffix(' --resume')} --resume")
    if figures:
        from arcwise import viewing

        try:
            viewing.draw_label_noise(result.path, reporter=reporter)
        except MissingExtraError as error:
            reporter.warn(f"no figure: {error}")
    if output.json:
        print(json.dumps(result.to_dict()))
    else:
        print(f"\n{result.path}")
        print_table(result.table())
    noisiest = f"{result.path}/shuffled-{result.shares[-1]:g}"
    next_command(f"arcwise report {shlex.quote(noisiest)}", output)
    return 0


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigError(f"--shares takes numbers separated by commas, as in 0,0.1,0.2; got {text!r}.") from None
