"""arcwise compare"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from arcwise.cli.options import OutputOptions, TrainingOptions, command_line, next_command, print_table
from arcwise.cli.train import tell_stopped
from arcwise.errors import MissingExtraError
from arcwise.progress import Reporter


def compare(
    data: str,
    /,
    *,
    losses: str = "softmax,arcface",
    seeds: int = 1,
    seed: int = 0,
    tuned: Path | None = None,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    resume: Annotated[bool, Parameter(negative=())] = False,
    jobs: int = 1,
    fallback: str | None = None,
    figures: bool = True,
    report: bool = True,
    training: TrainingOptions = TrainingOptions(),  # noqa: B008
    output: OutputOptions = OutputOptions(),  # noqa: B008
) -> int:
    """Train several losses on the same data, network, seeds and epochs, and say what came out: table, figures, GIFs, PDF.

    For example
        arcwise compare mnist --losses softmax,arcface --dim 3

        arcwise compare cifar10 --losses softmax,arcface --seeds 3

    Parameters
    ----------
    data
        As for arcwise train.
    losses
        A comma-separated list, or all.
    seeds
        How many seeds to train each loss with.
    seed
        The first seed.
    tuned
        The tuned.toml of arcwise tune: the scale and margin that it found.
    out
        The folder to write; by default runs/DATA-compare.
    resume
        Go on with a comparison that was stopped, or begin it.
    jobs
        How many runs at a time, each in a process of its own.
    fallback
        A data set to use where DATA cannot be fetched.
    figures
        Draw figures and GIFs.
    report
        Write the PDF; it needs the figures.
    """
    reporter = output.reporter()
    with reporter.stage("starting"):
        from arcwise.training import compare as compare_losses

    comparison = compare_losses(
        data,
        losses=losses,
        seeds=seeds,
        first_seed=seed,
        tuned=tuned,
        out=out,
        resume=resume,
        jobs=jobs,
        fallback=fallback,
        command=command_line(),
        reporter=reporter,
        **training.keywords(),
    )
    if comparison.stopped_by is not None:
        return tell_stopped(comparison.stopped_by, f"{command_line().removesuffix(' --resume')} --resume")
    pdf = (
        _show(comparison.path, [runs[0] for runs in comparison.runs.values() if runs], report, reporter)
        if figures
        else None
    )
    if output.json:
        print(json.dumps(comparison.to_dict()))
    else:
        print(f"\n{comparison.path}" + (f" · {pdf}" if pdf else ""))
        print_table(comparison.table())
        if len(comparison.losses) > 1:
            print("* the best of its column")
        for name, why in comparison.failed.items():
            print(f"{name} came to nothing: {why}")
    next_command(f"arcwise report {shlex.quote(str(comparison.path))} --bundle report.zip", output)
    return 0


def _show(folder: Path, runs: list[Path], report: bool, reporter: Reporter) -> Path | None:
    """Figures, GIFs and the report; what an extra is missing for is left out and said."""
    from arcwise import reporting, viewing

    try:
        for run in runs:
            viewing.draw_run(run, reporter=reporter)
            viewing.animate_run(run, reporter=reporter)
        viewing.draw_comparison(folder, reporter=reporter)
        viewing.animate_comparison(folder, reporter=reporter)
        return reporting.write_report([folder], reporter=reporter) if report else None
    except MissingExtraError as error:
        reporter.warn(f"left out: {error}")
        return None
