"""arcwise train"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from arcwise.cli.options import OutputOptions, TrainingOptions, command_line, next_command, print_table
from arcwise.errors import MissingExtraError
from arcwise.progress import Reporter


def train(
    data: str | None = None,
    /,
    *,
    loss: str | None = None,
    margin: float | None = None,
    scale: float | None = None,
    seed: int | None = None,
    config: Path | None = None,
    tuned: Path | None = None,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    resume: Annotated[bool, Parameter(negative=())] = False,
    figures: bool = True,
    training: TrainingOptions = TrainingOptions(),  # noqa: B008
    output: OutputOptions = OutputOptions(),  # noqa: B008
) -> int:
    """Train embeddings under one loss, and measure them.

    For example
        arcwise train mnist --loss arcface --dim 3

        arcwise train ./photos --loss "arcface(m=0.3)"

        arcwise train features.npz --loss cosface

        arcwise train runs/mnist-arcface --resume

    Parameters
    ----------
    data
        mnist, fashion-mnist, cifar10, omniglot, digits; a folder with one sub-folder per class; a CSV of path,label; an .npz of features
        with labels; or, with --resume, a run folder.
    loss
        softmax, norm-softmax, arcface, cosface, adaface or any other, with parameters, centres and terms if need be: "arcface(m=0.3)",
        "arcface(centers=3)+intra:0.1". By default arcface.
    margin
        The margin m; angles in radians.
    scale
        The scale s; by default chosen from the number of classes, the width and the margin.
    seed
        Decides everything random; by default 0.
    config
        A config.toml to run as it is; --set changes single values of it.
    tuned
        The tuned.toml of arcwise tune: the scale and margin that it found.
    out
        The run folder; by default runs/DATA-LOSS.
    resume
        Go on where an existing run stopped.
    figures
        Draw figures and the GIF at the end.
    """
    reporter = output.reporter()
    with reporter.stage("starting"):
        from arcwise.training import train as train_model

    run = train_model(
        data,
        loss=loss,
        margin=margin,
        scale=scale,
        seed=seed,
        config=config,
        tuned=tuned,
        out=out,
        resume=resume,
        command=command_line(),
        reporter=reporter,
        **training.keywords(),
    )
    if run.stopped_by is not None:
        where = f" --data-dir {shlex.quote(str(training.data_dir))}" if training.data_dir is not None else ""
        return tell_stopped(run.stopped_by, f"arcwise train {shlex.quote(str(run.path))} --resume{where}")
    assert run.evaluation is not None
    if figures:
        draw(run.path, reporter)
    if output.json:
        print(json.dumps({"path": str(run.path), **run.evaluation}))
    else:
        print(f"\n{run.path}")
        print_table([["measured on the test part", ""], *summary(run.evaluation)])
        if doubt := doubtful_labels(run.path, run.evaluation, relabelled=bool(run.config.data.relabel)):
            print(doubt)
    next_command(f"arcwise report {shlex.quote(str(run.path))}", output)
    return 0


def draw(run: Path, reporter: Reporter) -> None:
    """Figures and a GIF, where matplotlib is installed."""
    from arcwise import viewing

    try:
        viewing.draw_run(run, reporter=reporter)
        viewing.animate_run(run, reporter=reporter)
    except MissingExtraError as error:
        reporter.warn(f"no figures: {error}")


def tell_stopped(signal_name: str, go_on: str) -> int:
    """Say that everything is saved, and how to go on, even to those who want no progress shown; returns the exit code."""
    print(f"arcwise: stopped by {signal_name}; everything is saved. Go on with: {go_on}", file=sys.stderr)
    return 143 if signal_name == "SIGTERM" else 130


def doubtful_labels(path: Path, evaluation: dict[str, Any], *, relabelled: bool = False) -> str | None:
    """How many training labels look wrong and where they are listed; None where none does.

    A list that was made under suggested labels does not fit the data as they come, so nothing is suggested for it.
    """
    count = evaluation.get("num_suspect") or 0
    if not count:
        return None
    lie = (
        "lie nearer to another class than to their own" if count > 1 else "lies nearer to another class than to its own"
    )
    file = path / "mislabelled.csv"
    told = f"{count:,} of {evaluation['num_judged']:,} training samples {lie} and may be mislabelled: {file}"
    advice = f"Look the list through and train again: --leave-out or --relabel {shlex.quote(str(file))}"
    return told if relabelled else f"{told}\n{advice}"


def summary(evaluation: dict[str, Any]) -> list[list[str]]:
    """The measured figures as rows of a table."""
    from arcwise.training.columns import columns_of
    from arcwise.training.comparison import format_value

    columns = columns_of(evaluation)
    measured = {c.key: [evaluation[c.key]] if evaluation.get(c.key) is not None else [] for c in columns}
    return [[f"{c.title}: {c.meaning}", format_value(measured[c.key], c.unit)] for c in columns]
