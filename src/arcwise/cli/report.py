"""arcwise report"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from arcwise.cli.options import OutputOptions, next_command


def report(
    runs: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    bundle: Path | None = None,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    output: OutputOptions = OutputOptions(),  # noqa: B008
) -> int:
    """Write a report on runs as a PDF: the technique, the data, the settings, the code, the figures and what the numbers say.

    Runs that share data, backbone, width and epochs are compared in one table; others get a table of their own.

    For example
        arcwise report runs/mnist-compare

        arcwise report runs/mnist-* --bundle lastname_firstname_ID_Project1.zip

    Parameters
    ----------
    runs
        Folders that arcwise train or arcwise compare wrote.
    bundle
        Also pack the report, the figures, the settings and the source into this zip, which must not exist yet.
    out
        Where to write the PDF. By default report.pdf in the folder, or in the folder that several have in common.
    """
    reporter = output.reporter()
    with reporter.stage("starting"):
        from arcwise.reporting import write_bundle, write_report
        from arcwise.reporting.bundle import check_bundle_path

    if bundle is not None:
        check_bundle_path(bundle)
    pdf = write_report(runs, out=out, reporter=reporter)
    packed = write_bundle(runs, bundle, report=pdf, reporter=reporter) if bundle is not None else None
    if output.json:
        print(json.dumps({"report": str(pdf), "bundle": str(packed) if packed is not None else None}))
    else:
        print(f"Report: {pdf}")
        if packed is not None:
            print(f"Bundle: {packed}")
    if packed is not None:
        next_command(f"python -m zipfile --list {shlex.quote(str(packed))}", output)
    else:
        given = " ".join(shlex.quote(str(run)) for run in runs)
        next_command(f"arcwise report {given} --bundle lastname_firstname_ID_Project1.zip", output)
    return 0
