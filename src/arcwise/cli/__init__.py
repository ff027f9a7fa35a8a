"""The command `arcwise`: one file per command, thin: parse, call, print.

Exit codes: 0 done; 2 bad input, with one sentence on standard error; 130 or 143 stopped by Ctrl-C or SIGTERM, with everything saved.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cyclopts import App, CycloptsError

from arcwise._version import __version__
from arcwise.cli.bench import app as bench
from arcwise.cli.compare import compare
from arcwise.cli.data import app as data
from arcwise.cli.report import report
from arcwise.cli.train import train
from arcwise.cli.tune import tune
from arcwise.errors import ArcwiseError

app = App(
    name="arcwise",
    help="Learn, measure, show and use embeddings that are separated by angle.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    help_epilogue="Start with: arcwise compare mnist --losses softmax,arcface --dim 3",
)
for command in (train, compare, tune, report, data, bench):
    app.command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave with its exit code."""
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        _fail(_one_line(str(error)), hint=True)
    except ArcwiseError as error:
        _fail(str(error))
    except BrokenPipeError:
        # Whoever read our output has gone; keep the interpreter from complaining about it on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        _fail(f"cannot read or write{where}: {error.strerror or error}")
    except KeyboardInterrupt:
        _fail("stopped", code=130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, *, code: int = 2, hint: bool = False) -> NoReturn:
    print(f"arcwise: {message}" + (" See arcwise --help." if hint else ""), file=sys.stderr)
    sys.exit(code)


def _one_line(text: str) -> str:
    return " ".join(text.split())
