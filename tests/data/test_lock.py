from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from arcwise.data._lock import locked
from arcwise.progress import Reporter

HOLD = """
import sys
from pathlib import Path
from arcwise.data._lock import locked
from arcwise.progress import Reporter
with locked(Path(sys.argv[1]), Reporter(), "busy"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    process = holder(tmp_path / "lock")
    process.kill()
    process.communicate()
    with locked(tmp_path / "lock", Reporter(), "busy") as waited:
        assert not waited


def test_the_second_waits_and_says_so(tmp_path: Path, said: Any) -> None:
    process = holder(tmp_path / "lock")
    assert process.stdin is not None
    stdin = process.stdin

    class Opener(type(said)):  # type: ignore[misc]
        def say(self, text: str = "") -> None:
            super().say(text)
            if not stdin.closed:
                stdin.close()

    reporter = Opener()
    with locked(tmp_path / "lock", reporter, "fetching mnist") as waited:
        assert waited
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    assert reporter.lines[0] == "Another process is fetching mnist: waiting for it"
