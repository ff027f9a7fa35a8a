"""Tests of Ctrl-C work wherever they are started."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Heed Ctrl-C even in the background of a script, where it is ignored by this process and by all that it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
