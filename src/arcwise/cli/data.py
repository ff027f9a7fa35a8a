"""arcwise data: what is known, what is cached, and fetching it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts
from cyclopts import Parameter

from arcwise.errors import ConfigError, did_you_mean
from arcwise.progress import reporter_for

if TYPE_CHECKING:
    from arcwise.data import Status

app = cyclopts.App(
    name="data", help="List the known data sets, and fetch them.", help_epilogue="Start with: arcwise data list"
)


@app.command(name="list")
def list_(*, as_json: Annotated[bool, Parameter(name="--json", negative="")] = False) -> None:
    """Show the known data sets: which are cached, their size, classes and licence.

    Example: arcwise data list

    Parameters
    ----------
    as_json
        Print JSON instead of a table.
    """
    from arcwise.data import cache_folder, status

    rows = status()
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    _print_table(rows)
    missing = next((row.name for row in rows if not row.cached), None)
    print(f"\nThe cache is {cache_folder()}", file=sys.stderr)
    print(
        f"Next: arcwise data get {missing}" if missing else "Next: arcwise compare mnist --losses softmax,arcface",
        file=sys.stderr,
    )


@app.command
def get(
    name: str,
    /,
    *,
    data_dir: Path | None = None,
    quiet: Annotated[bool, Parameter(negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Fetch a data set into the cache, and check its SHA-256. A set that is there already is only checked.

    Example: arcwise data get mnist

    Parameters
    ----------
    name
        A name from `arcwise data list`.
    data_dir
        A folder (or an archive) where its files may lie, looked through first. ARCWISE_DATA does the same.
    quiet
        Show no progress.
    as_json
        Print the result as JSON.
    """
    from arcwise.data import status
    from arcwise.data._registry import find, names
    from arcwise.data.known import load_known

    known = find(name)
    if known is None:
        raise ConfigError(f'There is no data set called "{name}". {did_you_mean(name, names())}')
    dataset = load_known(known, data_dir=data_dir, reporter=reporter_for(quiet=quiet), keep=True)
    row = next(row for row in status() if row.name == known.name)
    if as_json:
        print(json.dumps(asdict(row), indent=2))
        return
    images = f"{row.num_train:,} training and {row.num_test:,} test images, {_shape(row)}"
    where = "" if row.embedded else f" {_size(row.bytes_on_disk)} in {row.path},"
    origin = dataset.source if row.embedded else row.source
    print(f"{known.title} is ready: {images},{where} from {origin}.")
    print(f"Next: arcwise compare {known.name} --losses softmax,arcface", file=sys.stderr)


def _print_table(rows: tuple[Status, ...]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("name", "in cache"):
        table.add_column(title, no_wrap=True)
    for title in ("to fetch", "classes", "images"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("each", no_wrap=True)
    table.add_column("licence", overflow="fold")
    for row in rows:
        cached = "embedded" if row.embedded else (_size(row.bytes_on_disk) if row.cached else "no")
        images = f"{row.num_train + row.num_test:,}"
        licence = row.licence.split(" (")[0].split(";")[0]
        classes = f"{row.num_classes}+{row.num_test_classes}" if row.num_test_classes else str(row.num_classes)
        table.add_row(row.name, cached, _size(row.bytes_to_fetch), classes, images, _shape(row), licence)
    Console(highlight=False).print(table)


def _size(count: int) -> str:
    return f"{count / 1e6:.0f} MB" if count else "–"


def _shape(row: Status) -> str:
    channels, height, width = row.shape
    return f"{height}×{width} {'grey' if channels == 1 else 'colour'}"
