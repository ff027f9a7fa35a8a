"""`write_report`: from folders to report.pdf."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from arcwise.atomic_write import write_file
from arcwise.errors import RunError
from arcwise.progress import Reporter
from arcwise.reporting.document import document
from arcwise.reporting.grouping import Group, gather
from arcwise.reporting.typeset import require_typst, typeset


def write_report(runs: Sequence[Path], *, out: Path | None = None, reporter: Reporter | None = None) -> Path:
    """Write a report on run folders, or comparison folders, as a PDF.

    Args:
        runs: folders that training or comparing wrote. What is not a run is named and left out.
        out: where to write. By default report.pdf in the folder, or in the folder that several have in common.
        reporter: who is told how it goes.

    Returns:
        The path of the PDF.
    """
    reporter = reporter if reporter is not None else Reporter()
    require_typst()
    folders = [Path(run) for run in runs]
    with reporter.stage("Reading the runs", len(folders)) as stage:
        groups = gather(folders, reporter)
        stage.update(done=len(folders))
    target = report_path(groups, out)
    check_replaceable(target)
    with reporter.stage("Writing the report") as stage:
        stage.update("figures and text")
        content, album = document(groups, reporter)
        stage.update("typesetting")
        dates = [run.finished for group in groups for run in group.all_runs]
        pdf = typeset(content, album.files, max(dates, default=None))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_file(target, pdf)
        except OSError as error:
            raise RunError(
                f"The report cannot be written to {target} ({error.strerror or error}). Choose another place with --out."
            ) from error
    return target


def report_path(groups: Sequence[Group], out: Path | None) -> Path:
    """Where the report goes: `out`, or report.pdf in the one folder or in what several have in common."""
    if out is not None:
        return out / "report.pdf" if out.is_dir() else out
    folders = [
        folder
        for group in groups
        for folder in ([group.folder] if group.folder else [run.folder for run in group.all_runs])
    ]
    if len(folders) == 1:
        return folders[0] / "report.pdf"
    parents = [str(folder.resolve().parent) for folder in folders]
    return Path(os.path.relpath(os.path.commonpath(parents))) / "report.pdf"


def check_replaceable(target: Path) -> None:
    """A report may replace a report, and nothing else."""
    if target.is_dir():
        raise RunError(f"{target} is a folder. Give a file name such as {target / 'report.pdf'} with --out.")
    if not target.exists():
        return
    try:
        with target.open("rb") as file:
            is_pdf = file.read(5) == b"%PDF-"
    except OSError as error:
        raise RunError(f"{target} cannot be read ({error.strerror}). Choose another place with --out.") from error
    if not is_pdf:
        raise RunError(
            f"{target} exists and is not a PDF, so it is not replaced. Choose another name with --out, or move it away."
        )
