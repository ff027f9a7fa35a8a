"""`arcwise report`: a PDF, and if wanted a zip to hand in, from run folders."""

from __future__ import annotations

import json as json_format
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from arcwise.progress import reporter_for


def report(
    runs: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    bundle: Path | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Write a report on runs as a PDF: the technique, the data, the settings, the figures and what the numbers say.

    Runs that share data, backbone, width and epochs are compared in one table; others get a table of their own.

    Example: arcwise report runs/mnist-compare --bundle lastname_firstname_ID_Project1.zip

    Parameters
    ----------
    runs
        Folders that arcwise train or arcwise compare wrote.
    bundle
        Also pack the report, the figures, the settings and the source into this zip, which must not exist yet.
    out
        Where to write the PDF. By default report.pdf in the folder, or in the folder that several have in common.
    json
        Print the result as JSON.
    quiet
        No progress.
    """
    from arcwise.reporting import write_bundle, write_report
    from arcwise.reporting.bundle import check_bundle_path

    reporter = reporter_for(quiet=quiet)
    if bundle is not None:
        check_bundle_path(bundle)
    pdf = write_report(runs, out=out, reporter=reporter)
    packed = write_bundle(runs, bundle, report=pdf, reporter=reporter) if bundle is not None else None
    if json:
        print(json_format.dumps({"report": str(pdf), "bundle": None if packed is None else str(packed)}))
        return
    print(f"Report: {pdf}")
    if packed is not None:
        print(f"Bundle: {packed}")
        print(f"Next: python -m zipfile --list {shlex.quote(str(packed))}")
    else:
        given = " ".join(shlex.quote(str(run)) for run in runs)
        print(f"Next: arcwise report {given} --bundle lastname_firstname_ID_Project1.zip")
