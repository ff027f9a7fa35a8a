from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from arcwise.training.interrupt import stop_on_signals

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to send to a process")

# Takes steps until it is asked to stop, as a training loop does, and says what happened.
LOOP = """
import signal, sys, time
from arcwise.training.interrupt import stop_on_signals

before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
stubborn = "stubborn" in sys.argv
try:
    with stop_on_signals() as stop:
        print("ready", flush=True)
        told = False
        while stubborn or not stop.requested:
            time.sleep(0.002)
            if stubborn and stop.requested and not told:
                told = True
                print("asked by", stop.signal_name, flush=True)
    print("saved, asked by", stop.signal_name, flush=True)
except KeyboardInterrupt:
    print("interrupted at once", flush=True)
print("handlers restored:", before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)], flush=True)
"""


class Child:
    """The loop in a process of its own."""

    def __init__(self, *arguments: str, ignoring: int | None = None) -> None:
        def ignore() -> None:
            if ignoring is not None:
                signal.signal(ignoring, signal.SIG_IGN)

        self._process = subprocess.Popen(
            [sys.executable, "-c", LOOP, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=ignore,
        )
        assert self.line() == "ready"

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def rest(self) -> list[str]:
        out, _ = self._process.communicate()
        assert self._process.returncode == 0
        return out.split("\n")[:-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_the_first_signal_lets_the_loop_end_its_step_and_save(number: signal.Signals) -> None:
    child = Child()
    child.send(number)
    assert child.rest() == [f"saved, asked by {number.name}", "handlers restored: True"]


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupt_after_the_first_signal_stops_at_once(first: signal.Signals) -> None:
    child = Child("stubborn")
    child.send(first)
    assert child.line() == f"asked by {first.name}"
    child.send(signal.SIGINT)
    assert child.rest() == ["interrupted at once", "handlers restored: True"]


def test_a_second_sigterm_does_not_cut_the_save_short() -> None:
    child = Child("stubborn")
    child.send(signal.SIGINT)
    assert child.line() == "asked by SIGINT"
    child.send(signal.SIGTERM)
    child.send(signal.SIGTERM)
    child.send(signal.SIGINT)
    assert child.rest() == ["interrupted at once", "handlers restored: True"]


def test_a_signal_that_the_process_was_started_to_ignore_stays_ignored() -> None:
    child = Child(ignoring=signal.SIGINT)
    for _ in range(3):
        child.send(signal.SIGINT)
    child.send(signal.SIGTERM)
    assert child.rest() == ["saved, asked by SIGTERM", "handlers restored: True"]


def test_handlers_come_back_after_an_error_in_the_block() -> None:
    before = signal.getsignal(signal.SIGINT)

    def fail() -> None:
        with stop_on_signals():
            assert signal.getsignal(signal.SIGINT) is not before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_inner_block_takes_the_signal_and_the_outer_one_gets_its_handlers_back() -> None:
    with stop_on_signals() as outer:
        with stop_on_signals() as inner:
            signal.raise_signal(signal.SIGTERM)
        assert (inner.requested, outer.requested) == (True, False)
        signal.raise_signal(signal.SIGTERM)
        assert outer.requested
        assert outer.signal_name == "SIGTERM"


def test_in_another_thread_nothing_is_changed_and_nothing_is_requested() -> None:
    seen: list[object] = []
    before = signal.getsignal(signal.SIGINT)

    def work() -> None:
        with stop_on_signals() as stop:
            seen.extend([stop.requested, stop.signal_name, signal.getsignal(signal.SIGINT) is before])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False, None, True]


def test_a_save_interrupted_by_real_signals_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
import torch
from arcwise.training.checkpoint import Checkpoint, latest_checkpoint, save_checkpoint
from arcwise.training.interrupt import stop_on_signals

folder = Path(sys.argv[1])
torch.set_num_threads(1)
step = 0
try:
    with stop_on_signals() as stop:
        while True:
            step += 1
            save_checkpoint(folder, Checkpoint(step, {"weight": torch.full((100_000,), float(step))}, {}))
            if step == 1:
                print("ready", flush=True)
            if stop.requested:
                print("asked", flush=True)
except KeyboardInterrupt:
    found = latest_checkpoint(folder, warn=sys.exit)
    assert found.step in (step - 1, step), (found.step, step)
    assert bool((found.tensors["weight"] == found.step).all())
    print("whole", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == 0
    assert out.split()[-1] == "whole"
