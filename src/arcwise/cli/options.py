"""The options that several commands share."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from arcwise.errors import ConfigError
from arcwise.progress import Reporter, reporter_for

# A first column of words is folded to this at the least.
NARROWEST_FIRST = 16


@Parameter(name="*")
@dataclass(frozen=True)
class TrainingOptions:
    """How to train; whatever is left out is chosen from the data and the machine."""

    dim: int | None = None
    """Width of the embeddings: 2 and 3 can be drawn as they are."""
    epochs: int | None = None
    """How often to go through the data."""
    backbone: str | None = None
    """The network: vgg8, conv4, small, resnet18, iresnet18 or mlp."""
    batch_size: int | None = None
    """Samples in a step."""
    lr: float | None = None
    """The highest learning rate."""
    warmup_epochs: float | None = None
    """Let the margin grow from 0 over so many epochs."""
    device: str = "auto"
    """cpu, cuda, cuda:0 … or auto."""
    leave_out: Path | None = None
    """The mislabelled.csv of an earlier run: training ignores what is clear in it."""
    relabel: Path | None = None
    """The mislabelled.csv of an earlier run: training takes its suggestions where they are clear."""
    set: Annotated[list[str], Parameter(negative=())] = field(default_factory=list)
    """Any other setting of the config, as in --set train.weight_decay=0."""
    data_dir: Path | None = None
    """A folder to look for the data set in before anything is fetched."""

    def settings(self) -> list[str]:
        """All that is set in the config, as in train.lr=0.05."""
        files = {"data.leave_out": self.leave_out, "data.relabel": self.relabel}
        return [*(f"{key}={file}" for key, file in files.items() if file is not None), *self.set]

    def keywords(self) -> dict[str, Any]:
        """The options as keyword arguments of `arcwise.train` and `arcwise.compare`."""
        return {
            "dim": self.dim,
            "epochs": self.epochs,
            "backbone": self.backbone,
            "batch_size": self.batch_size,
            "lr": self.lr,
            "warmup_epochs": self.warmup_epochs,
            "device": self.device,
            "settings": dict(_setting(text) for text in self.settings()),
            "data_dir": self.data_dir,
        }


@Parameter(name="*")
@dataclass(frozen=True)
class OutputOptions:
    """What is printed."""

    json: Annotated[bool, Parameter(negative=())] = False
    """Print the result as JSON."""
    quiet: Annotated[bool, Parameter(negative=())] = False
    """Show no progress."""

    def reporter(self) -> Reporter:
        """Who shows the progress."""
        return reporter_for(quiet=self.quiet)


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["arcwise", *sys.argv[1:]])


def next_command(command: str, output: OutputOptions) -> None:
    """End with the one command that is worth running next."""
    if not (output.json or output.quiet):
        print(f"\nNext: {command}")


def print_table(rows: list[list[str]], *, text_last: bool = False) -> None:
    """A table with its header, in aligned columns; a last column of text is folded where it is too wide.

    Where the terminal is too narrow it becomes as many tables as it takes, with the columns as rows where that makes them fewer; a long
    first column is folded.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console()
    parts = [rows]
    if not text_last and len(rows[0]) > len(rows) and _width(rows) > console.width:
        parts = _fitting([list(row) for row in zip(*rows, strict=True)], console.width)
    elif not text_last and _width(rows, NARROWEST_FIRST) > console.width:
        parts = _fitting(rows, console.width)
    for part in parts:
        table = Table(*part[0], pad_edge=False)
        table.columns[0].overflow = "fold"
        for column in table.columns[1 : -1 if text_last else None]:
            column.justify, column.no_wrap = "right", True
        for row in part[1:]:
            table.add_row(*row)
        console.print(table, markup=False)


def _width(rows: list[list[str]], first: int | None = None) -> int:
    """How wide the table of these rows would be, with its first column folded to `first` where it is wider."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return min(widths[0], first or widths[0]) + 3 + sum(width + 3 for width in widths[1:]) - 1


def _fitting(rows: list[list[str]], width: int) -> list[list[list[str]]]:
    """The table in parts that fit, each with the first column and at least one other."""
    parts: list[list[list[str]]] = []
    for i in range(1, len(rows[0])):
        wider = [[*part, row[i]] for part, row in zip(parts[-1], rows, strict=True)] if parts else []
        if parts and _width(wider) <= width:
            parts[-1] = wider
        else:
            parts.append([[row[0], row[i]] for row in rows])
    return parts


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set takes section.key=value, as in train.lr=0.05; got {text!r}.")
    return key.strip(), value.strip()
