from __future__ import annotations

import io
import itertools
import threading
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from arcwise.progress import PlainReporter, Reporter, Stage, TerminalReporter, reporter_for


class TimedStream(io.StringIO):
    """Notes when each line was written."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def write(self, text: str) -> int:
        if "\n" in text:
            self.times.append(time.monotonic())
        return super().write(text)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(act: Callable[[TerminalReporter], None]) -> str:
    stream = io.StringIO()
    act(TerminalReporter(Console(file=stream, force_terminal=True, width=200, color_system=None)))
    return stream.getvalue()


def test_a_stage_that_takes_long_reports_at_least_every_two_seconds() -> None:
    stream = TimedStream()
    started = time.monotonic()
    with PlainReporter(stream).stage("training", total=10) as stage:
        stage.update("loss 0.5", done=3)
        time.sleep(2.5)
    moments = [started, *stream.times, time.monotonic()]
    assert max(after - before for before, after in itertools.pairwise(moments)) < 2
    lines = stream.getvalue().splitlines()
    assert lines[0] == "training"
    assert len(lines) >= 3
    assert all(line.startswith("training 3/10 · loss 0.5 · ") for line in lines[1:])


def test_a_stage_that_fails_ends_its_lines_and_its_thread() -> None:
    stream, threads = io.StringIO(), threading.active_count()
    reporter = PlainReporter(stream)
    with pytest.raises(ZeroDivisionError), reporter.stage("dividing"):
        raise ZeroDivisionError
    assert threading.active_count() == threads
    assert stream.getvalue() == "dividing\ndividing · 0 s\n"


def test_plain_lines_say_and_warn() -> None:
    stream = io.StringIO()
    reporter = PlainReporter(stream)
    reporter.say("ten classes [not markup]")
    reporter.warn("a broken image was skipped")
    assert stream.getvalue() == "ten classes [not markup]\nwarning: a broken image was skipped\n"


def test_plain_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    PlainReporter().say("here")
    assert capsys.readouterr() == ("", "here\n")


def test_the_base_reporter_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter()
    reporter.say("anything")
    reporter.warn("anything")
    with reporter.stage("anything", total=3) as stage:
        stage.advance()
        stage.update("text", done=2, total=4)
    assert (stage.done, stage.total, stage.text) == (2, 4, "text")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("total", "done", "text", "line"),
    [
        (None, 0, "", "reading · 4 s"),
        (None, 7, "", "reading 7 · 4 s"),
        (10, 0, "", "reading 0/10 · 4 s"),
        (10, 7, "digits.npz", "reading 7/10 · digits.npz · 4 s"),
    ],
)
def test_a_stage_is_one_plain_line(total: int | None, done: int, text: str, line: str) -> None:
    stage = Stage("reading", total)
    stage.advance(done)
    stage.update(text)
    assert stage.line(4.2) == line


def test_a_terminal_shows_the_users_text_as_it_is() -> None:
    def act(reporter: TerminalReporter) -> None:
        reporter.say("photos [bold]of[/bold] [/nothing] :smile:")
        reporter.warn("skipped [red]a.png[/red]")
        with reporter.stage("folder [a]", total=2) as stage:
            stage.update("file [link=x]b[/link].png", done=1)
            time.sleep(0.4)

    text = shown(act)
    assert "photos [bold]of[/bold] [/nothing] :smile:" in text
    assert "warning: skipped [red]a.png[/red]" in text
    assert "folder [a] 1/2 · file [link=x]b[/link].png · 0 s" in text.splitlines()[-1]
    assert text.count("file [link=x]b[/link].png") >= 2


def test_a_terminal_redraws_the_bar_while_the_stage_runs() -> None:
    def act(reporter: TerminalReporter) -> None:
        with reporter.stage("epoch", total=4) as stage:
            for _ in range(4):
                stage.advance()
                time.sleep(0.25)

    text = shown(act)
    assert "━" in text
    assert "75%" in text
    assert text.splitlines()[-1].endswith("epoch 4/4 · 1 s")


def test_stages_may_lie_within_stages() -> None:
    def act(reporter: TerminalReporter) -> None:
        with reporter.stage("outer", total=1) as outer:
            with reporter.stage("inner"):
                time.sleep(0.2)
            outer.advance()

    text = shown(act)
    assert "inner · 0 s" in text
    assert text.splitlines()[-1].endswith("outer 1/1 · 0 s")


def test_a_long_line_is_not_broken_by_the_width_of_the_terminal() -> None:
    stream = io.StringIO()
    reporter = TerminalReporter(Console(file=stream, force_terminal=True, width=20, color_system=None))
    reporter.say("a path that is longer than the terminal is wide")
    assert stream.getvalue() == "a path that is longer than the terminal is wide\n"


def test_the_reporter_suits_where_the_output_goes() -> None:
    assert type(reporter_for(io.StringIO())) is PlainReporter
    assert type(reporter_for(io.StringIO(), quiet=True)) is Reporter
    assert type(reporter_for(Terminal(), quiet=True)) is Reporter
    assert type(reporter_for(Terminal())) is TerminalReporter


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_the_reporter_writes_to_the_stream_it_was_made_for(
    stream: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    reporter_for(stream).say("here it is")
    assert "here it is" in stream.getvalue()
    assert capsys.readouterr() == ("", "")
